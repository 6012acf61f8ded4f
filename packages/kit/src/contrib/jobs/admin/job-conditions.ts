// Conditions of the admin site's list of jobs: each is that of a partial index, word for word.
import { REQUEST_ROWS_MAX, SEARCHED_ROWS_MAX } from '../../../app/admin/list.ts';
import type { Db } from '../../../db/engine/db.ts';
import { countUpTo } from '../../../db/rows/count-rows.ts';
import type { Where } from '../../../db/sql/where/where.ts';
import { whereSql } from '../../../db/sql/where/where-sql.ts';
import { uuidv7LowerBound } from '../../../db/values/uuidv7.ts';
import type { jobRows } from '../models.ts';

type JobWhere = Where<typeof jobRows.columns>;

const READY = `status = 'queued' and is_ready`;
/** Queued jobs are in these partial indexes. */
const QUEUED = [
  READY,
  `status = 'queued' and not is_ready and serial_key is null`,
  `serial_key is not null and (finished_at is null or claimed_until is not null) and status = 'queued' and not is_ready`,
];

const CONDITIONS: Readonly<Record<string, string>> = {
  running: `this.status = 'running' and this.claimed_until is not null`,
  failed: `this.status = 'failed'`,
};

export async function statusWhere(db: Db, status: string): Promise<JobWhere> {
  if (status === 'queued') return queuedWhere(db, `this.status = 'queued'`, QUEUED);
  const condition = CONDITIONS[status];
  return condition === undefined ? ({ status } as JobWhere) : whereSql(condition);
}

export async function dueWhere(db: Db, due: string): Promise<JobWhere> {
  if (due === 'ready') return queuedWhere(db, `this.status = 'queued' and this.is_ready`, [READY]);
  return queuedWhere(db, `this.status = 'queued' and not this.is_ready`, QUEUED);
}

/** A few old ones among a million that have ended are found by their indexes; where there are many, any walk meets them soon. */
async function queuedWhere(db: Db, condition: string, indexed: readonly string[]): Promise<JobWhere> {
  const ids = indexed.map((each) => `select id from jobs where ${each}`).join(' union all ');
  const from = `from (${ids}) queued`;
  const areFew = (await countUpTo(db, { from, parameters: [], mayBeLong: 'count of queued jobs' }, SEARCHED_ROWS_MAX)) !== null;
  return whereSql(areFew ? `${condition} and this.id in (${ids})` : condition);
}

/** As a query of its own, because SQLite looked for the jobs of several requests from the newest row of the table on. */
export function requestWhere(ids: string): JobWhere {
  const given = ids.split(',').map((id) => id.trim());
  const places = given.map((_, index) => `$${index + 1}`).join(', ');
  return whereSql(`this.id in (select r.id from jobs r where r.request_id in (${places}) limit ${REQUEST_ROWS_MAX})`, given);
}

/** By the key, which has the time of the start: `from` a time on, or before it. */
export function startedWhere(time: Date, end: string): JobWhere {
  const bound = uuidv7LowerBound(time);
  return { id: end === 'from' ? { gte: bound } : { lt: bound } };
}
