import type { Database } from '../engine/db.ts';
import type { Model } from '../declare/model.ts';
import { columnCheck, columnCheckName, columnType } from '../sql/ddl.ts';
import type { Dialect } from '../dialect.ts';
import { columnOf, type IndexDefinition, type TableDefinition } from '../declare/table-definition.ts';
import { findTable, type FoundTable } from './found-schema.ts';
import { fullTextDrift } from './full-text-drift.ts';
import { compareHistory, newerMigrations, readHistory } from './history.ts';
import type { Operation } from './operation.ts';
import { type MigrationModule, planMigrations } from './plan.ts';
import { diffSchemas } from './schema-diff.ts';
import type { SchemaState } from './schema-state.ts';
import { requireArguments } from '../../options/read-options.ts';
import { aList } from '../../options/value-rule.ts';

export interface Drift {
  /** Where models and migrations differ: a migration is missing. */
  readonly models: readonly string[];
  /** Where the database differs from its applied migrations: it was changed by hand, or by a newer version. */
  readonly database: readonly string[];
  /** What the database has besides, and what this version can read and write without: a column that may be left out, a default, NULL allowed by a newer version. */
  readonly additions: readonly string[];
}

/**
 * `addition`: statements of this version work as before. `unwritable`: they fail, or some of them. `other`: the tables differ and the
 * statements work, more slowly or with fewer checks.
 */
interface Difference {
  readonly kind: 'addition' | 'unwritable' | 'other';
  readonly sentence: string;
}

/** Compares models with migrations and, when a database is given, the database with the migrations applied to it. */
export async function checkDrift(modules: readonly MigrationModule[], database?: Database): Promise<Drift> {
  requireArguments('checkDrift()', { modules }, { modules: aList });
  const found = database === undefined ? [] : await differences(modules, database);
  const sentences = (isAddition: boolean): string[] =>
    found.filter(({ kind }) => (kind === 'addition') === isAddition).map(({ sentence }) => sentence);
  return { models: modelDrift(modules), database: sentences(false), additions: sentences(true) };
}

/** Why statements of this version fail on tables that others changed: a sentence per table, column or key. */
export async function unwritableTables(modules: readonly MigrationModule[], database: Database): Promise<string[]> {
  return (await differences(modules, database)).filter(({ kind }) => kind === 'unwritable').map(({ sentence }) => sentence);
}

/** Where the tables of the models differ from what the models declare, whoever created them. Tables with more than that are no difference. */
export async function declaredDrift(database: Database, models: readonly Model[]): Promise<string[]> {
  const found: Difference[] = [];
  for (const { table } of models) {
    const actual = await findTable(database, table.name);
    if (actual === undefined) found.push(unwritable(`Table "${table.name}" is missing from the database.`));
    else found.push(...tableDifferences(table, actual, database.dialect, false));
  }
  return found.filter(({ kind }) => kind !== 'addition').map(({ sentence: text }) => text.replace('in the migrations', 'in the model'));
}

/**
 * Where models need other tables than the migrations make. Needs no database: what `kit migrate --check` asks first. Columns that are left over
 * are no difference: see {@link leftColumns}.
 */
export function modelDrift(modules: readonly MigrationModule[]): string[] {
  return modelDifferences(modules)
    .filter(({ isLeft }) => !isLeft)
    .map(({ operation }) => sentence(operation));
}

/**
 * Columns that the migrations make and no model has any more, and that rows can be written without: a release that stops reading a column leaves it
 * for the processes of the release before. A later migration drops it.
 */
export function leftColumns(modules: readonly MigrationModule[]): string[] {
  return modelDifferences(modules).flatMap(({ operation, isLeft }) =>
    isLeft && operation.op === 'drop_column' ? [`${operation.table}.${operation.column}`] : [],
  );
}

interface ModelDifference {
  readonly operation: Operation;
  /** Of a column that is left over, or of an index, check or full text that it is in. */
  readonly isLeft: boolean;
}

/** What a next migration would have to say. */
export function modelDifferences(modules: readonly MigrationModule[]): ModelDifference[] {
  const { end } = planMigrations(modules);
  return modules.flatMap(({ models = [] }) => {
    const described = new Map<string, TableDefinition>();
    for (const { name } of models) {
      const table = end.get(name);
      if (table !== undefined) described.set(name, table);
    }
    const operations = diffSchemas(
      described,
      models.map((each) => each.table),
    );
    return operations.map((operation) => ({ operation, isLeft: isLeft(operation, described, operations) }));
  });
}

function isLeft(operation: Operation, tables: SchemaState, all: readonly Operation[]): boolean {
  if (!('table' in operation)) return false;
  const table = tables.get(operation.table);
  if (table === undefined) return false;
  const left = all.flatMap((each) => {
    if (each.op !== 'drop_column' || each.table !== table.name) return [];
    const { nullable, dbDefault } = columnOf(table, each.column);
    return nullable || dbDefault !== undefined ? [each.column] : [];
  });
  const mentionsLeft = (text: string): boolean => left.some((column) => new RegExp(String.raw`\b${column}\b`).test(text));
  switch (operation.op) {
    case 'drop_column':
      return left.includes(operation.column);
    case 'drop_index': {
      const index = table.indexes.find(({ name }) => name === operation.name);
      return index !== undefined && !index.unique && index.columns.some((column) => left.includes(column.replace(/^-/, '')));
    }
    case 'drop_check':
      return mentionsLeft(table.checks[operation.name] ?? '');
    case 'drop_full_text':
      return table.fullText?.find(({ name }) => name === operation.name)?.columns.some((column) => left.includes(column)) === true;
    default:
      return false;
  }
}

function sentence(operation: Operation): string {
  switch (operation.op) {
    case 'create_table':
      return `Table "${operation.table}" has a model but no migration creates it.`;
    case 'add_column':
      return `Column "${operation.table}.${operation.column}" is in the model but in no migration.`;
    case 'alter_column':
      return `Column "${operation.table}.${operation.column}" differs between the model and the migrations.`;
    case 'drop_column':
      return `Column "${operation.table}.${operation.column}" is in the migrations but no longer in the model.`;
    case 'create_index':
      return `Index "${operation.index.name}" of "${operation.table}" is in the model but in no migration.`;
    case 'drop_index':
      return `Index "${operation.name}" of "${operation.table}" is in the migrations but is missing or different in the model.`;
    case 'add_check':
      return `Check "${operation.name}" of "${operation.table}" is in the model but in no migration.`;
    case 'drop_check':
      return `Check "${operation.name}" of "${operation.table}" is in the migrations but is missing or different in the model.`;
    case 'create_full_text':
      return `Full text "${operation.fullText.name}" of "${operation.table}" is in the model but in no migration.`;
    case 'drop_full_text':
      return `Full text "${operation.name}" of "${operation.table}" is in the migrations but is missing or different in the model.`;
    default:
      return `Operation ${operation.op} is missing from the migrations.`;
  }
}

async function differences(modules: readonly MigrationModule[], database: Database): Promise<Difference[]> {
  const found: Difference[] = [];
  const { tables, isNewer } = await appliedState(modules, database);
  for (const table of tables.values()) {
    const actual = await findTable(database, table.name);
    if (actual === undefined) found.push(unwritable(`Table "${table.name}" is missing from the database.`));
    else {
      found.push(...tableDifferences(table, actual, database.dialect, isNewer));
      for (const fullText of table.fullText ?? []) found.push(...(await fullTextDrift(database, table, fullText)).map(other));
    }
  }
  return found;
}

const addition = (sentence: string): Difference => ({ kind: 'addition', sentence });
const unwritable = (sentence: string): Difference => ({ kind: 'unwritable', sentence });
const other = (sentence: string): Difference => ({ kind: 'other', sentence });

/** The tables as the migrations that this database has seen left them, and whether it has seen some that this version does not have. */
async function appliedState(
  modules: readonly MigrationModule[],
  database: Database,
): Promise<{ readonly tables: SchemaState; readonly isNewer: boolean }> {
  const plan = planMigrations(modules);
  const history = await readHistory(database);
  const { pending } = compareHistory(plan, history);
  const left = new Set(pending.map((step) => step.id));
  const applied = modules.map(({ name, migrations = [] }) => ({
    name,
    migrations: migrations.filter((each) => !left.has(`${name}/${each.name}`)),
  }));
  return { tables: planMigrations(applied).end, isNewer: newerMigrations(modules, history).length > 0 };
}

function tableDifferences(table: TableDefinition, found: FoundTable, dialect: Dialect, isNewer: boolean): Difference[] {
  const differences: Difference[] = [];
  if (table.primaryKey.join() !== found.primaryKey.join()) {
    differences.push(
      unwritable(
        `The primary key of "${table.name}" is (${found.primaryKey.join(', ')}) in the database, (${table.primaryKey.join(', ')}) in the migrations.`,
      ),
    );
  }
  for (const name of Object.keys(table.columns)) differences.push(...columnDifferences(table, name, found, dialect, isNewer));
  for (const [name, { nullable, hasDefault }] of found.columns) {
    if (Object.hasOwn(table.columns, name) || table.fullText?.some((each) => each.name === name) === true) continue;
    const place = `Column "${table.name}.${name}" is in the database but in no migration`;
    differences.push(nullable || hasDefault ? addition(`${place}.`) : unwritable(`${place}, and every new row needs a value for it.`));
  }
  differences.push(...indexDifferences(table, found, isNewer));
  for (const name of Object.keys(table.checks))
    if (!found.checks.has(name)) differences.push(other(`Check "${name}" of "${table.name}" is missing from the database.`));
  return differences;
}

/** Keys that are the number of the row on SQLite, which has 64 bits in a column of the type `integer`. */
const ROW_NUMBERS: ReadonlySet<string> = new Set(['kit_changes.position']);

function columnDifferences(table: TableDefinition, name: string, found: FoundTable, dialect: Dialect, isNewer: boolean): Difference[] {
  const place = `Column "${table.name}.${name}"`;
  const column = table.columns[name];
  const actual = found.columns.get(name);
  if (column === undefined) return [];
  if (actual === undefined) return [unwritable(`${place} is missing from the database.`)];
  const differences: Difference[] = [];
  const type = columnType(column, dialect);
  if (actual.type !== type && !(dialect === 'sqlite' && ROW_NUMBERS.has(`${table.name}.${name}`)))
    differences.push(unwritable(`${place} is ${actual.type} in the database, ${type} in the migrations.`));
  if (actual.nullable && !column.nullable) {
    // A newer version may have made the column optional; by hand it is a constraint that was lost.
    const allows = `${place} allows NULL in the database, but not in the migrations.`;
    differences.push(isNewer ? addition(allows) : other(allows));
  }
  if (!actual.nullable && column.nullable)
    differences.push(unwritable(`${place} refuses NULL in the database, but not in the migrations.`));
  if (actual.hasDefault && column.dbDefault === undefined) differences.push(addition(`${place} has a default that no migration gave it.`));
  if (!actual.hasDefault && column.dbDefault !== undefined) {
    const lacks = `${place} lacks the default of the migrations.`;
    differences.push(actual.nullable ? other(lacks) : unwritable(lacks));
  }
  const reference = found.references.get(name);
  const wanted = column.references;
  if (reference?.table !== wanted?.table || reference?.column !== wanted?.column || reference?.onDelete !== wanted?.onDelete) {
    differences.push(other(`${place} refers to ${spell(reference)} in the database, to ${spell(wanted)} in the migrations.`));
  }
  if (columnCheck(name, column, dialect) !== undefined && !found.checks.has(columnCheckName(table.name, name)) && dialect === 'postgres') {
    differences.push(other(`${place} has lost its check "${columnCheckName(table.name, name)}".`));
  }
  return differences;
}

function spell(reference: { readonly table: string; readonly column: string; readonly onDelete: string } | undefined): string {
  return reference === undefined ? 'nothing' : `"${reference.table}.${reference.column}" (on delete ${reference.onDelete})`;
}

/**
 * Additional plain indexes are an operator's own business. Unique ones refuse rows: one that a newer version made is its rule, one that
 * somebody made by hand is drift.
 */
function indexDifferences(table: TableDefinition, found: FoundTable, isNewer: boolean): Difference[] {
  const differences: Difference[] = [];
  for (const index of table.indexes) {
    const actual = found.indexes.get(index.name);
    const isSame =
      actual?.unique === index.unique && actual.partial === (index.where !== undefined) && actual.columns.join() === index.columns.join();
    if (!isSame)
      differences.push(
        other(`Index "${index.name}" of "${table.name}" is ${actual === undefined ? 'missing from' : 'different in'} the database.`),
      );
    else if (actual.nullsFirst !== undefined && actual.nullsFirst.join() !== nullsFirst(table, index).join())
      differences.push(
        other(
          `Index "${index.name}" of "${table.name}" has NULLs at another end in the database than lists have them, so that no list reads it: write a migration with dropIndex and createIndex.`,
        ),
      );
  }
  for (const [name, index] of found.indexes) {
    if (!index.unique || table.indexes.some((each) => each.name === name)) continue;
    const sentence = `Unique index "${name}" of "${table.name}" is in the database but in no migration.`;
    differences.push(isNewer ? addition(sentence) : other(sentence));
  }
  return differences;
}

/** On PostgreSQL a descending column has NULLs first unless told, and is told where there can be any. */
function nullsFirst(table: TableDefinition, index: IndexDefinition): string[] {
  return index.columns
    .filter((column) => column.startsWith('-') && !columnOf(table, column.slice(1)).nullable)
    .map((column) => column.slice(1));
}
