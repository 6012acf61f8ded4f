import type { ListRequest } from '../api/client.ts';
import { adminFilterNames, type AdminResourceShape } from '../api/shapes.ts';
import type { Params } from '../routing/location.ts';

export const PAGE_SIZES = [25, 50, 100] as const;
export const DEFAULT_PAGE_SIZE = 50;

/** What a list shows, as its address says it; names that the resource does not know are left out. */
export function readListQuery(resource: AdminResourceShape, params: URLSearchParams): ListRequest {
  const filters: Record<string, string> = {};
  for (const name of resource.filters.flatMap((filter) => [...adminFilterNames(filter).keys()])) {
    const value = params.get(`filter.${name}`);
    if (value !== null && value !== '') filters[name] = value;
  }
  const sort = params.get('sort') ?? '';
  const sortable = resource.columns.some((column) => column.sortable === true && column.name === sort.replace(/^-/, ''));
  const size = Number(params.get('size'));
  return {
    search: resource.searches === undefined ? '' : (params.get('search') ?? ''),
    filters,
    sort: sortable ? sort : '',
    cursor: params.get('after') ?? '',
    limit: PAGE_SIZES.find((known) => known === size) ?? DEFAULT_PAGE_SIZE,
  };
}

/** The address of a list; what is as usual is left out. */
export function listParams({ search, filters, sort, cursor, limit }: ListRequest): Params {
  return {
    search,
    ...Object.fromEntries(Object.entries(filters).map(([name, value]) => [`filter.${name}`, value])),
    sort,
    size: limit === DEFAULT_PAGE_SIZE ? undefined : String(limit),
    after: cursor,
  };
}

/** Whether the list shows less than everything. */
export function isNarrowed({ search, filters }: ListRequest): boolean {
  return search !== '' || Object.keys(filters).length > 0;
}
