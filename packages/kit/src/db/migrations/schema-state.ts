import { columnNameFault, tableNameFault } from '../declare/names.ts';
import { fullTextFaults } from '../declare/full-text.ts';
import {
  columnOf,
  type ColumnDefinition,
  type FullTextDefinition,
  type IndexDefinition,
  suggestion,
  type TableDefinition,
} from '../declare/table-definition.ts';
import type { Operation } from './operation.ts';

/** The tables as the migrations so far have left them. */
export type SchemaState = ReadonlyMap<string, TableDefinition>;

/** What an operation makes of the tables. Throws a sentence when it does not fit them. */
export function applyOperation(state: SchemaState, operation: Operation): SchemaState {
  if (operation.op === 'sql' || operation.op === 'code') return state;
  if (operation.op === 'create_table') return createIn(state, operation.definition);
  const table = tableIn(state, operation.table);
  const next = new Map(state);
  switch (operation.op) {
    case 'drop_table':
      refuseReferred(state, operation.table);
      next.delete(operation.table);
      break;
    case 'rename_table':
      return renameIn(state, table, operation.to);
    case 'rename_column':
      return renameColumnIn(state, table, operation.column, operation.to);
    default:
      next.set(operation.table, changed(state, table, operation));
  }
  return next;
}

export function tableIn(state: SchemaState, name: string): TableDefinition {
  const table = state.get(name);
  if (table === undefined) throw new Error(`there is no table "${name}"${suggestion(name, [...state.keys()])}`);
  return table;
}

type TableChange = Extract<
  Operation,
  {
    op:
      | 'add_column'
      | 'alter_column'
      | 'drop_column'
      | 'create_index'
      | 'drop_index'
      | 'add_check'
      | 'drop_check'
      | 'create_full_text'
      | 'drop_full_text';
  }
>;

function changed(state: SchemaState, table: TableDefinition, operation: TableChange): TableDefinition {
  switch (operation.op) {
    case 'add_column':
      if (Object.hasOwn(table.columns, operation.column))
        throw new Error(`table "${table.name}" already has a column "${operation.column}"`);
      refuseName(columnNameFault(operation.column), operation.column);
      checkReference(state, table, operation.column, operation.definition);
      return { ...table, columns: { ...table.columns, [operation.column]: operation.definition } };
    case 'alter_column':
      columnOf(table, operation.column);
      checkReference(state, table, operation.column, operation.definition);
      return withFullText({ ...table, columns: { ...table.columns, [operation.column]: operation.definition } }, table.fullText ?? []);
    case 'drop_column':
      return withoutColumn(table, operation.column);
    case 'create_index':
      if (indexNames(state).has(operation.index.name)) throw new Error(`there already is an index "${operation.index.name}"`);
      for (const column of operation.index.columns) columnOf(table, column.replace(/^-/, ''));
      return { ...table, indexes: [...table.indexes, operation.index] };
    case 'drop_index':
      if (!table.indexes.some((index) => index.name === operation.name)) {
        throw new Error(
          `table "${table.name}" has no index "${operation.name}"${suggestion(
            operation.name,
            table.indexes.map((index) => index.name),
          )}`,
        );
      }
      return { ...table, indexes: table.indexes.filter((index) => index.name !== operation.name) };
    case 'create_full_text':
      if (fullTextNames(state).has(operation.fullText.name)) throw new Error(`there already is a full text "${operation.fullText.name}"`);
      return withFullText(table, [...(table.fullText ?? []), operation.fullText]);
    case 'drop_full_text':
      fullTextOf(table, operation.name);
      return withFullText(
        table,
        (table.fullText ?? []).filter((each) => each.name !== operation.name),
      );
    case 'add_check':
      if (Object.hasOwn(table.checks, operation.name)) throw new Error(`table "${table.name}" already has a check "${operation.name}"`);
      return { ...table, checks: { ...table.checks, [operation.name]: operation.sql } };
    default: {
      if (!Object.hasOwn(table.checks, operation.name)) throw new Error(`table "${table.name}" has no check "${operation.name}"`);
      const { [operation.name]: _dropped, ...checks } = table.checks;
      return { ...table, checks };
    }
  }
}

/** Absent where there is none, as in a table that never had any. */
function withFullText({ fullText: _before, ...table }: TableDefinition, fullText: readonly FullTextDefinition[]): TableDefinition {
  const kinds = new Map(Object.entries(table.columns).map(([name, { kind }]) => [name, kind]));
  const [fault] = fullTextFaults(fullText, kinds);
  if (fault !== undefined) throw new Error(fault);
  return fullText.length === 0 ? table : { ...table, fullText };
}

/** The full text of a table by its name; throws when there is none. */
export function fullTextOf(table: TableDefinition, name: string): FullTextDefinition {
  const declared = table.fullText ?? [];
  const found = declared.find((each) => each.name === name);
  if (found !== undefined) return found;
  const hint = suggestion(
    name,
    declared.map((each) => each.name),
  );
  throw new Error(`table "${table.name}" has no full text "${name}"${hint}`);
}

function fullTextNames(state: SchemaState): Set<string> {
  return new Set([...state.values()].flatMap(({ fullText = [] }) => fullText.map(({ name }) => name)));
}

function createIn(state: SchemaState, table: TableDefinition): SchemaState {
  if (state.has(table.name)) throw new Error(`there already is a table "${table.name}"`);
  const taken = indexNames(state);
  for (const index of table.indexes) if (taken.has(index.name)) throw new Error(`there already is an index "${index.name}"`);
  const searched = fullTextNames(state);
  for (const { name } of table.fullText ?? []) if (searched.has(name)) throw new Error(`there already is a full text "${name}"`);
  const next = new Map(state).set(table.name, table);
  for (const [name, column] of Object.entries(table.columns)) checkReference(next, table, name, column);
  return next;
}

function refuseReferred(state: SchemaState, name: string): void {
  for (const table of state.values()) {
    const referring = Object.entries(table.columns).find(([, column]) => table.name !== name && column.references?.table === name);
    if (referring !== undefined)
      throw new Error(`"${name}" is referenced by "${table.name}.${referring[0]}": change or drop that column first`);
  }
}

function withoutColumn(table: TableDefinition, name: string): TableDefinition {
  columnOf(table, name);
  if (table.primaryKey.includes(name)) throw new Error(`"${table.name}.${name}" is part of the primary key and cannot be dropped`);
  const used = table.indexes.find(
    (index) => index.columns.some((column) => column.replace(/^-/, '') === name) || mentions(index.where, name),
  );
  if (used !== undefined) throw new Error(`"${table.name}.${name}" is used by index "${used.name}": drop the index first`);
  const searched = table.fullText?.find((each) => each.columns.includes(name));
  if (searched !== undefined) throw new Error(`"${table.name}.${name}" is used by full text "${searched.name}": drop the full text first`);
  const { [name]: _dropped, ...columns } = table.columns;
  return { ...table, columns };
}

function renameIn(state: SchemaState, table: TableDefinition, to: string): SchemaState {
  if (state.has(to)) throw new Error(`there already is a table "${to}"`);
  refuseName(tableNameFault(to), to);
  const next = new Map<string, TableDefinition>();
  for (const [name, each] of state) {
    const columns = mapReferences(each, (reference) => (reference.table === table.name ? { ...reference, table: to } : reference));
    next.set(name === table.name ? to : name, { ...each, columns, name: name === table.name ? to : name });
  }
  return next;
}

function renameColumnIn(state: SchemaState, table: TableDefinition, from: string, to: string): SchemaState {
  columnOf(table, from);
  refuseName(columnNameFault(to), to);
  if (Object.hasOwn(table.columns, to)) throw new Error(`table "${table.name}" already has a column "${to}"`);
  const swap = (name: string): string => (name === from ? to : name);
  const next = new Map<string, TableDefinition>();
  for (const [name, each] of state) {
    const columns = mapReferences(each, (reference) =>
      reference.table === table.name && reference.column === from ? { ...reference, column: to } : reference,
    );
    next.set(name, { ...each, columns });
  }
  const renamed = tableIn(next, table.name);
  next.set(table.name, {
    ...renamed,
    columns: Object.fromEntries(Object.entries(renamed.columns).map(([name, column]) => [swap(name), column])),
    primaryKey: renamed.primaryKey.map(swap),
    indexes: renamed.indexes.map((index) => renameInIndex(index, from, to)),
    ...(renamed.fullText === undefined ? {} : { fullText: renamed.fullText.map((each) => ({ ...each, columns: each.columns.map(swap) })) }),
    checks: Object.fromEntries(Object.entries(renamed.checks).map(([name, sql]) => [name, sql.replaceAll(word(from), to)])),
  });
  return next;
}

function renameInIndex(index: IndexDefinition, from: string, to: string): IndexDefinition {
  return {
    ...index,
    columns: index.columns.map((column) => (column === from ? to : column === `-${from}` ? `-${to}` : column)),
    ...(index.where === undefined ? {} : { where: index.where.replaceAll(word(from), to) }),
  };
}

type Change = (reference: NonNullable<ColumnDefinition['references']>) => NonNullable<ColumnDefinition['references']>;

function mapReferences(table: TableDefinition, change: Change): Record<string, ColumnDefinition> {
  return Object.fromEntries(
    Object.entries(table.columns).map(([name, column]) => [
      name,
      column.references === undefined ? column : { ...column, references: change(column.references) },
    ]),
  );
}

function checkReference(state: SchemaState, table: TableDefinition, name: string, column: ColumnDefinition): void {
  if (column.references === undefined) return;
  const target = state.get(column.references.table);
  if (target === undefined) return; // a table made by sql(): the database checks it
  const pointed = columnOf(target, column.references.column);
  if (pointed.kind === column.kind) return;
  throw new Error(
    `"${table.name}.${name}" is a ${column.kind} but references "${target.name}.${column.references.column}", a ${pointed.kind}: give t.ref a type`,
  );
}

function indexNames(state: SchemaState): Set<string> {
  return new Set([...state.values()].flatMap((table) => table.indexes.map((index) => index.name)));
}

function refuseName(fault: string | undefined, name: string): void {
  if (fault !== undefined) throw new Error(`"${name}": ${fault}`);
}

function mentions(text: string | undefined, name: string): boolean {
  return text !== undefined && word(name).test(text);
}

function word(name: string): RegExp {
  return new RegExp(String.raw`\b${name}\b`, 'g');
}
