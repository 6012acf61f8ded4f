import { parseDecimal } from '../values/decimal.ts';
import type { Dialect } from '../dialect.ts';
import { createFullTextSql } from '../declare/full-text.ts';
import { derivedName, quoteName, quoteText } from '../declare/names.ts';
import { encodePostgres } from '../values/encode-postgres.ts';
import {
  type ColumnDefinition,
  type ColumnKind,
  columnOf,
  type IndexDefinition,
  type TableDefinition,
} from '../declare/table-definition.ts';
import { requireArguments } from '../../options/read-options.ts';
import { rule, isMembers } from '../../options/value-rule.ts';

type TypeOf = (column: ColumnDefinition) => string;

/**
 * SQLite's declared types carry the codec (see sqlite/codec.ts). A name with TEXT in it has text affinity, which keeps
 * decimals exact; one with INT would turn text into numbers, hence `big`.
 */
const sqliteTypes: Readonly<Record<ColumnKind, TypeOf>> = {
  uuid: () => 'uuid_text',
  text: () => 'text',
  enum: () => 'enum_text',
  int: () => 'integer',
  bigint: () => 'bigint',
  decimal: ({ precision, scale }) => `decimal_text(${precision},${scale})`,
  float: () => 'real',
  bool: () => 'boolean',
  timestamp: () => 'timestamp_text',
  date: () => 'date_text',
  json: () => 'json_text',
  bytes: () => 'blob',
  array: ({ of }) => (of?.kind === 'bigint' ? 'array_text_big' : of?.kind === 'timestamp' ? 'array_text_timestamp' : 'array_text'),
};

/** As PostgreSQL itself prints them, so that drift detection can compare. */
const postgresTypes: Readonly<Record<ColumnKind, TypeOf>> = {
  uuid: () => 'uuid',
  text: ({ max }) => (max === undefined ? 'text' : `character varying(${max})`),
  enum: () => 'text',
  int: () => 'integer',
  bigint: () => 'bigint',
  decimal: ({ precision, scale }) => `numeric(${precision},${scale})`,
  float: () => 'double precision',
  bool: () => 'boolean',
  timestamp: () => 'timestamp(3) with time zone',
  date: () => 'date',
  json: () => 'jsonb',
  bytes: () => 'bytea',
  array: ({ of }) => `${of === undefined ? 'text' : postgresTypes[of.kind](of)}[]`,
};

export function columnType(column: ColumnDefinition, dialect: Dialect): string {
  return (dialect === 'sqlite' ? sqliteTypes : postgresTypes)[column.kind](column);
}

/** Text sorts by code point on both databases: SQLite does so anyway, PostgreSQL only when told. */
function collation(column: ColumnDefinition): string {
  return column.kind === 'text' || column.kind === 'enum' ? ' collate "C"' : '';
}

const UUID_V4_SQLITE = `(lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))))`;

/** A database default in SQL. */
export function defaultSql(column: ColumnDefinition, dialect: Dialect): string | undefined {
  const { dbDefault, kind } = column;
  if (dbDefault === undefined) return undefined;
  if ('make' in dbDefault) {
    if (dbDefault.make === 'now') return dialect === 'sqlite' ? `(strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))` : 'now()';
    return dialect === 'sqlite' ? UUID_V4_SQLITE : 'gen_random_uuid()';
  }
  const { value } = dbDefault;
  if (typeof value === 'boolean') return dialect === 'sqlite' ? String(Number(value)) : String(value);
  if (typeof value === 'number' || kind === 'bigint') return String(value);
  if (kind === 'decimal') return quoteText(parseDecimal(value, column.scale ?? 0) ?? value);
  if (kind === 'array' && dialect === 'postgres') return quoteText(String(encodePostgres(JSON.parse(value))));
  return quoteText(value);
}

/** The rule that keeps SQLite as strict as PostgreSQL's types, or an enum's values; undefined when the type says it all. */
export function columnCheck(name: string, column: ColumnDefinition, dialect: Dialect): string | undefined {
  const quoted = quoteName(name);
  if (column.kind === 'enum') return `${quoted} in (${(column.values ?? []).map(quoteText).join(', ')})`;
  if (dialect === 'postgres') return undefined;
  switch (column.kind) {
    case 'text':
      return column.max === undefined ? undefined : `length(${quoted}) <= ${column.max}`;
    case 'int':
      return `${quoted} between -2147483648 and 2147483647`;
    case 'bigint':
      return `typeof(${quoted}) in ('integer', 'null')`;
    case 'bool':
      return `${quoted} in (0, 1)`;
    case 'json':
    case 'array':
      return `json_valid(${quoted})`;
    default:
      return undefined;
  }
}

export function columnCheckName(table: string, name: string): string {
  return derivedName(table, name, 'check');
}

export function referenceSql({ references }: ColumnDefinition): string | undefined {
  if (references === undefined) return undefined;
  return `references ${quoteName(references.table)} (${quoteName(references.column)}) on delete ${references.onDelete}`;
}

/** One line of CREATE TABLE, or the rest of ADD COLUMN. */
export function columnSql(table: string, name: string, column: ColumnDefinition, dialect: Dialect): string {
  const check = columnCheck(name, column, dialect);
  const defaultValue = defaultSql(column, dialect);
  return [
    quoteName(name),
    columnType(column, dialect) + (dialect === 'postgres' ? collation(column) : ''),
    column.nullable ? undefined : 'not null',
    defaultValue === undefined ? undefined : `default ${defaultValue}`,
    check === undefined ? undefined : `constraint ${quoteName(columnCheckName(table, name))} check (${check})`,
    referenceSql(column),
  ]
    .filter((part) => part !== undefined)
    .join(' ');
}

/** CREATE TABLE without its indexes; `as` builds it under another name. */
export function createTableSql(table: TableDefinition, dialect: Dialect, as = table.name): string {
  const lines = Object.entries(table.columns).map(([name, column]) => columnSql(table.name, name, column, dialect));
  lines.push(`constraint ${quoteName(derivedName(table.name, 'pkey'))} primary key (${table.primaryKey.map(quoteName).join(', ')})`);
  for (const [name, sql] of Object.entries(table.checks)) lines.push(`constraint ${quoteName(name)} check (${sql})`);
  return `create table ${quoteName(as)} (\n  ${lines.join(',\n  ')}\n)`;
}

/** `table` as it is when the index is made: descending indexes put NULLs where ORDER BY has them, last. */
export function createIndexSql(table: TableDefinition, index: IndexDefinition, dialect: Dialect): string {
  const columns = index.columns.map((column) => indexColumnSql(table, column, dialect));
  const where = index.where === undefined ? '' : ` where ${index.where}`;
  return `create ${index.unique ? 'unique ' : ''}index ${quoteName(index.name)} on ${quoteName(table.name)} (${columns.join(', ')})${where}`;
}

function indexColumnSql(table: TableDefinition, column: string, dialect: Dialect): string {
  if (!column.startsWith('-')) return quoteName(column);
  const name = column.slice(1);
  // SQLite has NULLs last when descending, and no words for it in an index.
  return `${quoteName(name)} desc${dialect === 'postgres' && columnOf(table, name).nullable ? ' nulls last' : ''}`;
}

/** Everything that makes a table, in order. */
export function tableStatements(table: TableDefinition, dialect: Dialect): string[] {
  requireArguments(
    'tableStatements()',
    { table },
    {
      table: rule(
        'the table of a model: orders.table',
        (value) => isMembers(value) && isMembers(value['columns']) && Array.isArray(value['indexes']),
      ),
    },
  );
  return [
    createTableSql(table, dialect),
    ...table.indexes.map((index) => createIndexSql(table, index, dialect)),
    ...(table.fullText ?? []).flatMap((each) => createFullTextSql(table, each, dialect)),
  ];
}
