import { ofRequests } from '../crud/staff/request-where.ts';
import type { ScreenFilter } from './screen-words.ts';

/** The name of the filter of lists whose rows store the request that caused them. */
export const REQUEST_FILTER = 'request_id';

/** The filter by request: `table` has an index that begins with `request_id`, and `column` the ids of its rows. */
export function requestFilter(table: string, column = 'id'): ScreenFilter {
  return { name: REQUEST_FILTER, label: 'Request id', kind: 'text', isIndexed: true, where: (given) => ofRequests(given, table, column) };
}
