import { derivedName } from '../declare/names.ts';
import type { ColumnDefinition, FullTextDefinition, IndexDefinition, TableDefinition } from '../declare/table-definition.ts';
import type { SqlText } from '../sql/sql-text.ts';
import type { Operation } from './operation.ts';

/** The TypeScript that makes an operation, for the source of a migration. */
export function printOperation(operation: Operation): string {
  switch (operation.op) {
    case 'create_table':
      return printTable(operation.definition);
    case 'drop_table':
      return `dropTable(${printText(operation.table)})`;
    case 'rename_table':
      return `renameTable(${printText(operation.table)}, ${printText(operation.to)})`;
    case 'add_column':
      return `addColumn(${printText(operation.table)}, ${printText(operation.column)}, ${printColumn(operation.definition)}${options(operation)})`;
    case 'alter_column':
      return `alterColumn(${printText(operation.table)}, ${printText(operation.column)}, ${printColumn(operation.definition)}${options(operation)})`;
    case 'drop_column':
      return `dropColumn(${printText(operation.table)}, ${printText(operation.column)})`;
    case 'rename_column':
      return `renameColumn(${printText(operation.table)}, ${printText(operation.column)}, ${printText(operation.to)})`;
    case 'create_index':
      return `createIndex(${printText(operation.table)}, ${printIndex(operation.table, operation.index)})`;
    case 'drop_index':
      return `dropIndex(${printText(operation.table)}, ${printText(operation.name)})`;
    case 'add_check':
      return `addCheck(${printText(operation.table)}, ${printText(shortCheckName(operation.table, operation.name))}, ${printText(operation.sql)})`;
    case 'drop_check':
      return `dropCheck(${printText(operation.table)}, ${printText(shortCheckName(operation.table, operation.name))})`;
    case 'create_full_text':
      return `createFullText(${printText(operation.table)}, ${printFullText(operation.table, operation.fullText)})`;
    case 'drop_full_text':
      return `dropFullText(${printText(operation.table)}, ${printText(operation.name)})`;
    default:
      throw new TypeError(`A ${operation.op} operation is written by hand.`);
  }
}

/** The call of `createTable`. */
function printTable(table: TableDefinition): string {
  const columns = Object.entries(table.columns).map(([name, column]) => {
    const key = table.primaryKey.length === 1 && table.primaryKey[0] === name ? '.pk()' : '';
    return `    ${name}: ${printColumn(column)}${key},`;
  });
  const more = [
    table.primaryKey.length > 1 ? `primaryKey: [${table.primaryKey.map(printText).join(', ')}]` : undefined,
    table.indexes.length > 0
      ? `indexes: [\n${table.indexes.map((index) => `      ${printIndex(table.name, index)},`).join('\n')}\n    ]`
      : undefined,
    Object.keys(table.checks).length > 0
      ? `checks: { ${Object.entries(table.checks)
          .map(([name, sql]) => `${shortCheckName(table.name, name)}: ${printText(sql)}`)
          .join(', ')} }`
      : undefined,
    table.fullText === undefined ? undefined : `fullText: [${table.fullText.map((each) => printFullText(table.name, each)).join(', ')}]`,
  ].filter((part) => part !== undefined);
  const tail = more.length === 0 ? '' : `, {\n${more.map((part) => `    ${part},`).join('\n')}\n  }`;
  return `createTable(${printText(table.name)}, {\n${columns.join('\n')}\n  }${tail})`;
}

/** `t.text(200).nullable()`. */
export function printColumn(column: ColumnDefinition): string {
  const { references } = column;
  const base = references === undefined ? printKind(column) : printReference(column, references);
  return `${base}${column.nullable ? '.nullable()' : ''}${printDefault(column)}`;
}

function printReference(column: ColumnDefinition, references: NonNullable<ColumnDefinition['references']>): string {
  const settings = [
    references.onDelete === 'restrict' ? undefined : `onDelete: ${printText(references.onDelete)}`,
    references.column === 'id' ? undefined : `column: ${printText(references.column)}`,
    column.kind === 'uuid' ? undefined : `type: ${printKind(column)}`,
  ].filter((part) => part !== undefined);
  return `t.ref(${printText(references.table)}${settings.length === 0 ? '' : `, { ${settings.join(', ')} }`})`;
}

function printKind(column: ColumnDefinition): string {
  switch (column.kind) {
    case 'text':
      return `t.text(${column.max ?? ''})`;
    case 'decimal':
      return `t.decimal(${column.precision}, ${column.scale})`;
    case 'enum':
      return `t.enum([${(column.values ?? []).map(printText).join(', ')}])`;
    case 'array':
      return `t.array(${column.of === undefined ? 't.text()' : printKind(column.of)})`;
    default:
      return `t.${column.kind}()`;
  }
}

function printDefault({ kind, dbDefault }: ColumnDefinition): string {
  if (dbDefault === undefined) return '';
  if ('make' in dbDefault) return `.dbDefault(${printText(dbDefault.make === 'now' ? 'now' : 'random')})`;
  const { value } = dbDefault;
  if (kind === 'bigint') return `.dbDefault(${value}n)`;
  if (kind === 'json' || kind === 'array') return `.dbDefault(${value})`;
  return `.dbDefault(${typeof value === 'string' ? printText(value) : value})`;
}

/** The declaration of an index, without a name that is derived. */
export function printIndex(table: string, index: IndexDefinition): string {
  const derived = derivedName(table, ...index.columns.map((column) => column.replace(/^-/, '')), index.unique ? 'unique' : 'index');
  const parts = [
    `columns: [${index.columns.map(printText).join(', ')}]`,
    index.unique ? 'unique: true' : undefined,
    index.where === undefined ? undefined : `where: ${printText(index.where)}`,
    index.name === derived ? undefined : `name: ${printText(index.name)}`,
  ].filter((part) => part !== undefined);
  return `{ ${parts.join(', ')} }`;
}

function printFullText(table: string, { name, columns, config }: FullTextDefinition): string {
  const parts = [
    `columns: [${columns.map(printText).join(', ')}]`,
    config === 'simple' ? undefined : `config: ${printText(config)}`,
    name === derivedName(table, ...columns, 'search') ? undefined : `name: ${printText(name)}`,
  ].filter((part) => part !== undefined);
  return `{ ${parts.join(', ')} }`;
}

function shortCheckName(table: string, name: string): string {
  return name.startsWith(`${table}_`) && name.endsWith('_check') ? name.slice(table.length + 1, -'_check'.length) : name;
}

function options({ backfill, using }: { readonly backfill?: SqlText; readonly using?: SqlText }): string {
  const parts = Object.entries({ backfill, using }).flatMap(([name, sql]) => (sql === undefined ? [] : [`${name}: ${printSql(sql)}`]));
  return parts.length === 0 ? '' : `, { ${parts.join(', ')} }`;
}

function printSql(sql: SqlText): string {
  return typeof sql === 'string' ? printText(sql) : `{ sqlite: ${printText(sql.sqlite)}, postgres: ${printText(sql.postgres)} }`;
}

/** A string literal in the style of the sources: single quotes, unless the text has some. */
export function printText(value: string): string {
  if (value.includes("'") && !value.includes('"')) return JSON.stringify(value);
  return `'${JSON.stringify(value)
    .slice(1, -1)
    .replaceAll(String.raw`\"`, '"')
    .replaceAll("'", String.raw`\'`)}'`;
}
