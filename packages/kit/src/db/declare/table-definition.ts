/** What kind of value a column holds. */
export type ColumnKind =
  | 'uuid'
  | 'text'
  | 'int'
  | 'bigint'
  | 'decimal'
  | 'float'
  | 'bool'
  | 'timestamp'
  | 'date'
  | 'json'
  | 'bytes'
  | 'enum'
  | 'array';

export type OnDelete = 'restrict' | 'cascade' | 'set null';

/** A default the database fills in: a plain value, or something it makes. */
export type DatabaseDefault =
  | {
      /** The value itself. */
      readonly value: string | number | boolean;
    }
  | {
      /** Made by the database: the time of the insert, or a random UUID. */
      readonly make: 'now' | 'uuid';
    };

export interface Reference {
  /** The table that is referred to. */
  readonly table: string;
  /** Its column. */
  readonly column: string;
  /** What becomes of the row when the other row is deleted. */
  readonly onDelete: OnDelete;
}

/** A column as the database knows it: plain data, so that migrations can freeze and compare it. */
export interface ColumnDefinition {
  /** The kind of its values. */
  readonly kind: ColumnKind;
  /** Whether it may be null. */
  readonly nullable: boolean;
  /** Characters (code points) of text. */
  readonly max?: number;
  /** Digits of a decimal. */
  readonly precision?: number;
  /** Digits of a decimal after the point. */
  readonly scale?: number;
  /** The values of an enum. */
  readonly values?: readonly string[];
  /** The kind of an array's elements. */
  readonly of?: ColumnDefinition;
  /** The default of the column in the database. */
  readonly dbDefault?: DatabaseDefault;
  /** The row it refers to. */
  readonly references?: Reference;
}

export interface IndexDefinition {
  /** The name of the index in the database. */
  readonly name: string;
  /** A leading minus means descending. */
  readonly columns: readonly string[];
  /** Whether no two rows have the same values. */
  readonly unique: boolean;
  /** The condition of a partial index, in SQL that both databases read. */
  readonly where?: string;
}

/** Words of some columns that can be searched for: full text of PostgreSQL, FTS5 of SQLite. */
export interface FullTextDefinition {
  /** The generated column on PostgreSQL, the FTS5 table on SQLite. */
  readonly name: string;
  /** The columns whose words are searched. */
  readonly columns: readonly string[];
  /** The text search configuration of PostgreSQL: `simple` knows no language. */
  readonly config: string;
}

/** A table as the database knows it. */
export interface TableDefinition {
  /** The name of the table. */
  readonly name: string;
  /** Its columns by name. */
  readonly columns: Readonly<Record<string, ColumnDefinition>>;
  /** The columns of the primary key. */
  readonly primaryKey: readonly string[];
  /** Its indexes, without that of the primary key. */
  readonly indexes: readonly IndexDefinition[];
  /** Conditions every row satisfies, by constraint name, in SQL that both databases read. */
  readonly checks: Readonly<Record<string, string>>;
  /** Absent where there is none: checksums of migrations from before it existed stay as they are. */
  readonly fullText?: readonly FullTextDefinition[];
}

export function columnOf(table: TableDefinition, name: string): ColumnDefinition {
  const column = Object.hasOwn(table.columns, name) ? table.columns[name] : undefined;
  if (column === undefined)
    throw new Error(`Table "${table.name}" has no column "${name}"${suggestion(name, Object.keys(table.columns))}.`);
  return column;
}

/** ` (did you mean "x"?)` for a name that is one of `known` but for a slip. */
export function suggestion(name: string, known: readonly string[]): string {
  const best = known.map((each) => ({ each, distance: editDistance(name, each) })).sort((a, b) => a.distance - b.distance)[0];
  return best !== undefined && best.distance <= (name.length <= 3 ? 1 : Math.max(2, Math.floor(name.length / 3)))
    ? ` (did you mean "${best.each}"?)`
    : '';
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
