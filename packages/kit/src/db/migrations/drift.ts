import type { Database } from '../db.ts';
import { columnCheck, columnCheckName, columnType } from '../ddl.ts';
import type { Dialect } from '../dialect.ts';
import { columnOf, type IndexDefinition, type TableDefinition } from '../table-definition.ts';
import { findTable, type FoundTable } from './found-schema.ts';
import { fullTextDrift } from './full-text-drift.ts';
import { compareHistory, readHistory } from './history.ts';
import type { Operation } from './operation.ts';
import { type MigrationModule, planMigrations } from './plan.ts';
import { diffSchemas } from './schema-diff.ts';
import type { SchemaState } from './schema-state.ts';
import { requireArguments } from '../../options/read-options.ts';
import { aList } from '../../options/value-rule.ts';

export interface Drift {
  /** Where models and migrations differ: a migration is missing. */
  readonly models: readonly string[];
  /** Where the database differs from its applied migrations: it was changed by hand. */
  readonly database: readonly string[];
}

/** Compares models with migrations and, when a database is given, the database with the migrations applied to it. */
export async function checkDrift(modules: readonly MigrationModule[], database?: Database): Promise<Drift> {
  requireArguments('checkDrift()', { modules }, { modules: aList });
  return { models: modelDrift(modules), database: database === undefined ? [] : await databaseDrift(modules, database) };
}

/** Needs no database: what `kit migrate --check` asks first. */
export function modelDrift(modules: readonly MigrationModule[]): string[] {
  const { end } = planMigrations(modules);
  return modules.flatMap(({ models = [] }) => {
    const described = new Map<string, TableDefinition>();
    for (const { name } of models) {
      const table = end.get(name);
      if (table !== undefined) described.set(name, table);
    }
    return diffSchemas(
      described,
      models.map((each) => each.table),
    ).map(sentence);
  });
}

function sentence(operation: Operation): string {
  switch (operation.op) {
    case 'create_table':
      return `Table "${operation.table}" has a model but no migration creates it.`;
    case 'add_column':
      return `Column "${operation.table}.${operation.column}" is in the model but in no migration.`;
    case 'alter_column':
      return `Column "${operation.table}.${operation.column}" is declared otherwise in the model than in its migrations.`;
    case 'drop_column':
      return `Column "${operation.table}.${operation.column}" is in the migrations but no longer in the model.`;
    case 'create_index':
      return `Index "${operation.index.name}" of "${operation.table}" is in the model but in no migration.`;
    case 'drop_index':
      return `Index "${operation.name}" of "${operation.table}" is in the migrations but not (so) in the model.`;
    case 'add_check':
      return `Check "${operation.name}" of "${operation.table}" is in the model but in no migration.`;
    case 'drop_check':
      return `Check "${operation.name}" of "${operation.table}" is in the migrations but not (so) in the model.`;
    case 'create_full_text':
      return `Full text "${operation.fullText.name}" of "${operation.table}" is in the model but in no migration.`;
    case 'drop_full_text':
      return `Full text "${operation.name}" of "${operation.table}" is in the migrations but not (so) in the model.`;
    default:
      return `Operation ${operation.op} is missing from the migrations.`;
  }
}

async function databaseDrift(modules: readonly MigrationModule[], database: Database): Promise<string[]> {
  const faults: string[] = [];
  for (const table of (await appliedState(modules, database)).values()) {
    const found = await findTable(database, table.name);
    if (found === undefined) faults.push(`Table "${table.name}" is missing from the database.`);
    else {
      faults.push(...tableFaults(table, found, database.dialect));
      for (const fullText of table.fullText ?? []) faults.push(...(await fullTextDrift(database, table, fullText)));
    }
  }
  return faults;
}

/** The tables as the migrations that this database has seen left them. */
async function appliedState(modules: readonly MigrationModule[], database: Database): Promise<SchemaState> {
  const plan = planMigrations(modules);
  const { pending } = compareHistory(plan, await readHistory(database));
  const left = new Set(pending.map((step) => step.id));
  const applied = modules.map(({ name, migrations = [] }) => ({
    name,
    migrations: migrations.filter((each) => !left.has(`${name}/${each.name}`)),
  }));
  return planMigrations(applied).end;
}

function tableFaults(table: TableDefinition, found: FoundTable, dialect: Dialect): string[] {
  const faults: string[] = [];
  if (table.primaryKey.join() !== found.primaryKey.join()) {
    faults.push(
      `The primary key of "${table.name}" is (${found.primaryKey.join(', ')}) in the database, (${table.primaryKey.join(', ')}) in the migrations.`,
    );
  }
  for (const name of Object.keys(table.columns)) faults.push(...columnFaults(table, name, found, dialect));
  for (const name of found.columns.keys()) {
    if (!Object.hasOwn(table.columns, name) && table.fullText?.some((each) => each.name === name) !== true)
      faults.push(`Column "${table.name}.${name}" is in the database but in no migration.`);
  }
  faults.push(...indexFaults(table, found));
  for (const name of Object.keys(table.checks))
    if (!found.checks.has(name)) faults.push(`Check "${name}" of "${table.name}" is missing from the database.`);
  return faults;
}

function columnFaults(table: TableDefinition, name: string, found: FoundTable, dialect: Dialect): string[] {
  const place = `Column "${table.name}.${name}"`;
  const column = table.columns[name];
  const actual = found.columns.get(name);
  if (column === undefined) return [];
  if (actual === undefined) return [`${place} is missing from the database.`];
  const faults: string[] = [];
  const type = columnType(column, dialect);
  if (actual.type !== type) faults.push(`${place} is ${actual.type} in the database, ${type} in the migrations.`);
  if (actual.nullable !== column.nullable)
    faults.push(`${place} ${actual.nullable ? 'allows' : 'refuses'} NULL in the database, but not in the migrations.`);
  if (actual.hasDefault !== (column.dbDefault !== undefined)) {
    faults.push(
      `${place} ${actual.hasDefault ? 'has a' : 'lacks the'} default ${actual.hasDefault ? 'that no migration gave it' : 'of the migrations'}.`,
    );
  }
  const reference = found.references.get(name);
  const wanted = column.references;
  if (reference?.table !== wanted?.table || reference?.column !== wanted?.column || reference?.onDelete !== wanted?.onDelete) {
    faults.push(`${place} refers to ${spell(reference)} in the database, to ${spell(wanted)} in the migrations.`);
  }
  if (columnCheck(name, column, dialect) !== undefined && !found.checks.has(columnCheckName(table.name, name)) && dialect === 'postgres') {
    faults.push(`${place} has lost its check "${columnCheckName(table.name, name)}".`);
  }
  return faults;
}

function spell(reference: { readonly table: string; readonly column: string; readonly onDelete: string } | undefined): string {
  return reference === undefined ? 'nothing' : `"${reference.table}.${reference.column}" (on delete ${reference.onDelete})`;
}

/** Additional plain indexes are an operator's own business; unique ones refuse rows and count as drift. */
function indexFaults(table: TableDefinition, found: FoundTable): string[] {
  const faults: string[] = [];
  for (const index of table.indexes) {
    const actual = found.indexes.get(index.name);
    const isSame =
      actual?.unique === index.unique && actual.partial === (index.where !== undefined) && actual.columns.join() === index.columns.join();
    if (!isSame)
      faults.push(`Index "${index.name}" of "${table.name}" is ${actual === undefined ? 'missing from' : 'different in'} the database.`);
    else if (actual.nullsFirst !== undefined && actual.nullsFirst.join() !== nullsFirst(table, index).join())
      faults.push(
        `Index "${index.name}" of "${table.name}" has NULLs at another end in the database than lists have them, so that no list reads it: write a migration with dropIndex and createIndex.`,
      );
  }
  for (const [name, index] of found.indexes) {
    if (index.unique && !table.indexes.some((each) => each.name === name))
      faults.push(`Unique index "${name}" of "${table.name}" is in the database but in no migration.`);
  }
  return faults;
}

/** On PostgreSQL a descending column has NULLs first unless told, and is told where there can be any. */
function nullsFirst(table: TableDefinition, index: IndexDefinition): string[] {
  return index.columns
    .filter((column) => column.startsWith('-') && !columnOf(table, column.slice(1)).nullable)
    .map((column) => column.slice(1));
}
