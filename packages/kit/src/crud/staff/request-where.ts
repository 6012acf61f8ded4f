import { quoteName } from '../../db/declare/names.ts';
import { whereSql } from '../../db/sql/where/where-sql.ts';
import type { Where } from '../../db/sql/where/where.ts';

/** Of one request more rows than these are not listed. */
const REQUEST_ROWS_MAX = 1_000;

/**
 * Rows that were caused by a request, or by one of several with commas between. `table` has an index that begins with `request_id`, and `column` the ids of
 * its rows. As a query of its own, because SQLite looked for the rows of several requests from the newest row of the table on.
 */
export function ofRequests(requests: string, table: string, column: string): Where {
  const ids = requests.split(',').map((id) => id.trim());
  const places = ids.map((_, index) => `$${index + 1}`).join(', ');
  const found = `select r.id from ${quoteName(table)} r where r.request_id in (${places}) limit ${REQUEST_ROWS_MAX}`;
  return whereSql(`this.${column} in (${found})`, ids) as Where;
}
