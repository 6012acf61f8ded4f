import { copyValue, isTable, type Table } from './value.ts';

/** Lays `layer` over `target`: tables merge deep; arrays, scalars and null replace whatever was there. `layer` is not shared. */
export function mergeInto(target: Table, layer: Table): void {
  for (const key of Object.keys(layer)) {
    const over = layer[key]!;
    const under = target[key];
    if (isTable(over) && isTable(under)) mergeInto(under, over);
    else target[key] = copyValue(over);
  }
}
