import type { Db } from '../db/db.ts';
import type { QueryOptions } from '../db/engine.ts';
import { quoteName } from '../db/names.ts';
import { orderSql } from '../db/portable-sql.ts';
import type { CompiledWhere } from '../db/where/compile-where.ts';
import { coreErrors } from '../errors/core-errors.ts';
import { BoundedCache } from './bounded-cache.ts';
import type { CrudCaller } from './crud-caller.ts';
import { callerOf, type CrudRequest, type Scope } from './crud-request.ts';
import { limits } from './limits.ts';
import type { OrderTerm } from './ordering.ts';
import { every, type Edge, type Policy, type RowState } from './policy.ts';
import { type Batch, type Item, keyType, SelectUnit } from './select-unit.ts';
import type { Shape } from './shape.ts';

type Maybe<T> = T | Promise<T>;

/** What a SELECT is narrowed by, besides the rows the caller sees. */
export interface Selection {
  readonly unit: SelectUnit;
  readonly where: readonly CompiledWhere[];
  /** A condition of the page: its text for placeholders from `first`, and its values. */
  readonly after?: { readonly shape: string; readonly text: (first: number) => string; readonly values: readonly unknown[] } | undefined;
  readonly orderBy?: string;
  readonly limit?: number;
  readonly offset?: number;
  /** The shape was chosen by the client: the statement gets no name on the server. */
  readonly isFreeForm: boolean;
  /** Code looks at the values: they must not be in their JSON form. */
  readonly forCode?: boolean;
  /** Those that are there, unless given. */
  readonly rows?: RowState;
  /** One row by its key, under conditions on its own columns: it may share a connection with others of its kind. */
  readonly isShort?: boolean;
}

/** Statement texts by shape: compiled once, bound per request. Bounded, whatever callers ask for. */
const texts = new WeakMap<Policy, BoundedCache<string>>();

function textsOf(policy: Policy): BoundedCache<string> {
  let known = texts.get(policy);
  if (known === undefined) texts.set(policy, (known = new BoundedCache(limits.plans)));
  return known;
}

/** For tests: how many statements are kept for a policy. */
export function keptStatements(policy: Policy): number {
  return textsOf(policy).size;
}

/** A statement with its parameters; undefined when no row can match. */
interface SelectStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

function selectStatement(db: Db, request: CrudRequest, selection: Selection): Maybe<SelectStatement | undefined> {
  const { policy } = selection.unit.shape;
  const scope = policy.scope(request, selection.rows);
  const joined = scopesOf(selection.unit.joined(), request);
  return scope instanceof Promise || joined instanceof Promise
    ? Promise.all([scope, joined]).then(([own, related]) => boundStatement(db, selection, own, related))
    : boundStatement(db, selection, scope, joined);
}

function boundStatement({ dialect }: Db, selection: Selection, scope: Scope, joined: readonly Scope[]): SelectStatement | undefined {
  const { unit, where, after, orderBy = '', limit } = selection;
  const { policy } = unit.shape;
  const offset = selection.offset === 0 ? undefined : selection.offset;
  const conditions: CompiledWhere[] = [];
  for (const each of [scope.compiled, ...where]) {
    if (each.constant === false) return undefined;
    if (each.constant === undefined) conditions.push(each);
  }
  let key = `${dialect}|${unit.key}|`;
  for (const { compiled } of joined) key += `${compiled.shape}&`;
  key += '|';
  for (const { shape } of conditions) key += `${shape}&`;
  key += `|${after?.shape ?? ''}|${orderBy}|${limit === undefined ? '' : 'l'}|${offset === undefined ? '' : 'o'}`;
  const text = textsOf(policy).getOrMake(key, () => {
    const from = unit.fromSql(dialect, joined, 1);
    let { next } = from;
    const terms = conditions.map((each) => {
      const term = each.text(dialect, unit.alias, next);
      next += each.values(dialect).length;
      return term;
    });
    if (after !== undefined) {
      terms.push(after.text(next));
      next += after.values.length;
    }
    const paging = `${limit === undefined ? '' : ` limit $${next++}`}${offset === undefined ? '' : ` offset $${next++}`}`;
    return `select ${unit.columnsSql()} from ${from.text}${terms.length === 0 ? '' : ` where ${terms.join(' and ')}`}${orderBy === '' ? '' : ` order by ${orderBy}`}${paging}`;
  });
  const values: unknown[] = [];
  for (const { compiled } of joined) if (compiled.constant !== true) compiled.pushValues(dialect, values);
  for (const each of conditions) each.pushValues(dialect, values);
  if (after !== undefined) values.push(...after.values);
  if (limit !== undefined) values.push(limit);
  if (offset !== undefined) values.push(offset);
  return { text, values };
}

/** Reads rows of a policy among those the caller sees, in one statement, with its to-one relations. Not yet turned into items. */
export async function selectRows(db: Db, request: CrudRequest, selection: Selection): Promise<Item[]> {
  const pending = selectStatement(db, request, selection);
  const statement = pending instanceof Promise ? await pending : pending;
  return statement === undefined ? [] : db.query<Item>(statement.text, statement.values, queryOptions(selection));
}

/** The rows of one selection through a cursor, chunk by chunk, in flat memory. */
export async function* streamRows(db: Db, request: CrudRequest, selection: Selection, chunkSize: number): AsyncGenerator<Item[]> {
  const statement = await selectStatement(db, request, selection);
  if (statement !== undefined) yield* db.stream<Item>(statement.text, statement.values, chunkSize, isWire(selection) ? WIRE : PLAIN);
}

function scopesOf(policies: readonly Policy[], request: CrudRequest): Maybe<readonly Scope[]> {
  if (policies.length === 0) return NO_SCOPES;
  const scopes = policies.map((policy) => policy.scope(request));
  return scopes.some((scope) => scope instanceof Promise) ? Promise.all(scopes.map(async (scope) => scope)) : (scopes as Scope[]);
}

const NO_SCOPES: readonly Scope[] = Object.freeze([]);

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
export function presentRows(db: Db, request: CrudRequest, unit: SelectUnit, rows: readonly Item[]): Maybe<Item[]> {
  return unit.isIdentity ? (rows as Item[]) : present(db, request, unit, rows);
}

async function present(db: Db, request: CrudRequest, unit: SelectUnit, rows: readonly Item[]): Promise<Item[]> {
  let known: CrudCaller | undefined;
  const caller = () => (known ??= callerOf(request));
  const built = unit.build(rows, request, caller);
  const items = built instanceof Promise ? await built : built;
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
    if (known !== undefined) known.push(parent);
    else {
      parents.set(String(key), [parent]);
      keys.push(key);
    }
  }
  if (keys.length === 0) return;
  const unit = childUnit(batch.shape);
  const children = await selectChildren(db, request, edge, unit, keys);
  const built = await presentRows(db, request, unit, children);
  for (const [index, child] of children.entries()) {
    for (const parent of parents.get(String(child[PARENT])) ?? []) {
      const list = parent[edge.name] as Item[];
      if (list.length < edge.limit) list.push(built[index] as Item);
      else parent[`${edge.name}_more`] = true;
    }
  }
}

const childUnits = new WeakMap<Shape, SelectUnit>();

function childUnit(shape: Shape): SelectUnit {
  let unit = childUnits.get(shape);
  if (unit === undefined) childUnits.set(shape, (unit = new SelectUnit(shape, [], true)));
  return unit;
}

/** What a key's value can be. */
type RowKeyValue = string | number | bigint | null | undefined;

/** The result column with the parent's key. */
const PARENT = '~parent';
const ORDER = '~order';

/**
 * At most one more than the limit per parent, for all parents at once. PostgreSQL: a lateral subquery per parent; SQLite: the rows of a
 * correlated subquery. Both read limit + 1 children of each parent, however many it has.
 */
async function selectChildren(db: Db, request: CrudRequest, edge: Edge, unit: SelectUnit, keys: readonly unknown[]): Promise<Item[]> {
  const { target } = edge;
  const { dialect } = db;
  const scope = await target.scope(request);
  const rule = target.compile(request, every([scope.where, ...(edge.where === undefined ? [] : [edge.where])]));
  if (rule.constant === false) return [];
  const joined = await scopesOf(unit.joined(), request);
  let key = `many|${dialect}|${edge.name}|${edge.column}|${unit.key}|${rule.shape}|`;
  for (const { compiled } of joined) key += `${compiled.shape}&`;
  const text = textsOf(target).getOrMake(key, () => {
    const order = childOrder(edge, dialect);
    const from = unit.fromSql(dialect, joined, 2);
    const { alias } = unit;
    const foreignKey = quoteName(edge.column);
    const first = from.next;
    const limit = edge.limit + 1;
    if (dialect === 'postgres') {
      const condition = rule.constant === true ? '' : ` and ${rule.text(dialect, alias, first)}`;
      const column = target.statements.column(edge.column);
      const type = keyType(column, target.shown.get(edge.column)?.settings.kind ?? column.settings.kind);
      return (
        `select children.*, parents.key as ${quoteName(PARENT)} from unnest($1::${type}[]) with ordinality parents(key, place) ` +
        `cross join lateral (select ${unit.columnsSql()}, row_number() over (order by ${order(alias)}) as ${quoteName(ORDER)} from ${from.text} ` +
        `where ${alias}.${foreignKey} = parents.key${condition} order by ${order(alias)} limit ${limit}) children ` +
        `order by parents.place, children.${quoteName(ORDER)}`
      );
    }
    const condition = rule.constant === true ? '' : ` and ${rule.text(dialect, 'c', first)}`;
    return (
      `select ${unit.columnsSql()}, parents.value as ${quoteName(PARENT)} from json_each($1) parents join ${from.text} ` +
      `where ${alias}.rowid in (select c.rowid from ${target.statements.table} c where c.${foreignKey} = parents.value${condition} order by ${order('c')} limit ${limit}) ` +
      `order by parents.key, ${order(alias)}`
    );
  });
  const parameters = [
    dialect === 'postgres' ? keys : JSON.stringify(keys.map((each) => (typeof each === 'bigint' ? each.toString() : each))),
    ...joined.flatMap(({ compiled }) => (compiled.constant === true ? [] : compiled.values(dialect))),
    ...(rule.constant === true ? [] : rule.values(dialect)),
  ];
  return db.query<Item>(text, parameters, unit.isWire ? REPLANNED_WIRE : REPLANNED);
}

function childOrder({ order, target }: Edge, dialect: Db['dialect']): (alias: string) => string {
  const terms = order.map((text) =>
    text.startsWith('-') ? { column: text.slice(1), descending: true } : { column: text, descending: false },
  );
  const all = terms.some(({ column }) => column === target.key.name) ? terms : [...terms, { column: target.key.name, descending: false }];
  return (alias) => orderBySql(target, all, dialect, alias);
}

export function orderBySql({ statements }: Policy, terms: readonly OrderTerm[], dialect: Db['dialect'], alias: string): string {
  return terms
    .map(({ column, descending }) => {
      const { name, definition } = statements.column(column);
      return orderSql(`${alias}.${quoteName(name)}`, definition, dialect, descending ? 'desc' : 'asc');
    })
    .join(', ');
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
  if (row === undefined) throw coreErrors.not_found();
  const presented = presentRows(db, request, unit, rows);
  const [item] = presented instanceof Promise ? await presented : presented;
  return { row, item: item as Item };
}
