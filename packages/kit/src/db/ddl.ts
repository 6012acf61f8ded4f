import { parseDecimal } from './decimal.ts';
import type { Dialect } from './dialect.ts';
import { derivedName, quoteName, quoteText } from './names.ts';
import { encodePostgres } from './postgres/codec.ts';
import type { ColumnDefinition, IndexDefinition, TableDefinition } from './table-definition.ts';

/**
 * SQLite's declared types carry the codec (see sqlite/codec.ts). A name with TEXT in it has text affinity, which keeps
 * decimals exact; one with INT would turn text into numbers, hence `big`.
 */
export function sqliteType(column: ColumnDefinition): string {
  switch (column.kind) {
    case 'uuid':
      return 'uuid_text';
    case 'text':
      return 'text';
    case 'enum':
      return 'enum_text';
    case 'int':
      return 'integer';
    case 'bigint':
      return 'bigint';
    case 'decimal':
      return `decimal_text(${column.precision},${column.scale})`;
    case 'float':
      return 'real';
    case 'bool':
      return 'boolean';
    case 'timestamp':
      return 'timestamp_text';
    case 'date':
      return 'date_text';
    case 'json':
      return 'json_text';
    case 'bytes':
      return 'blob';
    case 'array':
      return column.of?.kind === 'bigint' ? 'array_text_big' : column.of?.kind === 'timestamp' ? 'array_text_timestamp' : 'array_text';
  }
}

export function postgresType(column: ColumnDefinition): string {
  switch (column.kind) {
    case 'text':
      return column.max === undefined ? 'text' : `character varying(${column.max})`;
    case 'enum':
      return 'text';
    case 'int':
      return 'integer';
    case 'decimal':
      return `numeric(${column.precision},${column.scale})`;
    case 'float':
      return 'double precision';
    case 'bool':
      return 'boolean';
    case 'timestamp':
      return 'timestamp(3) with time zone';
    case 'json':
      return 'jsonb';
    case 'bytes':
      return 'bytea';
    case 'array':
      return `${column.of === undefined ? 'text' : postgresType(column.of)}[]`;
    case 'uuid':
    case 'bigint':
    case 'date':
      return column.kind;
  }
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
    dialect === 'sqlite' ? sqliteType(column) : postgresType(column) + collation(column),
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

export function createIndexSql(table: string, index: IndexDefinition): string {
  const columns = index.columns.map((column) => (column.startsWith('-') ? `${quoteName(column.slice(1))} desc` : quoteName(column)));
  const where = index.where === undefined ? '' : ` where ${index.where}`;
  return `create ${index.unique ? 'unique ' : ''}index ${quoteName(index.name)} on ${quoteName(table)} (${columns.join(', ')})${where}`;
}

/** Everything that makes a table, in order. */
export function tableStatements(table: TableDefinition, dialect: Dialect): string[] {
  return [createTableSql(table, dialect), ...table.indexes.map((index) => createIndexSql(table.name, index))];
}
