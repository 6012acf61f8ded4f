import { whereSql } from '../db/sql/where/where-sql.ts';
import type { Where } from '../db/sql/where/where.ts';
import type { ScreenFilter } from './screen-words.ts';

/** Of one request more rows than these are not listed. */
const REQUEST_ROWS_MAX = 1_000;

/** The name of the filter of lists whose rows store the request that caused them. */
export const REQUEST_FILTER = 'request_id';

/**
 * The filter by request, or by several with commas between. `table` has an index that begins with `request_id`, and `column` the ids of its rows. As a
 * query of its own, because SQLite looked for the rows of several requests from the newest row of the table on.
 */
export function requestFilter(table: string, column = 'id'): ScreenFilter {
  return {
    name: REQUEST_FILTER,
    label: 'Request id',
    kind: 'text',
    isIndexed: true,
    where(given) {
      const ids = given.split(',').map((id) => id.trim());
      const places = ids.map((_, index) => `$${index + 1}`).join(', ');
      const found = `select r.id from ${table} r where r.request_id in (${places}) limit ${REQUEST_ROWS_MAX}`;
      return whereSql(`this.${column} in (${found})`, ids) as Where;
    },
  };
}
