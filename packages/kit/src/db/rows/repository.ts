import { CONFLICT_RETRIES } from '../engine/conflict-retries.ts';
import { isKitError } from '../../errors/kit-error.ts';
import type { Clock } from '../clock.ts';
import type { Db } from '../engine/db.ts';
import type { Model } from '../declare/model.ts';
import { type ModelColumn, type ModelStatements, statementsOf } from '../sql/model-statements.ts';
import { nameViolation } from '../engine/name-violation.ts';
import { quoteName } from '../declare/names.ts';
import { orderSql } from '../sql/portable-sql.ts';
import { bindEncrypted, needsTenant, refuseBoundColumns, withReplacing } from './bind-encrypted.ts';
import type { Insert, Row, Update } from '../declare/rows.ts';
import { compileWhere } from '../sql/where/compile-where.ts';
import type { Where } from '../sql/where/where.ts';
import { refuseUnknownNames, requireArguments } from '../../options/read-options.ts';
import { aModel, queryable, anObject, aList } from '../../options/value-rule.ts';

/** A row's key: its value, or for keys of several columns an object with each of them. */
export type Key<M extends Model = Model> = string | number | bigint | Partial<Row<M>>;

export interface FindOptions {
  /**
   * No other transaction changes or deletes the row until this one ends; it waits. SQLite's transactions lock the whole database
   * when they begin. Only inside a transaction.
   */
  readonly lock?: boolean;
}

const FIND_OPTIONS: ReadonlySet<string> = new Set(Object.keys({ lock: true } satisfies Record<keyof FindOptions, true>));

/**
 * The row with this key. A key that no row can have (a malformed UUID) finds nothing.
 *
 * @example
 * ```ts
 * const order = await find(db, orders, id);
 * if (order === undefined) throw coreErrors.not_found();
 * ```
 */
export async function find<M extends Model>(
  db: Db,
  model: M,
  key: Key<NoInfer<M>>,
  options: FindOptions = {},
): Promise<Row<M> | undefined> {
  refuseUnknownNames('find()', options, FIND_OPTIONS);
  requireArguments('find()', { db, model }, { db: queryable, model: aModel });
  const statements = statementsOf(model);
  const values = keyValues(statements, key);
  if (options.lock === true && !db.isTransaction)
    throw new Error(`find(${statements.table}, …, { lock: true }) needs a transaction: the lock would end with the statement.`);
  if (values === undefined) return undefined;
  const isLocked = options.lock === true && db.dialect === 'postgres';
  const { rows } = await db.execute<Row<M>>(isLocked ? `${statements.select} for no key update` : statements.select, values);
  return rows[0];
}

/** The first row that matches: `{ email }`, or any other tree of conditions. */
export async function findBy<M extends Model>(db: Db, model: M, where: Where<M['columns']>): Promise<Row<M> | undefined> {
  return (await list(db, model, { where, limit: 1 }))[0];
}

export interface ListOptions<M extends Model> {
  /** Which rows: `{ status: 'open' }`, or any other tree of conditions. */
  readonly where?: Where<M['columns']>;
  /** Column names; a leading minus means descending. NULLs come last either way. */
  readonly orderBy?: readonly (Extract<keyof M['columns'], string> | `-${Extract<keyof M['columns'], string>}`)[];
  /** Most rows. Default: all. */
  readonly limit?: number;
  /** Rows to pass over. Default: none. */
  readonly offset?: number;
}

const LIST_OPTIONS: ReadonlySet<string> = new Set(
  Object.keys({ where: true, orderBy: true, limit: true, offset: true } satisfies Record<keyof ListOptions<Model>, true>),
);

/**
 * Rows that match, as the database has them: `list(db, orders, { where: { status: 'open' }, orderBy: ['-created_at'], limit: 10 })`.
 *
 * @example
 * ```ts
 * const open = await list(db, orders, { where: { status: 'open' }, orderBy: ['-created_at'], limit: 10 });
 * ```
 */
export async function list<M extends Model>(db: Db, model: M, options: ListOptions<M> = {}): Promise<Row<M>[]> {
  refuseUnknownNames('list()', options, LIST_OPTIONS);
  requireArguments('list()', { db, model }, { db: queryable, model: aModel });
  const statements = statementsOf(model);
  const values: unknown[] = [];
  const condition = conditionOf(db, model, options.where, values);
  if (condition === undefined) return [];
  const order = (options.orderBy ?? []).map((each) => orderTerm(db, statements, each));
  let text = `select ${statements.list} from ${statements.table}${condition}`;
  if (order.length > 0) text += ` order by ${order.join(', ')}`;
  if (options.limit !== undefined || options.offset !== undefined) {
    // SQLite knows OFFSET only behind LIMIT.
    text += ` limit $${values.push(options.limit ?? Number.MAX_SAFE_INTEGER)}`;
    if (options.offset !== undefined) text += ` offset $${values.push(options.offset)}`;
  }
  return db.query<Row<M>>(text, values);
}

/** Counts the rows that match. */
export async function count<M extends Model>(db: Db, model: M, where?: Where<M['columns']>): Promise<number> {
  requireArguments('count()', { db, model }, { db: queryable, model: aModel });
  const { table } = statementsOf(model);
  const values: unknown[] = [];
  const condition = conditionOf(db, model, where, values);
  if (condition === undefined) return 0;
  const rows = await db.query<{ count: number }>(`select count(*) as count from ${table}${condition}`, values);
  return rows[0]?.count ?? 0;
}

/**
 * Writes one row and returns it as the database has it. Absent or null lets a default fill the column.
 *
 * @example
 * ```ts
 * const order = await insert(tx, orders, { owner_id: user.id, item: 'table', quantity: 1 });
 * ```
 */
export async function insert<M extends Model>(db: Db, model: M, values: Insert<M>): Promise<Row<M>> {
  requireArguments('insert()', { db, model, values }, { db: queryable, model: aModel, values: anObject });
  const statements = statementsOf(model);
  const { names, parameters } = insertion(db, statements, values);
  const text = statements.text(`insert ${names.join()}`, () => insertText(statements, names, 1));
  try {
    const { rows } = await db.execute<Row<M>>(text, parameters);
    return rows[0] as Row<M>;
  } catch (error) {
    throw await nameViolation(db, model, [values], error);
  }
}

/** Rows per statement: both databases take far more parameters than this needs. */
const CHUNK = 100;

/** Writes many rows, in one transaction, and returns them in the order given. */
export async function insertMany<M extends Model>(db: Db, model: M, rows: readonly Insert<M>[]): Promise<Row<M>[]> {
  requireArguments('insertMany()', { db, model, rows }, { db: queryable, model: aModel, rows: aList });
  if (rows.length === 0) return [];
  const statements = statementsOf(model);
  const write = async (tx: Db): Promise<Row<M>[]> => {
    const written: Row<M>[] = [];
    for (let start = 0; start < rows.length;) {
      const first = insertion(tx, statements, rows[start] as object);
      const parameters = [...first.parameters];
      let end = start + 1;
      for (; end < rows.length && end - start < CHUNK; end++) {
        const next = insertion(tx, statements, rows[end] as object);
        if (next.names.join() !== first.names.join()) break; // another set of columns is another statement
        parameters.push(...next.parameters);
      }
      const text = statements.text(`insert ${end - start} ${first.names.join()}`, () => insertText(statements, first.names, end - start));
      try {
        written.push(...(await tx.query<Row<M>>(text, parameters)));
      } catch (error) {
        throw await nameViolation(db, model, rows.slice(start, end), error);
      }
      start = end;
    }
    return written;
  };
  return db.isTransaction ? write(db) : db.transaction(write, CONFLICT_RETRIES);
}

/**
 * Changes one row and returns it, or undefined when there is none. No changes: the row as it is.
 *
 * @example
 * ```ts
 * const changed = await update(tx, orders, id, { status: 'paid' });
 * ```
 */
export async function update<M extends Model>(db: Db, model: M, key: Key<NoInfer<M>>, changes: Update<M>): Promise<Row<M> | undefined> {
  requireArguments('update()', { db, model, changes }, { db: queryable, model: aModel, changes: anObject });
  const statements = statementsOf(model);
  const keys = keyValues(statements, key);
  if (keys === undefined) return undefined;
  const given = inColumnOrder(statements, withReplacing(statements, changes));
  if (given.length === 0) return find(db, model, key);
  const names = given.map(({ column }) => column.name);
  refuseBoundColumns(statements, names, false);
  const parameters = given.map(({ column, value }) => column.encode(value));
  if (statements.encrypted.some(({ name }) => names.includes(name))) {
    for (const column of statements.columns) if (column.settings.searchOf !== undefined) appendSearch(names, parameters, column);
    const tenants = needsTenant(statements, names) ? await find(db, model, key) : undefined;
    const known = { ...tenants, ...rowOf(names, parameters), ...rowOf(model.primaryKey, keys) };
    if (needsTenant(statements, names) && tenants === undefined) return undefined;
    bindEncrypted(statements, names, parameters, known);
  }
  for (const { name, settings, encode } of statements.columns) {
    if (settings.increment === true && names.includes(name))
      throw new Error(`Column "${name}" of ${statements.table} counts updates: leave it out of the changes.`);
    if (settings.touch === undefined || names.includes(name)) continue;
    names.push(name);
    parameters.push(encode(settings.touch(db.clock)));
  }
  const text = statements.text(`update ${names.join()}`, () => {
    const assignments = names.map((name, index) => `${quoteName(name)} = $${index + 1}`);
    for (const { name, settings } of statements.columns)
      if (settings.increment === true) assignments.push(`${quoteName(name)} = ${quoteName(name)} + 1`);
    return `update ${statements.table} set ${assignments.join(', ')}${statements.whereKey(names.length + 1)} returning ${statements.list}`;
  });
  try {
    const { rows } = await db.execute<Row<M>>(text, [...parameters, ...keys]);
    return rows[0];
  } catch (error) {
    throw await nameViolation(db, model, [changes], error);
  }
}

/** Deletes one row and says whether there was one. */
export async function remove<M extends Model>(db: Db, model: M, key: Key<NoInfer<M>>): Promise<boolean> {
  requireArguments('remove()', { db, model }, { db: queryable, model: aModel });
  const statements = statementsOf(model);
  const values = keyValues(statements, key);
  if (values === undefined) return false;
  return (await db.execute(statements.remove, values)).count > 0;
}

function insertText(statements: ModelStatements, names: readonly string[], rows: number): string {
  const returning = ` returning ${statements.list}`;
  if (names.length === 0) return `insert into ${statements.table} default values${returning}`;
  const tuples = Array.from(
    { length: rows },
    (_, row) => `(${names.map((_name, index) => `$${row * names.length + index + 1}`).join(', ')})`,
  );
  return `insert into ${statements.table} (${names.map(quoteName).join(', ')}) values ${tuples.join(', ')}${returning}`;
}

/** The columns and parameters of an insert, with everything filled in that the values leave out. */
export function insertion(db: Db, statements: ModelStatements, values: object): { names: string[]; parameters: unknown[] } {
  const given = values as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(given)) statements.column(name);
  refuseBoundColumns(statements, givenNames(given), true);
  const names: string[] = [];
  const parameters: unknown[] = [];
  // One moment for the whole row: a row just made has not been updated since.
  let moment: Date | undefined;
  const once: Clock = { now: () => (moment ??= db.clock.now()) };
  const replaced = statements.replacing.length === 0 ? undefined : new Map<string | undefined, unknown>();
  for (const column of statements.columns) {
    if (column.settings.searchOf !== undefined) {
      appendSearch(names, parameters, column);
      continue;
    }
    // Keys count on within a millisecond by the clock they are given, so they get the real one.
    const same = replaced?.get(column.settings.encrypted?.replaces);
    const value = filled(column, given[column.name] ?? same, column.settings.kind === 'timestamp' ? once : db.clock);
    replaced?.set(column.name, value);
    if (value === undefined) continue;
    names.push(column.name);
    parameters.push(column.encode(value));
  }
  if (statements.encrypted.length > 0) bindEncrypted(statements, names, parameters, rowOf(names, parameters));
  return { names, parameters };
}

function rowOf(names: readonly string[], parameters: readonly unknown[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(names.map((name, index) => [name, parameters[index]]));
}

function givenNames(values: Readonly<Record<string, unknown>>): string[] {
  return Object.keys(values).filter((name) => values[name] !== undefined);
}

/** A search value is written with the value that it is computed from. */
export function appendSearch(names: string[], parameters: unknown[], { name, settings }: ModelColumn): void {
  const index = names.indexOf(settings.searchOf as string);
  if (index === -1) return;
  names.push(name);
  parameters.push(parameters[index]);
}

/** Undefined leaves the column out, so that the database fills it. */
function filled({ settings, nullable }: ModelColumn, value: unknown, clock: Clock): unknown {
  if (value !== undefined && value !== null) return value;
  if (value === null && (nullable || settings.kind === 'json')) return value;
  if (settings.default !== undefined) return settings.default(clock);
  // Without any default the encoder refuses null with the column's name.
  return settings.dbDefault !== undefined || nullable ? undefined : null;
}

/**
 * What was given, in the order of the columns: the members of a request's body come in any order its sender likes, and each order would be
 * a statement of its own to prepare and remember.
 */
function inColumnOrder(statements: ModelStatements, values: object): { readonly column: ModelColumn; readonly value: unknown }[] {
  const given = values as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(given)) statements.column(name);
  return statements.columns
    .filter(({ name }) => Object.hasOwn(given, name) && given[name] !== undefined)
    .map((column) => ({ column, value: given[column.name] }));
}

function keyValues(statements: ModelStatements, key: Key): unknown[] | undefined {
  const columns = statements.key;
  const [first] = columns;
  try {
    if (typeof key !== 'object') {
      if (first === undefined || columns.length !== 1)
        throw new Error(`The key of ${statements.table} has several columns: pass an object with each.`);
      return [first.encode(key)];
    }
    return columns.map(({ name, encode }) => encode(key[name]));
  } catch (error) {
    if (isKitError(error, 'value_not_storable')) return undefined;
    throw error;
  }
}

/** ` where …`, its values appended. Undefined: no row can match, because a value could not be stored in its column. */
function conditionOf(db: Db, model: Model, where: Where | undefined, values: unknown[]): string | undefined {
  if (where === undefined) return '';
  try {
    const compiled = compileWhere(model, where);
    if (compiled.constant === true) return '';
    return ` where ${compiled.append(db.dialect, quoteName(model.name), values)}`;
  } catch (error) {
    if (isEquality(where) && isKitError(error, 'invalid_where') && isKitError(error.cause, 'value_not_storable')) return undefined;
    throw error;
  }
}

/** Columns and values only: a value that cannot be stored is then equal to none. */
function isEquality(where: Where): boolean {
  return Object.entries(where).every(
    ([name, value]) => name !== 'not' && (typeof value !== 'object' || value === null || value instanceof Date),
  );
}

function orderTerm(db: Db, statements: ModelStatements, each: string): string {
  const descending = each.startsWith('-');
  const { name, definition, settings } = statements.column(descending ? each.slice(1) : each);
  if (settings.encrypted !== undefined) throw new Error(`Rows of ${statements.table} cannot be ordered by "${name}": it is encrypted.`);
  return orderSql(quoteName(name), definition, db.dialect, descending ? 'desc' : 'asc');
}
