import { findUsers } from '../../auth/people/find-users.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Dialect } from '../../db/dialect.ts';
import type { QueryOptions } from '../../db/engine/engine.ts';
import { quoteName } from '../../db/declare/names.ts';
import { continuesSql } from '../../db/engine/sqlite/continues-sql.ts';
import type { CompiledWhere } from '../../db/sql/where/compile-where.ts';
import type { Item } from '../declare/item.ts';
import { orderTerm, type OrderTerm } from '../options/ordering.ts';
import type { CrudRequest, Scope } from '../policy/crud-request.ts';
import type { Edge, Policy } from '../policy/policy.ts';
import { keyType, orderBySql } from '../policy/portable-columns.ts';
import { every, type RowState } from '../policy/row-scope.ts';
import { describe, longChildren, longPage } from './index-serves.ts';
import { buildItems } from './present.ts';
import { type Batch, type LoadedPeople, SelectUnit } from './select.ts';
import type { Shape } from './shape.ts';

/** What a SELECT is narrowed by, besides the rows the caller sees. */
export interface Selection {
  readonly unit: SelectUnit;
  readonly where: readonly CompiledWhere[];
  /** A condition of the page: its text for placeholders from `first`, and its values. */
  readonly after?: PageStart | undefined;
  readonly orderBy?: string;
  readonly limit?: number;
  readonly offset?: number;
  /** The shape was chosen by the client: the statement gets no name on the server. */
  readonly isFreeForm: boolean;
  /** Code looks at the values: they must not be in their JSON form. */
  readonly forCode?: boolean;
  /** Default: those that are there. */
  readonly rows?: RowState;
  /** The order of the rows, where an index may serve it. Set for pages: whether they may be long is decided by it. */
  readonly order?: readonly OrderTerm[];
  /** It may be long whatever its order is: an index serves neither its conditions nor its order. */
  readonly isLong?: boolean;
  /** One row by its key, under conditions on its own columns: it may share a connection with others of its kind. */
  readonly isShort?: boolean;
}

/** The position that a page begins after, as a condition. */
export interface PageStart {
  readonly text: (first: number) => string;
  readonly values: readonly unknown[];
  /** It is one range of the order, and passes over no rows. */
  readonly isRange: boolean;
}

/** A statement with its parameters. */
interface SelectStatement {
  readonly text: string;
  readonly values: readonly unknown[];
  /** What a statement that may be long reads. */
  readonly mayBeLong?: string | undefined;
}

/** Undefined when no row can match. */
async function selectStatement(
  { dialect }: Db,
  request: CrudRequest,
  selection: Selection,
  isWhole = false,
): Promise<SelectStatement | undefined> {
  const { unit, after, orderBy = '', limit, offset = 0 } = selection;
  const scope = await unit.shape.policy.rows.visible(request, selection.rows);
  const conditions = [scope.compiled, ...selection.where];
  if (conditions.some(({ constant }) => constant === false)) return undefined;
  const values: unknown[] = [];
  const from = unit.fromSql(dialect, await scopesOf(unit.joined(), request), values);
  const terms = conditions.filter(({ constant }) => constant !== true).map((each) => each.append(dialect, unit.alias, values));
  if (after !== undefined) {
    terms.push(after.text(values.length + 1));
    values.push(...after.values);
  }
  const mayBeLong = longSelection(selection, conditions, dialect);
  if (isWhole || mayBeLong !== undefined) terms.unshift(...unlessStopped(dialect, unit.shape.policy, unit.alias));
  const where = terms.length === 0 ? '' : ` where ${terms.join(' and ')}`;
  const order = orderBy === '' ? '' : ` order by ${orderBy}`;
  const most = limit === undefined ? '' : ` limit $${values.push(limit)}`;
  const skipped = offset === 0 ? '' : ` offset $${values.push(offset)}`;
  const text = `select ${unit.columnsSql} from ${from}${where}${order}${most}${skipped}`;
  return { text, values, mayBeLong };
}

/** A page further from the start passes over more rows than others should wait for. */
const OFFSET_SHORT = 1_000;

function longSelection(
  { unit, order, after, offset = 0, isLong = false }: Selection,
  conditions: readonly CompiledWhere[],
  dialect: Dialect,
): string | undefined {
  const { policy } = unit.shape;
  if (isLong) return describe(policy, conditions, order);
  if (order === undefined) return undefined;
  const passesOver = after?.isRange === false || offset > OFFSET_SHORT;
  return longPage(policy, conditions, dialect, order) ?? (passesOver ? `${describe(policy, conditions, order)}: a page far on` : undefined);
}

/** On SQLite, the condition by which a statement that may be long ends when it has to. */
export function unlessStopped(dialect: Dialect, { key }: Pick<Policy, 'key'>, alias: string): string[] {
  return dialect === 'sqlite' ? [continuesSql(`${alias}.${quoteName(key.name)}`)] : [];
}

/** Reads rows of a policy among those the caller sees, in one statement, with its to-one relations. Not yet turned into items. */
export async function selectRows(db: Db, request: CrudRequest, selection: Selection): Promise<Item[]> {
  const statement = await selectStatement(db, request, selection);
  if (statement === undefined) return [];
  return selection.unit.decoded(await db.query<Item>(statement.text, statement.values, marked(queryOptions(selection), statement)));
}

function marked(options: QueryOptions, { mayBeLong }: SelectStatement): QueryOptions {
  return mayBeLong === undefined ? options : { ...options, mayBeLong };
}

/** The rows of one selection through a cursor, chunk by chunk, in flat memory. */
export async function* streamRows(
  db: Db,
  request: CrudRequest,
  selection: Selection,
  chunkSize: number,
  mayBeLong: string,
): AsyncGenerator<Item[]> {
  const statement = await selectStatement(db, request, selection, true);
  if (statement === undefined) return;
  // An export that finds no connection free is refused; its client may come back.
  const options = { ...(isWire(selection) ? WIRE : PLAIN), waitMsMax: 0, mayBeLong };
  for await (const rows of db.stream<Item>(statement.text, statement.values, chunkSize, options)) yield selection.unit.decoded(rows);
}

async function scopesOf(edges: readonly Edge[], request: CrudRequest): Promise<Scope[]> {
  const scopes: Scope[] = [];
  for (const edge of edges) scopes.push(await edge.target.rows.throughRow(request, edge));
  return scopes;
}

/** Rows that go straight out are read in their JSON form: no Date is made only to be written as text again. */
function isWire({ unit, forCode }: Selection): boolean {
  return unit.isWire && forCode !== true;
}

function queryOptions(selection: Selection): QueryOptions {
  if (selection.isFreeForm) return isWire(selection) ? REPLANNED_WIRE : REPLANNED;
  if (selection.isShort === true) return isWire(selection) ? PIPELINED_WIRE : PIPELINED;
  return isWire(selection) ? WIRE : PLAIN;
}

const PLAIN: QueryOptions = Object.freeze({});
const WIRE: QueryOptions = Object.freeze({ as: 'wire' });
const PIPELINED: QueryOptions = Object.freeze({ pipelined: true });
const PIPELINED_WIRE: QueryOptions = Object.freeze({ pipelined: true, as: 'wire' });
const REPLANNED: QueryOptions = Object.freeze({ replanned: true });
const REPLANNED_WIRE: QueryOptions = Object.freeze({ replanned: true, as: 'wire' });

/** Turns rows into items and adds the rows of to-many relations: one statement per relation, however many rows there are. */
export async function presentRows(db: Db, request: CrudRequest, unit: SelectUnit, rows: readonly Item[]): Promise<Item[]> {
  const items = await buildItems(db, request, unit, rows);
  for (const people of unit.people) await attachPeople(request, people, rows, items);
  // One relation after the other: they may share the connection of a transaction.
  for (const batch of unit.batches) await attach(db, request, batch, rows, items);
  return items;
}

async function attach(db: Db, request: CrudRequest, batch: Batch, rows: readonly Item[], items: readonly Item[]): Promise<void> {
  const { edge, keyColumn, path } = batch;
  /** By the text of the key: several rows of a page may lead to one parent. */
  const parents = new Map<string, Item[]>();
  const keys: unknown[] = [];
  for (const [index, row] of rows.entries()) {
    const key = row[keyColumn] as RowKeyValue;
    let parent: Item | null = items[index] as Item;
    for (const step of path) parent = parent === null ? null : (parent[step] as Item | null);
    if (key === null || key === undefined || parent === null) continue;
    parent[edge.name] = [];
    const known = parents.get(String(key));
    if (known === undefined) {
      parents.set(String(key), [parent]);
      keys.push(key);
    } else known.push(parent);
  }
  if (keys.length === 0) return;
  const unit = childUnit(batch);
  const children = await selectChildren(db, request, batch, unit, keys);
  const built = await presentRows(db, request, unit, children);
  for (const [index, child] of children.entries()) {
    for (const parent of parents.get(String(child[PARENT])) ?? []) {
      const list = parent[edge.name] as Item[];
      if (list.length < edge.limit) list.push(built[index] as Item);
      else parent[`${edge.name}_more`] = true;
    }
  }
}

/** Users who are in another database: one statement for all rows. */
async function attachPeople(
  request: CrudRequest,
  { edge, shape, idColumn, path }: LoadedPeople,
  rows: readonly Item[],
  items: readonly Item[],
): Promise<void> {
  const table = edge.target.users?.table;
  if (table === undefined) return;
  const idOf = (row: Item) => String((row[idColumn] as RowKeyValue) ?? '');
  const users = await findUsers(edge.target.database(request), table, rows.map(idOf));
  for (const [index, row] of rows.entries()) {
    let item: Item | null = items[index] as Item;
    for (const step of path) item = item === null ? null : (item[step] as Item | null);
    const user = users.get(idOf(row));
    const person: Item | undefined = user && { id: user.id, name: user.username, is_active: user.is_active };
    if (item !== null)
      item[edge.name] = person === undefined ? null : Object.fromEntries(shape.columns.map(({ name }) => [name, person[name]]));
  }
}

const childUnits = new WeakMap<Shape, SelectUnit>();

function childUnit({ shape }: Batch): SelectUnit {
  let unit = childUnits.get(shape);
  if (unit === undefined) childUnits.set(shape, (unit = new SelectUnit(shape)));
  return unit;
}

/** What a key's value can be. */
type RowKeyValue = string | number | bigint | null | undefined;

/** The result column with the parent's key. */
const PARENT = '~parent';
const ORDER = '~order';

/** At most one more than the limit per parent, for all parents at once. */
async function selectChildren(db: Db, request: CrudRequest, batch: Batch, unit: SelectUnit, keys: readonly unknown[]): Promise<Item[]> {
  const { target, where } = batch.edge;
  const scope = await target.rows.ofEdge(request);
  const rule = where === undefined ? scope.compiled : await target.rows.compiled(request, every([scope.where, where]));
  if (rule.constant === false) return [];
  const statement = childrenStatement(db, batch, unit, rule, await scopesOf(unit.joined(), request), keys);
  return unit.decoded(await db.query<Item>(statement.text, statement.values, marked(unit.isWire ? REPLANNED_WIRE : REPLANNED, statement)));
}

/**
 * PostgreSQL: a lateral subquery per parent; SQLite: the rows of a correlated subquery. Both read limit + 1 children of each parent, however
 * many it has.
 */
function childrenStatement(
  { dialect }: Db,
  { edge }: Batch,
  unit: SelectUnit,
  rule: CompiledWhere,
  joined: readonly Scope[],
  keys: readonly unknown[],
): SelectStatement {
  const { target } = edge;
  const { alias } = unit;
  const terms = childOrder(edge);
  const order = (of: string) => orderBySql(target, terms, dialect, of);
  const foreignKey = quoteName(edge.column);
  const limit = edge.limit + 1;
  const values: unknown[] = [dialect === 'postgres' ? keys : JSON.stringify(keys.map((key) => (typeof key === 'bigint' ? `${key}` : key)))];
  const from = unit.fromSql(dialect, joined, values);
  const condition = (of: string) => (rule.constant === true ? '' : ` and ${rule.append(dialect, of, values)}`);
  const text =
    dialect === 'postgres'
      ? `select ${unit.resultColumns.map((name) => `children.${quoteName(name)}`).join(', ')}, parents.key as ${quoteName(PARENT)} ` +
        `from unnest($1::${keyType(target.settingsOf(edge.column))}[]) with ordinality parents(key, place) ` +
        `cross join lateral (select ${unit.columnsSql}, row_number() over (order by ${order(alias)}) as ${quoteName(ORDER)} from ${from} ` +
        `where ${alias}.${foreignKey} = parents.key${condition(alias)} order by ${order(alias)} limit ${limit}) children ` +
        `order by parents.place, children.${quoteName(ORDER)}`
      : `select ${unit.columnsSql}, parents.value as ${quoteName(PARENT)} from json_each($1) parents join ${from} ` +
        `where ${alias}.rowid in (select c.rowid from ${target.table} c where c.${foreignKey} = parents.value${condition('c')} order by ${order('c')} limit ${limit}) ` +
        `order by parents.key, ${order(alias)}`;
  return { text, values, mayBeLong: longChildren(edge, terms, dialect) };
}

function childOrder({ order, target }: Edge): readonly OrderTerm[] {
  const terms = order.map(orderTerm);
  return terms.some(({ column }) => column === target.key.name) ? terms : [...terms, { column: target.key.name, descending: false }];
}

/** One row by its key, as an item, with the row it was made of. 404 when it is not among the rows the caller sees. */
export async function readOne(
  db: Db,
  request: CrudRequest,
  unit: SelectUnit,
  where: readonly CompiledWhere[],
  isFreeForm: boolean,
  forCode = false,
): Promise<{ readonly row: Item; readonly item: Item }> {
  const { rows: rule, access } = unit.shape.policy.options;
  const isShort = rule === undefined && access === undefined;
  const rows = await selectRows(db, request, { unit, where, isFreeForm, forCode, isShort });
  const [row] = rows;
  if (row === undefined) throw unit.shape.policy.missing();
  const [item] = await presentRows(db, request, unit, rows);
  return { row, item: item as Item };
}
