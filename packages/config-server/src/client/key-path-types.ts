/** A dot inside a key is written `\.`, as in the server's own paths. */
type Escaped<Key extends string> = Key extends `${infer Before}.${infer After}` ? `${Before}\\.${Escaped<After>}` : Key;

/** Tables have paths below them; arrays and values of other classes are leaves. */
type TableOf<Value> = Value extends readonly unknown[] | Date | ((...args: never) => unknown)
  ? never
  : Value extends object
    ? Value
    : never;

/** Types that contain themselves have endless paths: deeper ones are any string. */
type Deeper = [never, 0, 1, 2, 3, 4, 5, 6, 7];

/** The key paths of a configuration type, such as `limits` and `limits.quantity_max`. */
export type KeyPath<Config, Depth extends number = 8> = [Depth] extends [never]
  ? string
  : { [Key in keyof Config & string]-?: Escaped<Key> | PathBelow<Key, TableOf<NonNullable<Config[Key]>>, Deeper[Depth]> }[keyof Config &
      string];

type PathBelow<Key extends string, Table, Depth extends number> = [Table] extends [never]
  ? never
  : `${Escaped<Key>}.${KeyPath<Table, Depth>}`;

/** The type of the value at a key path. A table on the way that may be absent adds undefined. */
export type ValueAt<Config, Path extends string> = {
  [Key in keyof Config & string]-?: Path extends Escaped<Key>
    ? Config[Key]
    : Path extends `${Escaped<Key>}.${infer Rest}`
      ? ValueAt<TableOf<NonNullable<Config[Key]>>, Rest> | (Config[Key] extends NonNullable<Config[Key]> ? never : undefined)
      : never;
}[keyof Config & string];
