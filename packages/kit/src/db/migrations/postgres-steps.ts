import {
  columnCheck,
  columnCheckName,
  columnSql,
  columnType,
  createIndexSql,
  defaultSql,
  referenceSql,
  tableStatements,
} from '../sql/ddl.ts';
import { createFullTextSql, dropFullTextSql } from '../declare/full-text.ts';
import { derivedName, quoteName as q } from '../declare/names.ts';
import { columnOf, type ColumnDefinition, type TableDefinition } from '../declare/table-definition.ts';
import type { SqlText } from '../sql/sql-text.ts';
import type { Operation } from './operation.ts';
import { fullTextOf, type SchemaState, tableIn } from './schema-state.ts';

/** The statements of one operation on PostgreSQL, where ALTER TABLE can do it all. */
export function postgresStatements(operation: Exclude<Operation, { op: 'code' }>, before: SchemaState): readonly string[] {
  switch (operation.op) {
    case 'create_table':
      return tableStatements(operation.definition, 'postgres');
    case 'drop_table':
      return [`drop table ${q(operation.table)}`];
    case 'rename_table':
      return renameTable(before, operation.table, operation.to);
    case 'add_column':
      return addColumn(operation);
    case 'alter_column':
      return alterColumn(operation, tableIn(before, operation.table));
    case 'drop_column':
      return [`alter table ${q(operation.table)} drop column ${q(operation.column)}`];
    case 'rename_column':
      return renameColumn(before, operation.table, operation.column, operation.to);
    case 'create_index':
      return [createIndexSql(tableIn(before, operation.table), operation.index, 'postgres')];
    case 'drop_index':
      return [`drop index ${q(operation.name)}`];
    case 'add_check':
      return [`alter table ${q(operation.table)} add constraint ${q(operation.name)} check (${operation.sql})`];
    case 'drop_check':
      return [`alter table ${q(operation.table)} drop constraint ${q(operation.name)}`];
    case 'create_full_text':
      return createFullTextSql(tableIn(before, operation.table), operation.fullText, 'postgres');
    case 'drop_full_text': {
      const table = tableIn(before, operation.table);
      return dropFullTextSql(table, fullTextOf(table, operation.name), 'postgres');
    }
    default:
      return operation.postgres;
  }
}

export function textFor(dialect: 'sqlite' | 'postgres', text: SqlText): string {
  return typeof text === 'string' ? text : text[dialect];
}

function addColumn({ table, column, definition, backfill }: Extract<Operation, { op: 'add_column' }>): string[] {
  if (backfill === undefined) return [`alter table ${q(table)} add column ${columnSql(table, column, definition, 'postgres')}`];
  return [
    `alter table ${q(table)} add column ${columnSql(table, column, { ...definition, nullable: true }, 'postgres')}`,
    `update ${q(table)} set ${q(column)} = ${textFor('postgres', backfill)}`,
    ...(definition.nullable ? [] : [`alter table ${q(table)} alter column ${q(column)} set not null`]),
  ];
}

function alterColumn(operation: Extract<Operation, { op: 'alter_column' }>, before: TableDefinition): string[] {
  const { table, column, definition, backfill, using } = operation;
  const old = columnOf(before, column);
  const alter = `alter table ${q(table)}`;
  const statements: string[] = [];
  const searched = (before.fullText ?? []).filter(({ columns }) => columns.includes(column));
  const [oldCheck, newCheck] = [columnCheck(column, old, 'postgres'), columnCheck(column, definition, 'postgres')];
  const [oldReference, newReference] = [referenceSql(old), referenceSql(definition)];
  const [oldDefault, newDefault] = [defaultSql(old, 'postgres'), defaultSql(definition, 'postgres')];
  const typeChanges = columnType(old, 'postgres') !== columnType(definition, 'postgres');

  // The type of a column that a generated one reads cannot change.
  if (typeChanges) statements.push(...searched.flatMap((each) => dropFullTextSql(before, each, 'postgres')));
  if (oldReference !== undefined && oldReference !== newReference)
    statements.push(`${alter} drop constraint ${q(foreignKeyName(table, column))}`);
  if (oldCheck !== undefined && oldCheck !== newCheck) statements.push(`${alter} drop constraint ${q(columnCheckName(table, column))}`);
  // A default of the old type would have to be cast along with the column.
  if (oldDefault !== undefined && (typeChanges || oldDefault !== newDefault))
    statements.push(`${alter} alter column ${q(column)} drop default`);
  if (typeChanges) {
    const collate = definition.kind === 'text' || definition.kind === 'enum' ? ' collate "C"' : '';
    const expression = using === undefined ? '' : ` using ${textFor('postgres', using)}`;
    statements.push(`${alter} alter column ${q(column)} type ${columnType(definition, 'postgres')}${collate}${expression}`);
  } else if (using !== undefined) {
    statements.push(`update ${q(table)} set ${q(column)} = ${textFor('postgres', using)}`);
  }
  if (newDefault !== undefined && (typeChanges || oldDefault !== newDefault))
    statements.push(`${alter} alter column ${q(column)} set default ${newDefault}`);
  if (backfill !== undefined)
    statements.push(`update ${q(table)} set ${q(column)} = ${textFor('postgres', backfill)} where ${q(column)} is null`);
  if (old.nullable !== definition.nullable)
    statements.push(`${alter} alter column ${q(column)} ${definition.nullable ? 'drop' : 'set'} not null`);
  if (newCheck !== undefined && oldCheck !== newCheck)
    statements.push(`${alter} add constraint ${q(columnCheckName(table, column))} check (${newCheck})`);
  if (newReference !== undefined && oldReference !== newReference) {
    statements.push(`${alter} add constraint ${q(foreignKeyName(table, column))} foreign key (${q(column)}) ${newReference}`);
  }
  if (old.nullable !== definition.nullable) statements.push(...rebuildDescending(before, column, definition));
  if (typeChanges) statements.push(...searched.flatMap((each) => createFullTextSql(before, each, 'postgres')));
  return statements;
}

/** Where a descending index has NULLs depends on whether its column can hold them. */
function rebuildDescending(before: TableDefinition, column: string, definition: ColumnDefinition): string[] {
  const after = { ...before, columns: { ...before.columns, [column]: definition } };
  return before.indexes.flatMap((index) =>
    index.columns.includes(`-${column}`) ? [`drop index ${q(index.name)}`, createIndexSql(after, index, 'postgres')] : [],
  );
}

/** PostgreSQL names an inline reference so. */
export function foreignKeyName(table: string, column: string): string {
  return derivedName(table, column, 'fkey');
}

/** Constraints carry the table's name; later migrations look for them under the new one. */
function renameTable(before: SchemaState, from: string, to: string): string[] {
  const statements = [
    `alter table ${q(from)} rename to ${q(to)}`,
    renameConstraint(to, derivedName(from, 'pkey'), derivedName(to, 'pkey')),
  ];
  for (const [name, column] of Object.entries(tableIn(before, from).columns))
    statements.push(...renameColumnConstraints(to, [from, name], [to, name], column));
  return statements;
}

function renameColumn(before: SchemaState, table: string, from: string, to: string): string[] {
  const column = columnOf(tableIn(before, table), from);
  return [
    `alter table ${q(table)} rename column ${q(from)} to ${q(to)}`,
    ...renameColumnConstraints(table, [table, from], [table, to], column),
  ];
}

type Place = readonly [table: string, column: string];

function renameColumnConstraints(table: string, from: Place, to: Place, column: ColumnDefinition): string[] {
  return [
    ...(columnCheck(from[1], column, 'postgres') === undefined
      ? []
      : [renameConstraint(table, columnCheckName(...from), columnCheckName(...to))]),
    ...(column.references === undefined ? [] : [renameConstraint(table, foreignKeyName(...from), foreignKeyName(...to))]),
  ];
}

function renameConstraint(table: string, from: string, to: string): string {
  return `alter table ${q(table)} rename constraint ${q(from)} to ${q(to)}`;
}
