/** A dot or backslash inside a key is written with a backslash, as in the server's own paths. */
type Escaped<Key extends string> = string extends Key ? string : Replaced<Replaced<Key, '\\', '\\\\'>, '.', '\\.'>;
type Replaced<Text extends string, From extends string, To extends string> = Text extends `${infer Before}${From}${infer After}`
  ? `${Before}${To}${Replaced<After, From, To>}`
  : Text;

/** Tables have paths below them; arrays and values of other classes are leaves. */
type TableOf<Value> = Value extends readonly unknown[] | Date | ((...args: never) => unknown)
  ? never
  : Value extends object
    ? Value
    : never;

/** Types that contain themselves have endless paths: deeper ones are any string. */
type Deeper = [never, 0, 1, 2, 3, 4, 5, 6, 7];

/** The key paths of a configuration type, such as `limits` and `limits.quantity_max`. A union has the paths of all its variants. */
export type KeyPath<Config, Depth extends number = 8> = [Depth] extends [never]
  ? string
  : Config extends unknown
    ? { [Key in keyof Config & string]-?: Escaped<Key> | PathBelow<Key, TableOf<NonNullable<Config[Key]>>, Deeper[Depth]> }[keyof Config &
        string]
    : never;

type PathBelow<Key extends string, Table, Depth extends number> = [Table] extends [never]
  ? never
  : `${Escaped<Key>}.${KeyPath<Table, Depth>}`;

/** The type of the value at a key path; with undefined when a table or variant on the way may not have it. */
export type ValueAt<Config, Path extends string> = Config extends unknown
  ? [AtDeclared<Config, Path>] extends [never]
    ? AtAny<Config, Path> | undefined
    : AtDeclared<Config, Path>[0]
  : never;

/** Keys that a type declares by name, without those of an index signature. */
type Declared<Config> = keyof { [Key in keyof Config as string extends Key ? never : number extends Key ? never : Key]: never } & string;

/** The value in a tuple of one, or never when no declared key begins the path. */
type AtDeclared<Config, Path extends string> = {
  [Key in Declared<Config> & keyof Config]: Path extends Escaped<Key>
    ? [Config[Key]]
    : Path extends `${Escaped<Key>}.${infer Rest}`
      ? [Below<Config[Key], Rest>]
      : never;
}[Declared<Config> & keyof Config];

/** The same for a key of an index signature, which may be any. */
type AtAny<Config, Path extends string> = string extends keyof Config
  ? string extends Path
    ? unknown
    : Path extends `${string}\\${string}`
      ? unknown
      : Path extends `${infer Key}.${infer Rest}`
        ? Below<Config[Key & keyof Config], Rest>
        : Config[Path & keyof Config]
  : never;

type Below<Value, Rest extends string> = unknown extends Value
  ? unknown
  : Value extends unknown
    ? [TableOf<Value>] extends [never]
      ? undefined
      : ValueAt<Value, Rest>
    : never;
