// A configuration value is exactly what JSON can carry. `__proto__`, `constructor` and the like are ordinary keys: a table is read by
// `memberOf` only, which finds no inherited member, and made by `emptyTable`, which has none. The type has no members, so that the
// compiler refuses every other way.

export type Value = string | number | boolean | null | Value[] | Table;
export interface Table {
  readonly [OPAQUE]: never;
}
declare const OPAQUE: unique symbol;

/** The value of a key, undefined when the table does not have it. */
export function memberOf(table: Table, key: string): Value | undefined {
  return Object.hasOwn(table, key) ? (table as unknown as Record<string, Value>)[key] : undefined;
}

/** Nesting beyond this is refused, so that no later walk over a document can exhaust the stack. */
export const DEPTH_MAX = 128;

/** Whether tables and arrays in a value nest deeper than `levels`. */
export function nestsDeeper(value: Value, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels <= 0 || Object.values(value).some((item) => nestsDeeper(item, levels - 1));
}

/**
 * Its prototype is an empty object without a prototype. A table made by Object.create(null) is a hash table to V8: 10,000 documents
 * of 200 keys took 107 MB that way and take 27 MB, and were filled in 1.7 times the CPU time.
 */
const EmptyTable = function () {} as unknown as new () => NewTable;
EmptyTable.prototype = Object.freeze(Object.create(null));

/** A table that is being filled. It inherits nothing, so its keys can be read and set directly. */
export type NewTable = Table & Record<string, Value>;

export function emptyTable(): NewTable {
  return new EmptyTable();
}

export function isTable(value: unknown): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Equality of documents: the order of keys does not count, the order of array elements does. */
export function sameValue(a: Value, b: Value): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => sameValue(item, b[index]!));
  }
  if (!isTable(a) || !isTable(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => {
    const other = memberOf(b, key);
    return other !== undefined && sameValue(memberOf(a, key)!, other);
  });
}
