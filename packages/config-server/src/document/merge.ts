import { emptyTable, isTable, memberOf, type Table } from './value.ts';

/**
 * `over` laid over `under`: tables merge deep; arrays, scalars and null replace whatever was there. Neither side is changed,
 * and what comes from one side only is shared with it, so most of a document costs nothing to merge.
 */
export function merge(under: Table, over: Table): Table {
  const merged = emptyTable();
  for (const key of Object.keys(under)) merged[key] = memberOf(under, key)!;
  for (const key of Object.keys(over)) {
    const value = memberOf(over, key)!;
    const replaced = merged[key];
    merged[key] = isTable(value) && isTable(replaced) ? merge(replaced, value) : value;
  }
  return merged;
}
