import { columnCheck, columnCheckName, columnSql, createIndexSql, referenceSql } from '../sql/ddl.ts';
import { derivedName, quoteName as q, quoteText } from '../declare/names.ts';
import { columnOf, type ColumnDefinition } from '../declare/table-definition.ts';
import type { Operation } from './operation.ts';
import { foreignKeyName } from './postgres-steps.ts';
import { type SchemaState, tableIn } from './schema-state.ts';

/** A statement of a migration with `online: true` on PostgreSQL: it commits by itself, and a run that was killed goes on with the first that is not done. */
export interface OnlineStep {
  readonly sql: string;
  /** A query of one boolean `done`: the statement is not needed (again). */
  readonly done: string;
  /** It cannot run in a transaction, and waits for others without stopping them. */
  readonly isConcurrent: boolean;
}

export const ONLINE_ONLY =
  'online: true is for one createIndex, dropIndex, addCheck, alterColumn that adds NOT NULL or a reference, or addColumn of a nullable column without a default';

/** The statements of an operation in a form that does not stop reads and writes while it works; a sentence when there is none. */
export function onlineSteps(operation: Operation, before: SchemaState): readonly OnlineStep[] | string {
  switch (operation.op) {
    case 'create_index': {
      const name = q(operation.index.name);
      const invalid = `exists (select 1 from pg_index where indexrelid = to_regclass(${quoteText(name)}) and not indisvalid)`;
      return [
        // What a build that was killed leaves.
        concurrent(`drop index concurrently if exists ${name}`, `not ${invalid}`),
        concurrent(
          createIndexSql(tableIn(before, operation.table), operation.index, 'postgres').replace(/ index /, ' index concurrently '),
          `to_regclass(${quoteText(name)}) is not null`,
        ),
      ];
    }
    case 'drop_index': {
      const name = q(operation.name);
      return [concurrent(`drop index concurrently if exists ${name}`, `to_regclass(${quoteText(name)}) is null`)];
    }
    case 'add_check':
      return constraintSteps(operation.table, operation.name, `check (${operation.sql})`);
    case 'add_column':
      if (operation.backfill !== undefined || operation.definition.dbDefault !== undefined || !operation.definition.nullable)
        return ONLINE_ONLY;
      return addColumnSteps(operation);
    case 'alter_column':
      return alterColumnSteps(operation, before);
    default:
      return ONLINE_ONLY;
  }
}

function addColumnSteps({ table, column, definition }: Extract<Operation, { op: 'add_column' }>): OnlineStep[] {
  const { references: _references, ...plain } = definition;
  const [check, reference] = [columnCheck(column, definition, 'postgres'), referenceSql(definition)];
  const text = columnSql(table, column, plain, 'postgres').replace(/ constraint .*$/, '');
  return [
    inTransaction(
      `alter table ${q(table)} add column ${text}`,
      `exists (select 1 from pg_attribute where attrelid = ${regclass(table)} and attname = ${quoteText(column)} and not attisdropped)`,
    ),
    ...(check === undefined ? [] : constraintSteps(table, columnCheckName(table, column), `check (${check})`)),
    ...(reference === undefined ? [] : constraintSteps(table, foreignKeyName(table, column), `foreign key (${q(column)}) ${reference}`)),
  ];
}

function alterColumnSteps(
  { table, column, definition, backfill, using }: Extract<Operation, { op: 'alter_column' }>,
  before: SchemaState,
): readonly OnlineStep[] | string {
  const found = tableIn(before, table);
  const old = columnOf(found, column);
  const reference = referenceSql(definition);
  const addsReference = reference !== undefined && old.references === undefined;
  const isRequired = old.nullable && !definition.nullable;
  const rest = ({ nullable: _nullable, references: _references, ...others }: ColumnDefinition): string =>
    JSON.stringify(Object.entries(others).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  const isMore =
    rest(old) !== rest(definition) ||
    (!addsReference && reference !== referenceSql(old)) ||
    (old.nullable !== definition.nullable && !isRequired);
  if (backfill !== undefined || using !== undefined || isMore) return ONLINE_ONLY;
  if (isRequired && found.indexes.some((index) => index.columns.includes(`-${column}`)))
    return `"${table}.${column}" is descending in an index, which must be built again: drop the index in an online migration before, and create it in one after`;
  return [
    ...(isRequired ? requireSteps(table, column) : []),
    ...(addsReference ? constraintSteps(table, foreignKeyName(table, column), `foreign key (${q(column)}) ${reference}`) : []),
  ];
}

/** Since PostgreSQL 12, SET NOT NULL reads no row when a valid check says the same. */
function requireSteps(table: string, column: string): OnlineStep[] {
  const name = derivedName(table, column, 'required');
  const isRequired = `exists (select 1 from pg_attribute where attrelid = ${regclass(table)} and attname = ${quoteText(column)} and attnotnull)`;
  return [
    ...constraintSteps(table, name, `check (${q(column)} is not null)`, isRequired),
    inTransaction(`alter table ${q(table)} alter column ${q(column)} set not null`, isRequired),
    inTransaction(`alter table ${q(table)} drop constraint if exists ${q(name)}`, `not ${constraint(table, name)}`),
  ];
}

/** The rule holds for new rows first; the old ones are read while reads and writes go on. `needless`: when neither is needed. */
function constraintSteps(table: string, name: string, rule: string, needless = 'false'): OnlineStep[] {
  const alter = `alter table ${q(table)}`;
  return [
    inTransaction(`${alter} add constraint ${q(name)} ${rule} not valid`, `${needless} or ${constraint(table, name)}`),
    inTransaction(`${alter} validate constraint ${q(name)}`, `${needless} or not ${constraint(table, name, 'not convalidated')}`),
  ];
}

function constraint(table: string, name: string, and = 'true'): string {
  return `exists (select 1 from pg_constraint where conrelid = ${regclass(table)} and conname = ${quoteText(name)} and ${and})`;
}

const regclass = (table: string): string => `to_regclass(${quoteText(q(table))})`;

const inTransaction = (sql: string, done: string): OnlineStep => ({ sql, done: `select (${done}) as done`, isConcurrent: false });
const concurrent = (sql: string, done: string): OnlineStep => ({ sql, done: `select (${done}) as done`, isConcurrent: true });
