// Conditions of the admin site's list of jobs: each is that of a partial index, word for word.
import type { Db } from '../../../db/engine/db.ts';
import { whereSql } from '../../../db/sql/where/where-sql.ts';
import type { Where } from '../../../db/sql/where/where.ts';
import { rareWhere } from '../../../crud/staff/rare-where.ts';

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

export async function statusWhere(db: Db, status: string): Promise<Where> {
  if (status === 'queued') return rareWhere(db, 'jobs', `this.status = 'queued'`, QUEUED);
  const condition = CONDITIONS[status];
  return (condition === undefined ? { status } : whereSql(condition)) as Where;
}

export function dueWhere(db: Db, due: string): Promise<Where> {
  if (due === 'ready') return rareWhere(db, 'jobs', `this.status = 'queued' and this.is_ready`, [READY]);
  return rareWhere(db, 'jobs', `this.status = 'queued' and not this.is_ready`, QUEUED);
}
