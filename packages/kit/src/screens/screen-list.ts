import type { AdminContext, AdminListQuery } from '../app/admin/declaration.ts';
import type { AdminOrder } from '../app/admin/model-columns.ts';
import { ADMIN_COUNT_MAX, type AdminPage } from '../app/admin/shapes.ts';
import { usualLimits } from '../crud/declare/limits.ts';
import { readParameter } from '../crud/parameters/parameter-value.ts';
import type { BoundedWhere } from '../crud/read/bounded.ts';
import { blankSeparated, searchedWords } from '../crud/read/search.ts';
import type { AdminAccess } from '../crud/staff/admin-access.ts';
import { staffKeyset } from '../crud/staff/staff-keyset.ts';
import type { StaffItem, StaffListQuery, StaffOrder, StaffSearch } from '../crud/staff/staff-list.ts';
import type { Db } from '../db/engine/db.ts';
import type { CursorContent } from '../db/sql/keyset/cursor.ts';
import type { Keyset } from '../db/sql/keyset/keyset.ts';
import { isUuid } from '../db/values/uuid.ts';
import type { Where } from '../db/sql/where/where.ts';
import { coreErrors } from '../errors/core-errors.ts';
import { filterWhere, indexedRange, isFilterIndexed, isFoundByIndex, rangeOrders, usedFilters } from './screen-filters.ts';
import type { Plan } from './screen-plan.ts';

type Narrowing = Pick<AdminListQuery, 'search' | 'filters' | 'sort'>;

/** One page of the list, with what it says about its search. */
export async function listPage(
  access: AdminAccess,
  plan: Plan,
  context: AdminContext,
  query: AdminListQuery,
): Promise<
  { readonly items: readonly StaffItem[]; readonly count: number | null; readonly next: string | null } & Pick<
    AdminPage,
    'searched' | 'atLeast'
  >
> {
  const boundTo = (order: string) => `${query.bound} ${order}`;
  const { items, count, next, keyset, bounded } = await access.list({
    ...listQuery(plan, context, query, false),
    limit: query.limit,
    countMax: ADMIN_COUNT_MAX,
    start: (known) => (query.cursor === null ? undefined : readCursor(query.cursors.read(query.cursor, boundTo(known.shape)), known)),
  });
  return {
    items,
    count,
    next: next === undefined ? null : query.cursors.write({ position: next, backwards: false, count }, boundTo(keyset.shape)),
    ...(bounded.searched === undefined ? {} : { searched: bounded.searched }),
    ...(bounded.isCut ? { atLeast: true } : {}),
  };
}

/**
 * The rows that the search and the filters leave: for a page, and `isWhole` for a file, which has all of them whether an index finds them or not.
 */
export function listQuery(plan: Plan, context: AdminContext, query: Narrowing, isWhole: boolean): StaffListQuery {
  return {
    rows: plan.softDeletes && query.filters['deleted'] === 'yes' ? 'deleted' : 'live',
    fields: isWhole ? plan.fields : plan.listed,
    filters: query.filters,
    narrow: (bounded, shows, search, hasLongRule) => narrow(plan, context, query, { bounded, shows, search, hasLongRule, isWhole }),
  };
}

interface Narrow {
  readonly bounded: BoundedWhere;
  readonly shows: (name: string) => boolean;
  readonly search: StaffSearch;
  /** Which rows this staff member sees is decided by a condition that no index serves. */
  readonly hasLongRule: boolean;
  readonly isWhole: boolean;
}

async function narrow(plan: Plan, context: AdminContext, query: Narrowing, how: Narrow): Promise<StaffOrder> {
  const { bounded, shows, isWhole } = how;
  const { dialect } = context.databases[plan.using] as Db;
  if (query.search !== null) await addSearch(plan, context, query.search, how);
  const filters = usedFilters(plan, query.filters).map(async (filter) =>
    Object.assign(filter, { where: await filterWhere(plan, filter, shows, context) }),
  );
  const used = await Promise.all(filters);
  for (const { where } of used) bounded.add(where);
  const isUnbounded =
    isWhole || bounded.searched !== undefined || (how.hasLongRule ? used.some(isFoundByIndex) : isFilterIndexed(plan, used, query.filters));
  const range = isUnbounded ? undefined : indexedRange(plan, used, dialect);
  if (range !== undefined) await bounded.newestOf(range.column.name, range.bounds);
  else if (!isUnbounded) await bounded.newest();
  // Rows of a range come in its order, while the newest rows by key may be far from it.
  const ofRange = range !== undefined && shows(range.column.name) ? { column: range.column.name, descending: true } : null;
  const sort = query.sort ?? ofRange;
  const orders = range === undefined ? plan.orders : rangeOrders(plan, range.column);
  const order = sort === null || !shows(sort.column) ? undefined : orders[sort.column];
  if (!isWhole && range === undefined && order !== undefined && order.indexed !== true) await bounded.newest();
  // Of a range, the index has the rows in order.
  return orderOf(plan, order, sort, { dialect, isBounded: range === undefined && bounded.searched !== undefined });
}

function orderOf(
  { keyName, keyKind }: Plan,
  order: AdminOrder | undefined,
  sort: AdminListQuery['sort'],
  { dialect, isBounded }: { readonly dialect: Db['dialect']; readonly isBounded: boolean },
): StaffOrder {
  const keyset = staffKeyset({ key: keyName, kind: keyKind, isBounded }, order, sort, dialect);
  return {
    keyset,
    isIndexed: order === undefined || order.indexed === true,
    ...(order?.cut === undefined ? {} : { cut: { [sort?.column ?? keyName]: order.cut } }),
  };
}

/** By the backend of the resource where it has one and this staff member sees its columns, else by what the text columns contain. */
async function addSearch(plan: Plan, context: AdminContext, text: string, { bounded, shows, search, isWhole }: Narrow): Promise<void> {
  const { model, keyName, keyKind, backend, searched } = plan;
  const isKey = keyKind === 'uuid' && isUuid(text.toLowerCase());
  // Login names and addresses are stored in lower case.
  const id = text.toLowerCase();
  if (backend !== null && backend.columns.every(shows)) {
    if (isKey) return bounded.add({ [keyName]: id } as Where);
    const words = searchedWords(backend, text).slice(0, usualLimits.searchWords).join(' ');
    return bounded.add(await search(backend, words));
  }
  const columns = searched.filter(shows);
  const unique = columns.filter((name) => model.columns[name]?.settings.unique === true);
  // No row has a text that the column cannot have, as one that is longer than its limit.
  const possible = (column: string) => {
    const settings = model.columns[column]?.settings;
    return settings === undefined ? [] : [...new Set([text, id])].filter((value) => readParameter(settings, value).fault === undefined);
  };
  const also = Object.entries((await plan.words.alsoFinds?.(text, context)) ?? {}).filter(([column]) => shows(column));
  const equals = [
    ...(isKey ? [{ column: keyName, values: [id] }] : []),
    ...unique.map((column) => ({ column, values: possible(column) })),
    ...also.map(([column, values]) => ({ column, values })),
  ];
  // As in the API: every word, in whichever column.
  return bounded.search({ columns, equals, words: blankSeparated(text).slice(0, usualLimits.searchWords) }, isWhole);
}

function readCursor(content: CursorContent | undefined, keyset: Keyset): CursorContent {
  if (content !== undefined && keyset.accepts(content.position)) return content;
  throw coreErrors.validation_error({
    errors: [{ location: ['query', 'cursor'], code: 'invalid', message: 'The cursor is not from this list. Start at the first page.' }],
  });
}
