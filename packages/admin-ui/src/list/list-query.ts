import type { ListRequest } from '../api/client.ts';
import type { ApiFault } from '../api/fault.ts';
import { adminFilterNames, type AdminResourceShape } from '../api/shapes.ts';
import type { Params } from '../routing/location.ts';

export const PAGE_SIZES = [25, 50, 100] as const;
export const DEFAULT_PAGE_SIZE = 50;

const FILTER = 'filter.';

/** What a list shows, as its address says it. Whether the list has these names and values, the server says. */
export function readListQuery(params: URLSearchParams): ListRequest {
  const given = [...params].filter(([name, value]) => name.startsWith(FILTER) && value !== '');
  const size = Number(params.get('size'));
  return {
    search: params.get('search') ?? '',
    filters: Object.fromEntries(given.map(([name, value]) => [name.slice(FILTER.length), value])),
    sort: params.get('sort') ?? '',
    cursor: params.get('after') ?? '',
    limit: PAGE_SIZES.find((known) => known === size) ?? DEFAULT_PAGE_SIZE,
    columns: (params.get('columns') ?? '').split(',').filter((name) => name !== ''),
  };
}

/** The address of a list; what is as usual is left out. */
export function listParams({ search, filters, sort, cursor, limit, columns }: ListRequest): Params {
  return {
    search,
    ...Object.fromEntries(Object.entries(filters).map(([name, value]) => [`filter.${name}`, value])),
    sort,
    columns: columns.join(','),
    size: limit === DEFAULT_PAGE_SIZE ? undefined : String(limit),
    after: cursor,
  };
}

/** The columns that are not shown: of a view, those that it does not name; else what this person does not want to see. The first is always shown. */
export function hiddenColumns(
  { columns }: Pick<AdminResourceShape, 'columns'>,
  { columns: shown }: Pick<ListRequest, 'columns'>,
  preferred: readonly string[],
): readonly string[] {
  const names = columns.slice(1).map(({ name }) => name);
  return columns.some(({ name }) => shown.includes(name)) ? names.filter((name) => !shown.includes(name)) : preferred;
}

export function shownColumns({ columns }: Pick<AdminResourceShape, 'columns'>, hidden: readonly string[]): readonly string[] {
  return columns.flatMap(({ name }, index) => (index === 0 || !hidden.includes(name) ? [name] : []));
}

/** Whether the list shows less than everything. */
export function isNarrowed({ search, filters }: ListRequest): boolean {
  return search !== '' || Object.keys(filters).length > 0;
}

/** What the server did not take of an address, in sentences, and the rest of it. Null: the error is about something else. */
export function withoutWrong(
  resource: AdminResourceShape,
  query: ListRequest,
  fault: ApiFault,
): { readonly query: ListRequest; readonly sentences: readonly string[] } | null {
  const wrong = new Map(fault.fields.map(({ field, message }) => [field, message]));
  const isAsked = (name: string): boolean =>
    /^(?:search|sort)$/.test(name) || (name.startsWith(FILTER) && name.slice(FILTER.length) in query.filters);
  if (fault.status !== 422 || wrong.size === 0 || ![...wrong.keys()].every(isAsked)) return null;
  const filters = Object.fromEntries(Object.entries(query.filters).filter(([name]) => !wrong.has(`${FILTER}${name}`)));
  const rest = {
    ...query,
    filters,
    cursor: '',
    sort: wrong.has('sort') ? '' : query.sort,
    search: wrong.has('search') ? '' : query.search,
  };
  return {
    query: rest,
    sentences: [...wrong].map(
      ([name, message]) => `${called(resource, query, name)} is ignored. ${isKnown(resource, name) ? message : NOT_THERE}`,
    ),
  };
}

const NOT_THERE = 'This list has no such filter.';

function isKnown({ filters }: AdminResourceShape, name: string): boolean {
  return !name.startsWith(FILTER) || filters.some((filter) => adminFilterNames(filter).has(name.slice(FILTER.length)));
}

/** `The filter "Status: opne"`. */
function called({ filters }: AdminResourceShape, query: ListRequest, name: string): string {
  if (name === 'search') return `The search "${query.search}"`;
  if (name === 'sort') return `The sort order "${query.sort}"`;
  const own = name.slice(FILTER.length);
  const label = filters.find((filter) => adminFilterNames(filter).has(own))?.label ?? own;
  return `The filter "${label}: ${query.filters[own] ?? ''}"`;
}
