// SQL of the admin site's list of jobs.
import { AdminConditions, type AdminRows, ofRequests, SEARCHED_ROWS_MAX, type SearchNote } from '../../../app/admin/list.ts';
import { modelList } from '../../../app/admin/model-list.ts';
import type { AdminListQuery } from '../../../app/admin/declaration.ts';
import { boundOrder, newestRows } from '../../../app/admin/search-rows.ts';
import type { Db } from '../../../db/engine/db.ts';
import { countUpTo } from '../../../db/rows/count-rows.ts';
import { uuidv7LowerBound } from '../../../db/values/uuidv7.ts';
import { jobRows } from '../models.ts';
import { JOB_COLUMNS, type Job } from '../rows/store.ts';

export const jobList = modelList(jobRows, 'jobs', {
  columns: [
    { name: 'name', label: 'Job' },
    'status',
    { name: 'progress', kind: 'progress' },
    { name: 'message', kind: 'text', secondary: true },
    { name: 'queue', secondary: true },
    { name: 'attempts', kind: 'text', secondary: true },
    { name: 'run_at', label: 'Due', secondary: true },
    { name: 'created_at', label: 'Started', sortable: true },
  ],
});

/** Every condition is that of an index, word for word. */
const STATUS_CONDITIONS: Readonly<Record<string, string>> = {
  running: `status = 'running' and claimed_until is not null`,
  failed: `status = 'failed'`,
};

/** Queued jobs are in these partial indexes. */
const QUEUED = [
  `status = 'queued' and is_ready`,
  `status = 'queued' and not is_ready and serial_key is null`,
  `serial_key is not null and (finished_at is null or claimed_until is not null) and status = 'queued' and not is_ready`,
]
  .map((condition) => `select * from jobs where ${condition}`)
  .join(' union all ');

/** No index has these. */
const UNINDEXED: Readonly<Record<string, string>> = { name: 'name', queue: 'queue', code: 'error_code' };

export async function listJobs(db: Db, query: AdminListQuery): Promise<AdminRows<Job> & SearchNote> {
  const where = new AdminConditions(db.dialect);
  const { status, owner, due, record, serial_key: serialKey, since, until } = query.filters;
  if (query.search !== null) where.uuid('id', query.search);
  if (status !== undefined) where.add(STATUS_CONDITIONS[status] ?? `status = ${where.parameter(status)}`);
  for (const [filter, column] of Object.entries(UNINDEXED)) {
    const value = query.filters[filter];
    if (value !== undefined) where.add(`${column} = ${where.parameter(value)}`);
  }
  if (owner !== undefined) where.add(`owner_id = ${where.parameter(owner)} and owner_id <> ''`);
  if (due !== undefined) where.add(`status = 'queued' and ${due === 'ready' ? 'is_ready' : 'not is_ready'}`);
  if (serialKey !== undefined) where.add(`serial_key = ${where.parameter(serialKey)}`);
  if (record !== undefined) where.add(`(serial_key = ${where.parameter(record)} or unique_key = ${where.parameter(record)})`);
  if (since !== undefined) where.add(`id >= ${where.parameter(uuidv7LowerBound(new Date(since)))}`);
  if (until !== undefined) where.add(`id < ${where.parameter(uuidv7LowerBound(new Date(until)))}`);
  const isOfRequest = ofRequests(where, query, 'jobs.id', 'jobs');
  const isNarrowed = isOfRequest || [owner, due, serialKey, record].some((filter) => filter !== undefined) || query.search !== null;
  const isUnindexed =
    status === 'succeeded' ||
    status === 'cancelled' ||
    (Object.keys(UNINDEXED).some((filter) => query.filters[filter] !== undefined) && status === undefined);
  if (isUnindexed && !isNarrowed) await newestRows(db, where, jobList.place);
  else await boundOrder(db, where, query, jobList.orders, jobList.place);
  const from = (status === 'queued' || due === 'waiting') && (await areQueuedFew(db)) ? `from (${QUEUED}) jobs` : 'from jobs';
  return jobList.rows<Job>(db, query, where, { columns: JOB_COLUMNS, from });
}

/** A few old ones among a million that have ended are found by their indexes; where there are many, any walk meets them soon. */
async function areQueuedFew(db: Db): Promise<boolean> {
  return (
    (await countUpTo(db, { from: `from (${QUEUED}) queued`, parameters: [], mayBeLong: 'count of queued jobs' }, SEARCHED_ROWS_MAX)) !==
    null
  );
}
