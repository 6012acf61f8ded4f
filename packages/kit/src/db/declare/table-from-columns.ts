import { type AnyColumn, columnDefinition } from './column.ts';
import { searchColumnName } from './encrypted-column.ts';
import { derivedName } from './names.ts';
import type { Columns } from './rows.ts';
import type { ColumnDefinition, FullTextDefinition, IndexDefinition, TableDefinition } from './table-definition.ts';
import { objectOf, type OptionRules } from '../../options/read-options.ts';
import { filledText, flag, listOf, oneOf, recordOf, required, rule } from '../../options/value-rule.ts';

/** A name that an editor completes; others are checked when the model is declared, because lists are often shared variables. */
type Suggested<N extends string> = N | (string & {});

/** An index of a table: `{ columns: ['owner_id', '-created_at'] }`. */
export interface ModelIndex<N extends string = string> {
  /** Column names; a leading minus means descending. */
  readonly columns: readonly Suggested<N | `-${N}`>[];
  /** No two rows have the same values. */
  readonly unique?: boolean;
  /** Condition of a partial index, in SQL that both databases read: `deleted_at is null`. */
  readonly where?: string;
  /** Default: `orders_owner_id_index`, from the table and the columns. */
  readonly name?: string;
}

/** Text columns whose words can be searched for. */
export interface ModelFullText<N extends string = string> {
  /** The text columns that are searched. */
  readonly columns: readonly Suggested<N>[];
  /** The text search configuration of PostgreSQL. Default: `simple`, the only one that SQLite matches alike. */
  readonly config?: string;
  /** Default: `orders_note_search`, from the table and the columns. */
  readonly name?: string;
}

/** When rows of a table have had their time, and what becomes of them. */
export interface RetentionOptions<N extends string = string> {
  /** `30 days`, `24 months` or `7 years`, by the calendar in UTC. */
  readonly after: string;
  /** The timestamp or date that the time counts from. A row without a value stays. */
  readonly by: Suggested<N>;
  /** `delete` removes the row, `anonymise` replaces its personal columns. */
  readonly then: 'delete' | 'anonymise';
}

/** Options of `model()` and `createTable()`. */
export interface ModelOptions<N extends string = string> {
  /** The stable id of the table inside encrypted values. Default: the name of the table. After a rename, set the old name. */
  readonly id?: string;
  /** Indexes besides those of unique columns. */
  readonly indexes?: readonly ModelIndex<N>[];
  /** For keys of several columns; `.pk()` on each of them says the same. */
  readonly primaryKey?: readonly Suggested<N>[];
  /** Every column is guarded: rows that only one module writes, by rules of its own. See `.guarded()`. */
  readonly guarded?: boolean;
  /** Conditions every row satisfies, by short name, in SQL that both databases read. */
  readonly checks?: Readonly<Record<string, string>>;
  /** Full-text search: a generated column and an index on PostgreSQL, an FTS5 table and triggers on SQLite, written by migrations. */
  readonly fullText?: readonly ModelFullText<N>[];
  /** How long rows are kept: `{ after: '24 months', by: 'created_at', then: 'anonymise' }`. `personalData()` applies it, and `kit retention run`. Default: forever. */
  readonly retention?: RetentionOptions<N>;
}

export const indexRules: OptionRules<ModelIndex> = {
  columns: required(listOf(filledText, { min: 1 })),
  unique: flag,
  where: filledText,
  name: filledText,
};

const CONFIG = /^[a-z_][a-z0-9_]{0,62}$/;

export const fullTextRules: OptionRules<ModelFullText> = {
  columns: required(listOf(filledText, { min: 1 })),
  config: rule("the name of a text search configuration, such as 'simple' or 'english'", (value) => CONFIG.test(String(value))),
  name: filledText,
};

export const RETENTION_AGE = /^([1-9]\d{0,4}) (day|month|year)s?$/;

const retentionRules: OptionRules<RetentionOptions> = {
  after: required(rule("a number of days, months or years, such as '24 months'", (value) => RETENTION_AGE.test(String(value)))),
  by: required(filledText),
  then: required(oneOf('delete', 'anonymise')),
};

export const modelRules: OptionRules<ModelOptions> = {
  id: filledText,
  indexes: listOf(objectOf<ModelIndex>(indexRules)),
  primaryKey: listOf(filledText),
  guarded: flag,
  checks: recordOf(filledText),
  fullText: listOf(objectOf<ModelFullText>(fullTextRules)),
  retention: objectOf<RetentionOptions>(retentionRules),
};

export function primaryKeyOf(columns: Columns, options: ModelOptions): readonly string[] {
  // Whatever is no column is reported with the other faults of the declaration, not here.
  return (
    options.primaryKey ??
    Object.keys(columns).filter((key) => (columns[key] as Partial<AnyColumn> | undefined)?.settings?.primaryKey === true)
  );
}

export function tableDefinition(name: string, columns: Columns, options: ModelOptions): TableDefinition {
  const definitions: Record<string, ColumnDefinition> = {};
  for (const [key, column] of Object.entries(columns)) definitions[key] = namedDefinition(name, key, column);
  const single = Object.entries(columns).filter(([, column]) => column.settings.unique);
  const searched = (index: ModelIndex) => ({ ...index, columns: index.columns.map((column) => indexedColumn(columns, column)) });
  return {
    name,
    columns: definitions,
    primaryKey: [...(options.primaryKey ?? [])],
    indexes: [
      ...single.map(([key]) => indexDefinition(name, searched({ columns: [key], unique: true }))),
      ...(options.indexes ?? []).map((index) => indexDefinition(name, searched(index))),
    ],
    checks: Object.fromEntries(Object.entries(options.checks ?? {}).map(([key, sql]) => [derivedName(name, key, 'check'), sql])),
    ...(options.fullText === undefined || options.fullText.length === 0
      ? {}
      : { fullText: options.fullText.map((each) => fullTextDefinition(name, each)) }),
  };
}

/** An index finds an encrypted column by its search values. */
function indexedColumn(columns: Columns, column: string): string {
  return columns[column]?.settings.encrypted === undefined ? column : searchColumnName(column);
}

export function fullTextDefinition(table: string, { name, columns, config = 'simple' }: ModelFullText): FullTextDefinition {
  return { name: name ?? derivedName(table, ...columns, 'search'), columns: [...columns], config };
}

export function indexDefinition(table: string, index: ModelIndex): IndexDefinition {
  const words = index.columns.map((column) => column.replace(/^-/, ''));
  return {
    name: index.name ?? derivedName(table, ...words, index.unique === true ? 'unique' : 'index'),
    columns: [...index.columns],
    unique: index.unique === true,
    ...(index.where === undefined ? {} : { where: index.where }),
  };
}

function namedDefinition(table: string, key: string, column: AnyColumn): ColumnDefinition {
  try {
    return columnDefinition(column.settings);
  } catch (error) {
    throw new Error(`Model "${table}", column "${key}": ${(error as Error).message}.`, { cause: error });
  }
}
