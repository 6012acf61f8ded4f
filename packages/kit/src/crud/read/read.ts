import type { Db } from '../../db/db.ts';
import type { QueryOptions } from '../../db/engine.ts';
import { queryAtOnce } from '../../db/handle.ts';
import { quoteName } from '../../db/names.ts';
import { orderSql } from '../../db/portable-sql.ts';
import type { CompiledWhere } from '../../db/where/compile-where.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { CrudCaller } from '../declare/crud-caller.ts';
import { callerOf, type CrudRequest, type Scope } from '../policy/crud-request.ts';
import { limits } from '../declare/limits.ts';
import { andThen, type Maybe } from '../../db/maybe.ts';
import type { OrderTerm } from './ordering.ts';
import { every, type Edge, type Policy, type RowState } from '../policy/policy.ts';
import { type Batch, type Item, keyType, SelectUnit } from './select-unit.ts';
import type { Shape } from './shape.ts';
import { StatementTexts } from './statement-texts.ts';

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

/** A statement without its values. */
interface SelectText {
  readonly text: string;
  readonly repeated: readonly RepeatedColumn[];
}

/**
 * A column whose value the conditions say, such as the owner: it is not read with every row. SQLite's driver makes a new string for each value,
 * which is most of what a row costs. `place`: of the value among those of the statement.
 */
interface RepeatedColumn {
  readonly name: string;
  readonly place: number;
}

/** Statement texts by shape: compiled once, bound per request. Bounded, whatever callers ask for. */
const texts = new WeakMap<Policy, StatementTexts<SelectText>>();

function textsOf(policy: Policy): StatementTexts<SelectText> {
  let known = texts.get(policy);
  if (known === undefined) texts.set(policy, (known = new StatementTexts(limits.plans)));
  return known;
}

/** For tests: how many statements are kept for a policy. */
export function keptStatements(policy: Policy): number {
  return textsOf(policy).size;
}

/** A statement with its parameters; undefined when no row can match. */
interface SelectStatement extends SelectText {
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

/** Ends a list of parts: none is equal to it. */
const END = Symbol('end');

function boundStatement({ dialect }: Db, selection: Selection, scope: Scope, joined: readonly Scope[]): SelectStatement | undefined {
  const { unit, where, after, orderBy = '', limit } = selection;
  const offset = selection.offset === 0 ? undefined : selection.offset;
  const known = textsOf(unit.shape.policy);
  const values: unknown[] = [];
  let step = known.start.to(unit).to(dialect);
  for (const { compiled } of joined) {
    step = step.to(compiled.shape);
    if (compiled.constant !== true) compiled.pushValues(dialect, values);
  }
  const conditions: CompiledWhere[] = [];
  for (let index = -1; index < where.length; index += 1) {
    const each = index === -1 ? scope.compiled : (where[index] as CompiledWhere);
    const { constant } = each;
    if (constant === false) return undefined;
    if (constant === true) continue;
    conditions.push(each);
    step = step.to(each.shape);
    each.pushValues(dialect, values);
  }
  step = step.to(END);
  if (after !== undefined) {
    step = step.to(after.shape);
    values.push(...after.values);
  }
  step = step.to(END).to(orderBy);
  if (limit !== undefined) {
    step = step.to('limit');
    values.push(limit);
  }
  if (offset !== undefined) {
    step = step.to('offset');
    values.push(offset);
  }
  const { text, repeated } = step.statement ?? known.keep(step, selectText(dialect, selection, joined, conditions));
  return { text, repeated, values };
}

function selectText(
  dialect: Db['dialect'],
  { unit, after, orderBy = '', limit, offset = 0 }: Selection,
  joined: readonly Scope[],
  conditions: readonly CompiledWhere[],
): SelectText {
  const from = unit.fromSql(dialect, joined, 1);
  let { next } = from;
  const repeated = new Map<string, number>();
  const terms = conditions.map((each) => {
    const term = each.text(dialect, unit.alias, next);
    if (dialect === 'sqlite')
      for (const { column, place } of each.equalities(dialect))
        if (REPEATED_KINDS.has(column.definition.kind) && unit.selects(column.name)) repeated.set(column.name, next - 1 + place);
    next += each.values(dialect).length;
    return term;
  });
  if (after !== undefined) {
    terms.push(after.text(next));
    next += after.values.length;
  }
  const paging = `${limit === undefined ? '' : ` limit $${next++}`}${offset === 0 ? '' : ` offset $${next++}`}`;
  const where = terms.length === 0 ? '' : ` where ${terms.join(' and ')}`;
  const order = orderBy === '' ? '' : ` order by ${orderBy}`;
  return {
    text: `select ${unit.columnsSql(new Set(repeated.keys()))} from ${from.text}${where}${order}${paging}`,
    repeated: [...repeated].map(([name, place]) => ({ name, place })),
  };
}

/** Equal to SQLite means the same text. Not `text`: a table may compare it in another way, such as without regard to case. */
const REPEATED_KINDS: ReadonlySet<string> = new Set(['uuid', 'enum']);

/** Fills in what was not read. */
function withRepeated(rows: Item[], { repeated, values }: SelectStatement): Item[] {
  for (const { name, place } of repeated) {
    const value = values[place];
    for (const row of rows) row[name] = value;
  }
  return rows;
}

/** Reads rows of a policy among those the caller sees, in one statement, with its to-one relations. Not yet turned into items. */
export function selectRows(db: Db, request: CrudRequest, selection: Selection): Maybe<Item[]> {
  const statement = selectStatement(db, request, selection);
  return statement instanceof Promise
    ? statement.then((settled) => runSelect(db, settled, selection))
    : runSelect(db, statement, selection);
}

function runSelect(db: Db, statement: SelectStatement | undefined, selection: Selection): Maybe<Item[]> {
  if (statement === undefined) return [];
  const rows = queryAtOnce<Item>(db, statement.text, statement.values, queryOptions(selection));
  return statement.repeated.length === 0 ? rows : andThen(rows, (found) => withRepeated(found, statement));
}

/** The rows of one selection through a cursor, chunk by chunk, in flat memory. */
export async function* streamRows(db: Db, request: CrudRequest, selection: Selection, chunkSize: number): AsyncGenerator<Item[]> {
  const statement = await selectStatement(db, request, selection);
  if (statement === undefined) return;
  for await (const rows of db.stream<Item>(statement.text, statement.values, chunkSize, isWire(selection) ? WIRE : PLAIN))
    yield withRepeated(rows, statement);
}

function scopesOf(policies: readonly Policy[], request: CrudRequest): Maybe<readonly Scope[]> {
  if (policies.length === 0) return NO_SCOPES;
  const scopes = policies.map((policy) => policy.scopeOfEdge(request));
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

function present(db: Db, request: CrudRequest, unit: SelectUnit, rows: readonly Item[]): Maybe<Item[]> {
  let known: CrudCaller | undefined;
  const caller = () => (known ??= callerOf(request));
  return andThen(unit.build(rows, request, caller), (items) => attachFrom(0, db, request, unit, rows, items));
}

/** One relation after the other: they may share the connection of a transaction. */
function attachFrom(first: number, db: Db, request: CrudRequest, unit: SelectUnit, rows: readonly Item[], items: Item[]): Maybe<Item[]> {
  const batch = unit.batches[first];
  return batch === undefined
    ? items
    : andThen(attach(db, request, batch, rows, items), () => attachFrom(first + 1, db, request, unit, rows, items));
}

function attach(db: Db, request: CrudRequest, batch: Batch, rows: readonly Item[], items: readonly Item[]): Maybe<void> {
  const { edge, keyColumn, path } = batch;
  /** By the text of the key: several rows of a page may lead to one parent. */
  const parents = new Map<string, Item[]>();
  const keys: unknown[] = [];
  for (let index = 0; index < rows.length; index += 1) {
    const key = (rows[index] as Item)[keyColumn] as RowKeyValue;
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
  if (keys.length === 0) return undefined;
  const unit = childUnit(batch);
  const parentColumn = parentColumnOf(batch);
  return andThen(selectChildren(db, request, batch, unit, keys), (children) =>
    andThen(presentRows(db, request, unit, children), (built) => {
      let lastKey: unknown;
      let owners: readonly Item[] = [];
      for (let index = 0; index < children.length; index += 1) {
        const key = (children[index] as Item)[parentColumn];
        // The children of a parent come one after the other.
        if (key !== lastKey) {
          lastKey = key;
          owners = parents.get(String(key)) ?? [];
        }
        for (const parent of owners) {
          const list = parent[edge.name] as Item[];
          if (list.length < edge.limit) list.push(built[index] as Item);
          else parent[`${edge.name}_more`] = true;
        }
      }
    }),
  );
}

const childUnits = new WeakMap<Shape, SelectUnit>();

function childUnit(batch: Batch): SelectUnit {
  let unit = childUnits.get(batch.shape);
  if (unit === undefined) childUnits.set(batch.shape, (unit = new SelectUnit(batch.shape, [], parentColumnOf(batch) === PARENT)));
  return unit;
}

/** What a key's value can be. */
type RowKeyValue = string | number | bigint | null | undefined;

/** The result column with the parent's key, where the child does not show which parent it has. */
const PARENT = '~parent';
const ORDER = '~order';

function parentColumnOf({ edge, shape }: Batch): string {
  return shape.columns.some(({ name }) => name === edge.column) ? edge.column : PARENT;
}

/** At most one more than the limit per parent, for all parents at once. */
function selectChildren(db: Db, request: CrudRequest, batch: Batch, unit: SelectUnit, keys: readonly unknown[]): Maybe<Item[]> {
  const { target, where } = batch.edge;
  return andThen(target.scopeOfEdge(request), (scope) => {
    const rule = where === undefined ? scope.compiled : target.compile(request, every([scope.where, where]));
    if (rule.constant === false) return [];
    return andThen(scopesOf(unit.joined(), request), (joined) => {
      const { text, values } = childrenStatement(db, batch, unit, rule, joined, keys);
      return queryAtOnce<Item>(db, text, values, unit.isWire ? REPLANNED_WIRE : REPLANNED);
    });
  });
}

function childrenStatement(
  { dialect }: Db,
  batch: Batch,
  unit: SelectUnit,
  rule: CompiledWhere,
  joined: readonly Scope[],
  keys: readonly unknown[],
): { readonly text: string; readonly values: readonly unknown[] } {
  const known = textsOf(batch.edge.target);
  const values: unknown[] = [
    dialect === 'postgres' ? keys : JSON.stringify(keys.map((each) => (typeof each === 'bigint' ? each.toString() : each))),
  ];
  let step = known.start.to(unit).to(batch.edge).to(dialect).to(rule.shape);
  for (const { compiled } of joined) {
    step = step.to(compiled.shape);
    if (compiled.constant !== true) compiled.pushValues(dialect, values);
  }
  if (rule.constant !== true) rule.pushValues(dialect, values);
  const { text } = step.statement ?? known.keep(step, { text: childrenText(dialect, batch, unit, rule, joined), repeated: [] });
  return { text, values };
}

/**
 * PostgreSQL: a lateral subquery per parent; SQLite: the rows of a correlated subquery. Both read limit + 1 children of each parent, however
 * many it has.
 */
function childrenText(dialect: Db['dialect'], batch: Batch, unit: SelectUnit, rule: CompiledWhere, joined: readonly Scope[]): string {
  const { edge } = batch;
  const { target } = edge;
  const isParentAdded = parentColumnOf(batch) === PARENT;
  const order = childOrder(edge, dialect);
  const from = unit.fromSql(dialect, joined, 2);
  const { alias } = unit;
  const foreignKey = quoteName(edge.column);
  const limit = edge.limit + 1;
  if (dialect === 'postgres') {
    const condition = rule.constant === true ? '' : ` and ${rule.text(dialect, alias, from.next)}`;
    const column = target.statements.column(edge.column);
    const type = keyType(column, target.shown.get(edge.column)?.settings.kind ?? column.settings.kind);
    const shown = unit.resultColumns.map((name) => `children.${quoteName(name)}`).join(', ');
    return (
      `select ${shown}${isParentAdded ? `, parents.key as ${quoteName(PARENT)}` : ''} from unnest($1::${type}[]) with ordinality parents(key, place) ` +
      `cross join lateral (select ${unit.columnsSql()}, row_number() over (order by ${order(alias)}) as ${quoteName(ORDER)} from ${from.text} ` +
      `where ${alias}.${foreignKey} = parents.key${condition} order by ${order(alias)} limit ${limit}) children ` +
      `order by parents.place, children.${quoteName(ORDER)}`
    );
  }
  const condition = rule.constant === true ? '' : ` and ${rule.text(dialect, 'c', from.next)}`;
  return (
    `select ${unit.columnsSql()}${isParentAdded ? `, parents.value as ${quoteName(PARENT)}` : ''} from json_each($1) parents join ${from.text} ` +
    `where ${alias}.rowid in (select c.rowid from ${target.statements.table} c where c.${foreignKey} = parents.value${condition} order by ${order('c')} limit ${limit}) ` +
    `order by parents.key, ${order(alias)}`
  );
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
export function readOne(
  db: Db,
  request: CrudRequest,
  unit: SelectUnit,
  where: readonly CompiledWhere[],
  isFreeForm: boolean,
  forCode = false,
): Maybe<{ readonly row: Item; readonly item: Item }> {
  const { rows: rule, access } = unit.shape.policy.options;
  const isShort = rule === undefined && access === undefined;
  return andThen(selectRows(db, request, { unit, where, isFreeForm, forCode, isShort }), (rows) => {
    const [row] = rows;
    if (row === undefined) throw coreErrors.not_found();
    return andThen(presentRows(db, request, unit, rows), ([item]) => ({ row, item: item as Item }));
  });
}
