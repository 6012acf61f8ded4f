import { BoundedMap } from '../../db/values/bounded-map.ts';
import type { Db } from '../../db/engine/db.ts';
import { countUpTo, estimateCount } from '../../db/rows/count-rows.ts';
import type { CursorContent, Cursors } from '../../db/sql/keyset/cursor.ts';
import {
  cutPage,
  type Keyset,
  type KeysetColumn,
  keysetOf,
  type KeysetPosition,
  type KeysetStart,
  neighborsOf,
} from '../../db/sql/keyset/keyset.ts';
import type { CompiledWhere } from '../../db/sql/where/compile-where.ts';
import { storedIdentity } from '../../db/sql/identity-value.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import { crudErrors } from '../declare/errors.ts';
import type { ListPlan } from './list-plan.ts';
import type { ListRequest } from './list-query.ts';
import { limits } from '../declare/limits.ts';
import type { OrderTerm } from '../options/ordering.ts';
import type { CountMode, PageOptions } from '../options/page-options.ts';
import type { Policy } from '../policy/policy.ts';
import { readKey } from '../parameters/parameter-value.ts';
import { describe, longPage } from './index-serves.ts';
import { type PageStart, presentRows, selectRows, type Selection, unlessStopped } from './read.ts';
import type { AccessNarrowing, AccessPage } from '../declare/row-access.ts';
import type { Item } from '../declare/item.ts';
import { SelectUnit } from './select.ts';
import type { Shape } from './shape.ts';
import type { ListPage } from '../options/list-page.ts';

/** A page of a list, and what its headers say. */

export interface ListResult {
  readonly page: ListPage;
  /** The pages beside it, as query strings. */
  readonly next: string | null;
  readonly previous: string | null;
  /** The same list from its start. */
  readonly first: string;
  /** `123`, `1000+`, `~120000`; undefined when nothing was counted. */
  readonly totalCount: string | undefined;
}

export interface ListContext {
  readonly policy: Policy;
  readonly options: PageOptions;
  /** Of lists with the style `cursor`: others need no secret. */
  readonly cursors: () => Promise<Cursors>;
  /** Tells lists apart, by operation and parent: a cursor belongs to one. */
  readonly operation: string;
  /** The query string of the request, without the question mark. */
  readonly queryString: string;
  /** The greatest offset that a link may have. */
  readonly offsetMax: number;
  /** Conditions of the address: the parent. */
  readonly fixed: readonly CompiledWhere[];
}

export function keysetFor(policy: Policy, ordering: readonly OrderTerm[]): Keyset {
  const names = ordering.map(({ column, descending }) => `${descending ? '-' : ''}${column}`);
  return keysetOf(policy.model, names, 't0');
}

function termOf({ name, descending }: KeysetColumn): OrderTerm {
  return { column: name, descending };
}

/** Reads one page: one statement, one more to count when the first page is full. */
export async function readList(db: Db, request: CrudRequest, plan: ListPlan, context: ListContext): Promise<ListResult> {
  const where = await conditions(request, context.policy, plan.list.where, context.fixed);
  return context.options.style === 'cursor' ? byCursor(db, request, plan, where, context) : byNumber(db, request, plan, where, context);
}

async function byCursor(
  db: Db,
  request: CrudRequest,
  { list, shape, isFreeForm }: ListPlan,
  where: readonly CompiledWhere[],
  context: ListContext,
): Promise<ListResult> {
  const { policy, options } = context;
  const cursors = await context.cursors();
  const keyset = keysetFor(policy, list.ordering);
  const bound = boundTo(request, list, keyset, context.operation);
  const behindKey = list.cursor === undefined || !options.keyCursors ? undefined : startBehind(policy, keyset, list.cursor);
  const from = list.cursor === undefined ? undefined : (behindKey ?? cursors.read(list.cursor, bound));
  const values = from === undefined ? undefined : keyset.valuesIfAccepted(db.dialect, from.position);
  if (list.cursor !== undefined && values === undefined) throw invalidCursor();
  const unit = unitFor(shape, keyset.names);
  const backwards = from?.backwards ?? false;
  const selection: Selection = {
    unit,
    where,
    orderBy: keyset.orderSql(db.dialect, backwards),
    order: keyset.columns.map(termOf),
    limit: list.limit + 1,
    rows: list.isDeleted ? 'deleted' : 'live',
    isFreeForm,
    after: from === undefined || values === undefined ? undefined : pageStart(db, keyset, from, values),
  };
  const found = await selectPage(db, request, policy, selection, {
    limit: list.limit + 1,
    isFiltered: where.length > 0,
    ...byKey(policy, list.ordering, from),
  });
  const { rows, hasMore } = cutPage(found, list.limit, backwards);
  const count =
    from === undefined || behindKey !== undefined
      ? await countRows(db, request, list, where, context, { found: found.length, hasMore: hasMore || behindKey !== undefined })
      : carried(from.count, options.count);
  const items = await presentRows(db, request, unit, rows);
  const positionOf = (row: Item | undefined): KeysetPosition | undefined => {
    if (row === undefined) return undefined;
    return unit.isWire ? keyset.columns.map(({ name }) => unit.extra(row, name)) : keyset.positionOf(pick(unit, keyset, row));
  };
  const neighbors = neighborsOf({ from, first: positionOf(rows[0]), last: positionOf(rows.at(-1)), hasMore });
  const { previous, next } = cursors.writeAround(neighbors, count.carried, bound);
  const others = without(context.queryString, 'cursor');
  const linkTo = (cursor: string | null) => (cursor === null ? null : `?${[`cursor=${cursor}`, ...others].join('&')}`);
  const links = { next: linkTo(next), previous: linkTo(previous) };
  return { page: { items, count: count.number, ...links }, ...links, first: `?${others.join('&')}`, totalCount: count.text };
}

/** The rows behind the one with this key, in a list that is ordered by keys alone. */
function startBehind(policy: Policy, keyset: Keyset, text: string): CursorContent | undefined {
  const [column, ...others] = keyset.columns;
  if (others.length > 0 || column?.name !== policy.key.name) return undefined;
  const read = readKey(policy.settingsOf(column.name), text);
  return read.fault === undefined ? { position: [read.value], backwards: false, count: null } : undefined;
}

async function byNumber(
  db: Db,
  request: CrudRequest,
  { list, shape, isFreeForm }: ListPlan,
  where: readonly CompiledWhere[],
  context: ListContext,
): Promise<ListResult> {
  const { policy } = context;
  const keyset = keysetFor(policy, list.ordering);
  const unit = unitFor(shape, []);
  const { limit, offset } = list;
  const selection: Selection = {
    unit,
    where,
    orderBy: keyset.orderSql(db.dialect),
    order: keyset.columns.map(termOf),
    limit: limit + 1,
    offset,
    isFreeForm,
    rows: list.isDeleted ? 'deleted' : 'live',
  };
  const { options, offsetMax } = context;
  const isReachable = offset <= offsetMax;
  const page = { limit: offset + limit + 1, isFiltered: where.length > 0, ...byKey(policy, list.ordering, undefined) };
  const found = isReachable ? await selectPage(db, request, policy, selection, page) : [];
  const hasMore = found.length > limit;
  const rows = hasMore ? found.slice(0, limit) : found;
  const isKnown = offset === 0 || rows.length > 0;
  const count = await countRows(db, request, list, where, context, { found: offset + found.length, hasMore: hasMore || !isKnown });
  if (!isReachable && offset < (count.number ?? Infinity)) throw tooFar(limit, offsetMax);
  const items = await presentRows(db, request, unit, rows);
  const isNumbered = options.style === 'page';
  const others = without(context.queryString, isNumbered ? 'page' : 'offset');
  const link = (to: number) => [isNumbered ? `?page=${to / limit + 1}` : `?offset=${to}`, ...others].join('&');
  const links = {
    next: hasMore && offset + limit <= offsetMax ? link(offset + limit) : null,
    previous: offset > 0 ? link(Math.max(0, offset - limit)) : null,
  };
  const body = { items, count: count.number, ...(isNumbered ? {} : links) };
  return { page: body, ...links, first: `?${others.join('&')}`, totalCount: count.text };
}

/** For a page with rows, far behind the first one. A page behind the last row is empty, whatever its number. */
function tooFar(limit: number, offsetMax: number): Error {
  const message = `Enter an integer between 1 and ${Math.floor(offsetMax / limit) + 1}. Use a filter to go further.`;
  return coreErrors.validation_error({ errors: [{ location: ['query', 'page'], code: 'invalid', message }] });
}

function pageStart({ dialect }: Db, keyset: Keyset, from: KeysetStart, values: readonly unknown[]): PageStart {
  return { text: (first) => keyset.text(dialect, from, first), values, isRange: keyset.isRowComparison };
}

const UNITS_MAX = 64;
const units = new WeakMap<Shape, BoundedMap<string, SelectUnit>>();

/** Shapes are kept per view, units per shape and ordering: without, a list costs 39 % more (crud-list on SQLite, 1.1 ms to 1.5 ms of CPU). */
export function unitFor(shape: Shape, extra: readonly string[]): SelectUnit {
  let known = units.get(shape);
  if (known === undefined) units.set(shape, (known = new BoundedMap(UNITS_MAX)));
  return known.getOrMake(extra.join(), () => new SelectUnit(shape, extra));
}

function pick(unit: SelectUnit, keyset: Keyset, row: Item): Item {
  return Object.fromEntries(keyset.columns.map(({ name }) => [name, unit.extra(row, name)]));
}

/** The conditions of a request, and those of the address. */
export async function conditions(
  request: CrudRequest,
  policy: Policy,
  where: readonly Where[],
  fixed: readonly CompiledWhere[],
): Promise<readonly CompiledWhere[]> {
  await policy.rows.load(request, where);
  return [...fixed, ...where.map((each) => policy.rows.compile(request, besideTenant(policy, request, each)))];
}

/** Search values of encrypted columns may be separate for each tenant: the condition then names the caller's. */
function besideTenant({ statements, bounds }: Policy, { tenant }: CrudRequest, where: Where): Where {
  const column = statements.encrypted.find(({ settings }) => settings.encrypted?.tenant !== undefined)?.settings.encrypted?.tenant;
  if (column === undefined || column !== bounds.tenant || tenant === null) return where;
  return { and: [{ [column]: storedIdentity(statements.column(column), tenant) }, where] } as Where;
}

/** How a page is found sooner, where the access of the resource knows. */
async function narrow(db: Db, request: CrudRequest, policy: Policy, page: AccessPage): Promise<CompiledNarrowing | undefined> {
  const { access } = policy.options;
  if (access?.page === undefined) return undefined;
  const { compiled, byAccess } = await policy.rows.visible(request);
  if (compiled.constant !== undefined || byAccess !== true) return undefined;
  const narrowing = await access.page(policy.rows.accessContext(request, db), page);
  return narrowing === undefined ? undefined : { ...narrowing, compiled: policy.rows.compile(request, narrowing.where) };
}

interface CompiledNarrowing extends AccessNarrowing {
  readonly compiled: CompiledWhere;
}

/** A condition that leaves out rows the caller may not see, for reads of every row; empty where the access of the resource knows none. */
export async function narrowWhole(db: Db, request: CrudRequest, policy: Policy): Promise<CompiledWhere[]> {
  const narrowed = await narrow(db, request, policy, { limit: Infinity, isFiltered: true, isWhole: true });
  return narrowed?.isComplete === true ? [narrowed.compiled] : [];
}

/** A narrowing only leaves rows out: what the caller may see is decided by the same statement as ever. */
export async function selectPage(db: Db, request: CrudRequest, policy: Policy, selection: Selection, page: AccessPage): Promise<Item[]> {
  // Grants of deleted objects are hidden: deleted rows are not found through them.
  return policy.options.access?.page === undefined || selection.rows === 'deleted'
    ? selectRows(db, request, selection)
    : selectNarrowed(db, request, policy, selection, page);
}

async function selectNarrowed(db: Db, request: CrudRequest, policy: Policy, selection: Selection, page: AccessPage): Promise<Item[]> {
  for (const isRetry of [false, true]) {
    const narrowed = await narrow(db, request, policy, isRetry ? { ...page, isRetry } : page);
    if (narrowed === undefined) break;
    const found = await selectRows(db, request, { ...selection, where: [...selection.where, narrowed.compiled] });
    if (narrowed.isComplete || found.length >= (selection.limit ?? 0)) return found;
  }
  return selectRows(db, request, selection);
}

function byKey(policy: Policy, ordering: readonly OrderTerm[], from: KeysetStart | undefined): Pick<AccessPage, 'byKey'> {
  const [term] = ordering;
  if (ordering.length !== 1 || term?.column !== policy.key.name) return {};
  if (from === undefined) return { byKey: { descending: term.descending } };
  const { position, backwards, inclusive = false } = from;
  return { byKey: { descending: term.descending !== backwards, after: position[0], inclusive } };
}

interface Counted {
  /** In the body. */
  readonly number: number | null;
  /** In the header. */
  readonly text: string | undefined;
  /** In the cursors, so that later pages say the same. */
  readonly carried: number | null;
}

/** No statement when the first page is the whole list. */
async function countRows(
  db: Db,
  request: CrudRequest,
  list: ListRequest,
  where: readonly CompiledWhere[],
  context: ListContext,
  { found, hasMore }: { readonly found: number; readonly hasMore: boolean },
): Promise<Counted> {
  if (context.options.count === 'none') return NOT_COUNTED;
  return hasMore ? countBeyond(db, request, list, where, context) : exactly(found);
}

const NOT_COUNTED: Counted = Object.freeze({ number: null, text: undefined, carried: null });

function exactly(number: number): Counted {
  return { number, text: String(number), carried: number };
}

function moreThan(upTo: number): Counted {
  return { number: null, text: `${upTo}+`, carried: null };
}

/** No count is below zero: a cursor tells an estimate by that. */
function about(estimate: number): Counted {
  return { number: null, text: `~${estimate}`, carried: -1 - estimate };
}

export async function countBeyond(
  db: Db,
  request: CrudRequest,
  { isDeleted }: Pick<ListRequest, 'isDeleted'>,
  where: readonly CompiledWhere[],
  { options: { count: mode }, policy }: { readonly options: Pick<PageOptions, 'count'>; readonly policy: Policy },
): Promise<Counted> {
  const { compiled } = await policy.rows.visible(request, isDeleted ? 'deleted' : 'live');
  const sourceOf = (conditions: readonly CompiledWhere[]) => {
    const parameters: unknown[] = [];
    const terms = conditions.filter((each) => each.constant !== true).map((each) => each.append(db.dialect, 't0', parameters));
    const mayBeLong = longPage(policy, conditions, db.dialect) ?? (upToOf(mode) > COUNTED_SHORT ? describe(policy, conditions) : undefined);
    if (mayBeLong !== undefined && terms.length > 0) terms.unshift(...unlessStopped(db.dialect, policy, 't0'));
    const from = `from ${policy.table} t0${terms.length === 0 ? '' : ` where ${terms.join(' and ')}`}`;
    return { from, parameters, terms, mayBeLong };
  };
  const { terms, ...source } = sourceOf([compiled, ...where]);
  if (mode === 'exact') {
    const whole = isDeleted ? [] : await narrowWhole(db, request, policy);
    const { from, parameters } = sourceOf([...whole, compiled, ...where]);
    const options = { replanned: true, mayBeLong: `count of ${describe(policy, [compiled, ...where])}` };
    const [row] = await db.query<{ count: number | bigint }>(`select count(*) as count ${from}`, parameters, options);
    return exactly(Number(row?.count ?? 0));
  }
  if (mode === 'estimate') {
    const estimate = await estimateCount(db, policy.model.name, terms.length === 0 ? undefined : source);
    if (estimate !== undefined) return about(estimate);
  }
  const upTo = upToOf(mode);
  const narrowed = isDeleted
    ? undefined
    : await narrow(db, request, policy, { limit: upTo + 1, isFiltered: where.length > 0, isCount: true });
  let number = narrowed === undefined ? undefined : await countUpTo(db, sourceOf([narrowed.compiled, compiled, ...where]), upTo);
  if (number === undefined || (number !== null && narrowed?.isComplete !== true)) number = await countUpTo(db, source, upTo);
  return number === null ? moreThan(upTo) : exactly(number);
}

/** Rows that are counted in an index while other requests wait. */
const COUNTED_SHORT = 10_000;

function upToOf(mode: CountMode): number {
  return typeof mode === 'object' ? mode.upTo : limits.countUpTo;
}

/** The count of the first page, as its cursor carries it. */
function carried(count: number | null, mode: CountMode): Counted {
  if (mode === 'none') return NOT_COUNTED;
  if (count === null) return mode === 'exact' ? NOT_COUNTED : moreThan(upToOf(mode));
  return count < 0 ? about(-1 - count) : exactly(count);
}

function boundTo({ user, tenant }: CrudRequest, { binding }: ListRequest, keyset: Keyset, operation: string): string {
  return JSON.stringify([operation, user?.id ?? null, tenant, keyset.shape, binding]);
}

export function invalidCursor(): Error {
  return crudErrors.invalid_cursor({
    errors: [
      {
        location: ['query', 'cursor'],
        code: 'invalid_cursor',
        message: 'The cursor does not belong to this list. Start at the first page, or follow next and previous as they are.',
      },
    ],
  });
}

/** The parameters beside this one as they were sent, also empty and repeated ones. */
function without(queryString: string, name: string): string[] {
  return queryString.split('&').filter((pair) => pair !== '' && decodeName(pair) !== name);
}

function decodeName(pair: string): string {
  const equals = pair.indexOf('=');
  const name = equals === -1 ? pair : pair.slice(0, equals);
  return name.includes('%') || name.includes('+') ? decodeURIComponent(name.replaceAll('+', ' ')) : name;
}
