// SQL of management: reading, cancelling, retrying and removing jobs.
import { exceptHeld } from '../../../app/data/legal-holds.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { Subject } from '../../../db/subjects/subject.ts';
import { skipLocked } from '../../../work/lock-patience.ts';
import { isUuid } from '../../../db/values/uuid.ts';
import { uuidv7LowerBound } from '../../../db/values/uuidv7.ts';
import { type AttemptOutcome, jobRows, type JobStatus } from '../models.ts';
import { requireArguments } from '../../../options/read-options.ts';
import { queryable } from '../../../options/value-rule.ts';

/** A stored job. */
export interface Job {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly queue: string;
  readonly status: JobStatus;
  /** JSON text. */
  readonly input: string;
  readonly progress: number | null;
  readonly progress_message: string | null;
  /** JSON text. */
  readonly result: string | null;
  readonly error_code: string | null;
  readonly error_message: string | null;
  readonly attempts: number;
  readonly attempts_max: number;
  readonly priority: number;
  readonly run_at: Date;
  readonly unique_key: string | null;
  readonly serial_key: string | null;
  readonly owner_id: string;
  readonly tenant_key: string;
  readonly created_at: Date;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
  readonly claimed_until: Date | null;
  readonly worker: string | null;
  /** The request that started it; null outside requests. */
  readonly request_id: string | null;
}

export const JOB_COLUMNS = `id, name, version, queue, status, input, progress, progress_message, result, error_code, error_message, attempts,
  attempts_max, priority, run_at, unique_key, serial_key, owner_id, tenant_key, created_at, started_at, finished_at, claimed_until, worker,
  request_id`;

/** An id as the database stores it; null when no job can have it. PostgreSQL fails the transaction that asks for anything but a UUID. */
export function jobIdOf(id: unknown): string | null {
  return typeof id === 'string' && isUuid(id) ? id.toLowerCase() : null;
}

/** The job with this id, or undefined. */
export async function findJob(db: Db, id: string): Promise<Job | null> {
  requireArguments('findJob()', { db }, { db: queryable });
  const known = jobIdOf(id);
  if (known === null) return null;
  const [row] = await db.query<Job>(`select ${JOB_COLUMNS} from jobs where id = $1`, [known]);
  return row ?? null;
}

export interface StoredAttempt {
  readonly attempt: number;
  readonly outcome: AttemptOutcome;
  readonly started_at: Date | null;
  readonly finished_at: Date;
  readonly error_code: string | null;
  readonly error_message: string | null;
  readonly worker: string | null;
}

export function attemptsOf(db: Db, jobId: string): Promise<StoredAttempt[]> {
  return db.query<StoredAttempt>(
    `select attempt, outcome, started_at, finished_at, error_code, error_message, worker from job_attempts where job_id = $1
     order by finished_at, id`,
    [jobId],
  );
}

export interface StoredStepRow {
  readonly name: string;
  readonly result: string | null;
  readonly attempt: number;
  readonly finished_at: Date;
}

export function recordedSteps(db: Db, jobId: string): Promise<StoredStepRow[]> {
  return db.query<StoredStepRow>('select name, result, attempt, finished_at from job_steps where job_id = $1 order by finished_at, name', [
    jobId,
  ]);
}

/** Ends a job that has not ended. A running one loses its token and keeps its lease: its handler may still be at work. */
export async function cancelUnfinished(tx: Db, id: string, now: Date, attemptId: string): Promise<JobStatus | null> {
  const lock = tx.dialect === 'postgres' ? ' for update' : '';
  const [job] = await tx.query<{ status: JobStatus; attempts: number; started_at: Date | null; worker: string | null }>(
    `select status, attempts, started_at, worker from jobs where id = $1 and status in ('queued', 'running')${lock}`,
    [id],
  );
  if (job === undefined) return null;
  await tx.query(
    `update jobs set status = 'cancelled', is_ready = false, finished_at = $2, claim_token = null, unique_lock = null where id = $1`,
    [id, now],
  );
  if (job.status === 'running')
    await tx.query(
      `insert into job_attempts (job_id, id, attempt, outcome, started_at, finished_at, worker) values ($1, $2, $3, 'cancelled', $4, $5, $6)`,
      [id, attemptId, job.attempts, job.started_at, now, job.worker],
    );
  return job.status;
}

// A lease on PostgreSQL ends by its own clock.
const leaseEnded = (db: Db, now: string): string =>
  `(claimed_until is null or claimed_until <= ${db.dialect === 'postgres' ? 'clock_timestamp()' : now})`;
const requeue = (
  db: Db,
): string => `update jobs set status = 'queued', is_ready = (serial_key is null), attempts = 0, run_at = $2, finished_at = null,
  result = null, error_code = null, error_message = null, progress = null, progress_message = null, started_at = null, worker = null,
  claim_token = null, claimed_until = null, unique_lock = unique_key,
  turn_key = case when owner_id = '' then tenant_key else owner_id end
  where status in ('failed', 'cancelled') and ${leaseEnded(db, '$2')}`;

export interface Requeued {
  readonly id: string;
  readonly queue: string;
  readonly priority: number;
  readonly serial_key: string | null;
}

/** A failed or cancelled job with a full budget of attempts again; its recorded steps stay. Fails when its unique key is taken. */
export async function requeueOne(tx: Db, id: string, now: Date): Promise<Requeued | null> {
  const [row] = await tx.query<Requeued>(`${requeue(tx)} and id = $1 returning id, queue, priority, serial_key`, [id, now]);
  return row ?? null;
}

export interface FailedJobFilter {
  /** Jobs of this definition. */
  readonly name?: string | undefined;
  /** Jobs of this queue. */
  readonly queue?: string | undefined;
  /** Jobs that failed with this error code. */
  readonly code?: string | undefined;
  /** Jobs that failed at this time or later. */
  readonly since?: Date | undefined;
}

/** Failed jobs that a filter names, oldest first. */
export async function findFailed(db: Db, filter: FailedJobFilter, after: string, limit: number): Promise<string[]> {
  const conditions = [`status = 'failed'`, 'id > $1'];
  const parameters: unknown[] = [after, limit];
  for (const [column, value] of [
    ['name =', filter.name],
    ['queue =', filter.queue],
    ['error_code =', filter.code],
    ['finished_at >=', filter.since],
  ] as const)
    if (value !== undefined) conditions.push(`${column} $${parameters.push(value)}`);
  const rows = await db.query<{ id: string }>(`select id from jobs where ${conditions.join(' and ')} order by id limit $2`, parameters);
  return rows.map(({ id }) => id);
}

/** How far the clocks of two processes may differ: keys begin with the time of the process that started the job. */
const CLOCK_DIFFERENCE_MS = 60_000;

/** Removes finished jobs with their attempts and steps; those of people and tenants under a legal hold stay. Newer keys are not read: a run that finds nothing would walk through the whole table. */
export async function pruneFinished(tx: Db, before: Date, limit: number, holds: readonly Subject[] = []): Promise<number> {
  const values: unknown[] = [before, limit, uuidv7LowerBound(new Date(before.getTime() + CLOCK_DIFFERENCE_MS))];
  const kept = exceptHeld(holds, jobRows, 'jobs', values);
  const rows = await tx.query(
    `delete from jobs where id in (
       select id from jobs where id < $3 and finished_at < $1 and created_at < $1 and claimed_until is null${kept} order by id limit $2${skipLocked(tx)}
     ) returning id`,
    values,
  );
  return rows.length;
}

/** The newest jobs, for people. */
export function recentJobs(
  db: Db,
  filter: { readonly status?: string | undefined; readonly name?: string | undefined; readonly queue?: string | undefined },
  limit: number,
): Promise<Job[]> {
  const conditions: string[] = [];
  const parameters: unknown[] = [limit];
  for (const column of ['status', 'name', 'queue'] as const)
    if (filter[column] !== undefined) conditions.push(`${column} = $${parameters.push(filter[column])}`);
  const where = conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`;
  return db.query<Job>(`select ${JOB_COLUMNS} from jobs${where} order by id desc limit $1`, parameters);
}
