// SQL of the worker: the results of its claims. Every statement needs the token of the claim, and the job to be running.
import type { Db } from '../../../db/engine/db.ts';
import { LOCK_PATIENCE } from '../../../work/lock-patience.ts';
import type { AttemptOutcome, JobStatus } from '../models.ts';

/** A claim that a statement needs to be still ours. */
export interface Held {
  readonly id: string;
  readonly token: string;
}

export interface Success extends Held {
  /** JSON text. */
  readonly result: string | null;
  readonly finished_at: Date;
}

// The token stays: a commit whose answer was lost is found by it. Nothing else accepts it, because the job no longer runs.
const SUCCEEDED = `status = 'succeeded', is_ready = false, progress = case when w.progress is null then null else 100 end,
  error_code = null, error_message = null, claimed_until = null, unique_lock = null`;

const SUCCEED_POSTGRES = `update jobs w set ${SUCCEEDED}, result = r.result, finished_at = to_timestamp(r.finished_ms / 1000)
  from unnest(cast($1 as uuid[]), cast($2 as text[]), cast($3 as text[]), cast($4 as float8[])) as r(id, token, result, finished_ms), ${LOCK_PATIENCE}
  where w.id = r.id and w.claim_token = r.token and w.status = 'running' returning w.id`;
const member = (name: string): string => `value ->> '${name}' as ${name}`;
const membersOf = (parameter: string, names: readonly string[]): string =>
  `(select ${names.map(member).join(', ')} from json_each(${parameter})) r`;
const SUCCEED_SQLITE = `update jobs as w set ${SUCCEEDED}, result = r.result, finished_at = r.finished_at
  from ${membersOf('$1', ['id', 'token', 'result', 'finished_at'])}
  where w.id = r.id and w.claim_token = r.token and w.status = 'running' returning id`;

/** Returns the ids that were still ours. */
export async function succeed(db: Db, results: readonly Success[]): Promise<string[]> {
  const rows =
    db.dialect === 'sqlite'
      ? await db.query<{ id: string }>(SUCCEED_SQLITE, [JSON.stringify(results)])
      : await db.query<{ id: string }>(SUCCEED_POSTGRES, [
          `{${results.map(({ id }) => id).join(',')}}`,
          `{${results.map(({ token }) => token).join(',')}}`,
          results.map(({ result }) => result),
          `{${results.map(({ finished_at }) => finished_at.getTime()).join(',')}}`,
        ]);
  return rows.map(({ id }) => id);
}

/** The fence of `commit`: the last statement of its transaction. False: the claim is no longer ours. */
export async function succeedOne(tx: Db, { id, token, result, finished_at: at }: Success): Promise<boolean> {
  const rows = await tx.query<{ id: string }>(
    `update jobs as w set ${SUCCEEDED}, result = $3, finished_at = $4 where w.id = $1 and w.claim_token = $2 and w.status = 'running' returning id`,
    [id, token, result, at],
  );
  return rows.length === 1;
}

/** Whether a commit whose answer was lost has been saved. */
export async function hasSucceeded(db: Db, { id, token }: Held): Promise<boolean> {
  const rows = await db.query(`select id from jobs where id = $1 and claim_token = $2 and status = 'succeeded'`, [id, token]);
  return rows.length === 1;
}

/** An attempt that did not succeed. */
export interface Failed extends Held {
  readonly status: Extract<JobStatus, 'queued' | 'failed'>;
  /** When it is tried again. */
  readonly run_at?: Date | undefined;
  readonly code: string;
  readonly message: string;
  readonly outcome: AttemptOutcome;
  readonly attempt_id: string;
  readonly attempt: number;
  readonly started_at: Date;
  readonly finished_at: Date;
}

const FAILED_MEMBERS = [
  'id',
  'token',
  'status',
  'run_at',
  'code',
  'message',
  'outcome',
  'attempt_id',
  'attempt',
  'started_at',
  'finished_at',
] as const;
const FAILED = `status = r.status, is_ready = false, run_at = coalesce(r.run_at, w.run_at), error_code = r.code, error_message = r.message,
  finished_at = case when r.status = 'failed' then r.finished_at end, claim_token = null, claimed_until = null, worker = null,
  unique_lock = case when r.status = 'failed' then null else w.unique_lock end`;
const ATTEMPT_COLUMNS = 'job_id, id, attempt, outcome, started_at, finished_at, error_code, error_message, worker';
const ATTEMPT_VALUES = 'r.id, r.attempt_id, r.attempt, r.outcome, r.started_at, r.finished_at, r.code, r.message, $2';

// An attempt is written if and only if its job was ours.
const FAIL_POSTGRES = `with r as (
  select * from json_to_recordset(cast($1 as json)) as r(id uuid, token text, status text, run_at timestamptz, code text, message text,
    outcome text, attempt_id uuid, attempt integer, started_at timestamptz, finished_at timestamptz)
), failed as (
  update jobs w set ${FAILED} from r, ${LOCK_PATIENCE} where w.id = r.id and w.claim_token = r.token and w.status = 'running' returning w.id
), attempt as (
  insert into job_attempts (${ATTEMPT_COLUMNS}) select ${ATTEMPT_VALUES} from r join failed f on f.id = r.id
)
select id from failed`;
const FAIL_SQLITE = `update jobs as w set ${FAILED} from ${membersOf('$1', FAILED_MEMBERS)}
  where w.id = r.id and w.claim_token = r.token and w.status = 'running' returning id`;
const ATTEMPTS_SQLITE = `insert into job_attempts (${ATTEMPT_COLUMNS}) select ${ATTEMPT_VALUES} from ${membersOf('$1', FAILED_MEMBERS)}`;

/** Writes failed attempts and what follows from them. Returns the ids that were still ours. */
export async function fail(db: Db, results: readonly Failed[], worker: string): Promise<string[]> {
  if (db.dialect === 'postgres')
    return (await db.query<{ id: string }>(FAIL_POSTGRES, [JSON.stringify(results), worker])).map(({ id }) => id);
  return db.transaction(async (tx) => {
    const ours = new Set((await tx.query<{ id: string }>(FAIL_SQLITE, [JSON.stringify(results)])).map(({ id }) => id));
    const attempts = results.filter(({ id }) => ours.has(id));
    if (attempts.length > 0) await tx.query(ATTEMPTS_SQLITE, [JSON.stringify(attempts), worker]);
    return [...ours];
  });
}

const heldRows = (db: Db): string =>
  db.dialect === 'postgres' ? 'json_to_recordset(cast($1 as json)) as r(id uuid, token text)' : membersOf('$1', ['id', 'token']);
const heldText = (claims: readonly Held[]): string => JSON.stringify(claims.map(({ id, token }) => ({ id, token })));

const RELEASED = `status = 'queued', attempts = w.attempts - 1, run_at = coalesce($2, w.run_at), is_ready = ($2 is null),
  claim_token = null, claimed_until = null, worker = null, started_at = null`;
const RELEASE_POSTGRES = `with r as (
  select * from json_to_recordset(cast($1 as json)) as r(id uuid, token text)
), free as (
  select w.id from jobs w join r on w.id = r.id and w.claim_token = r.token where w.status = 'running' for no key update of w skip locked
), released as (
  update jobs w set ${RELEASED.replaceAll('$2', 'cast($2 as timestamptz)')} from free where w.id = free.id returning w.id
)
select w.id from jobs w join r on w.id = r.id and w.claim_token = r.token where w.status = 'running' and w.id not in (select id from released)`;
const RELEASE_SQLITE = `update jobs as w set ${RELEASED} from ${membersOf('$1', ['id', 'token'])}
  where w.id = r.id and w.claim_token = r.token and w.status = 'running'`;

/**
 * Gives jobs back as if they had not been claimed: ready at once, or waiting until a time. Returns the ids of those that another transaction has
 * locked: they are not given back.
 */
export async function release(db: Db, claims: readonly Held[], until: Date | null = null): Promise<string[]> {
  if (claims.length === 0) return [];
  const text = db.dialect === 'postgres' ? RELEASE_POSTGRES : RELEASE_SQLITE;
  return (await db.query<{ id: string }>(text, [heldText(claims), until])).map(({ id }) => id);
}

/** Those of the jobs that another transaction has locked. PostgreSQL only. */
export async function lockedJobs(db: Db, ids: readonly string[]): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `with free as (select id from jobs where id = any(cast($1 as uuid[])) for no key update skip locked)
     select id from jobs where id = any(cast($1 as uuid[])) and id not in (select id from free)`,
    [ids],
  );
  return rows.map(({ id }) => id);
}

// A job that another transaction has locked, such as one that cancels it, is left alone: waiting for it would let every other lease end.
const RENEW_POSTGRES = `with r as (
  select * from json_to_recordset(cast($1 as json)) as r(id uuid, token text)
), free as (
  select w.id from jobs w join r on w.id = r.id and w.claim_token = r.token where w.status = 'running' for no key update of w skip locked
), renewed as (
  update jobs w set claimed_until = clock_timestamp() + $2 * interval '1 millisecond' from free where w.id = free.id returning w.id
)
select w.id, renewed.id is not null as renewed from jobs w join r on w.id = r.id and w.claim_token = r.token
left join renewed on renewed.id = w.id where w.status = 'running'`;
const RENEW_SQLITE = `update jobs as w set claimed_until = $2 from ${membersOf('$1', ['id', 'token'])}
  where w.id = r.id and w.claim_token = r.token and w.status = 'running' returning id, true as renewed`;

/** Renews leases. Returns the ids that are still ours, and whether their lease is longer now. */
export async function renew(db: Db, claims: readonly Held[], leaseMs: number, now: Date): Promise<ReadonlyMap<string, boolean>> {
  const [text, until] = db.dialect === 'postgres' ? [RENEW_POSTGRES, leaseMs] : [RENEW_SQLITE, new Date(now.getTime() + leaseMs)];
  const rows = await db.query<{ id: string; renewed: unknown }>(text, [heldText(claims), until]);
  return new Map(rows.map(({ id, renewed }) => [id, Boolean(renewed)]));
}

/** The handlers of cancelled jobs have ended: their leases need not be waited for any more. */
export async function endCancelledLeases(db: Db, claims: readonly Held[], worker: string): Promise<void> {
  if (claims.length === 0) return;
  const patience = db.dialect === 'postgres' ? `, ${LOCK_PATIENCE}` : '';
  await db.query(
    `update jobs as w set claimed_until = null from ${heldRows(db)}${patience} where w.id = r.id and w.status = 'cancelled' and w.worker = $2`,
    [heldText(claims), worker],
  );
}

/** False: the claim is no longer ours. */
export async function saveProgress(db: Db, { id, token }: Held, progress: number, message: string | null): Promise<boolean> {
  const rows = await db.query(
    `update jobs set progress = $3, progress_message = $4 where id = $1 and claim_token = $2 and status = 'running' returning id`,
    [id, token, progress, message],
  );
  return rows.length === 1;
}

/** Jobs whose lease ended without a result. */
export interface Expired {
  readonly id: string;
  readonly status: JobStatus;
  readonly queue: string;
  readonly serial_key: string | null;
  readonly priority: number;
}

const LOST = `case when w.attempts >= w.attempts_max then`;
const EXPIRE = `status = case when w.status <> 'running' then w.status when w.attempts >= w.attempts_max then 'failed' else 'queued' end,
  is_ready = w.status = 'running' and w.attempts < w.attempts_max,
  finished_at = case when w.status <> 'running' then w.finished_at when w.attempts >= w.attempts_max then $1 end,
  error_code = case when w.status = 'running' then 'worker_lost' else w.error_code end,
  error_message = case when w.status = 'running' then $2 else w.error_message end,
  unique_lock = ${LOST} null else w.unique_lock end,
  claim_token = null, claimed_until = null`;
const EXPIRED_MAX = 200;

const EXPIRE_POSTGRES = `with expired as (
  select id, status, worker, attempts, started_at from jobs where claimed_until <= clock_timestamp()
  order by claimed_until limit ${EXPIRED_MAX} for update skip locked
), changed as (
  update jobs w set ${EXPIRE} from expired e where w.id = e.id returning w.id, w.status, w.queue, w.serial_key, w.priority
), attempt as (
  insert into job_attempts (${ATTEMPT_COLUMNS})
  select e.id, gen_random_uuid(), e.attempts, 'worker_lost', e.started_at, $1, 'worker_lost', $2, e.worker from expired e where e.status = 'running'
)
select id, status, queue, serial_key, priority from changed`;

/** Ends the leases that were not renewed: the jobs are ready again, or have failed when that was their last attempt. */
export async function expire(db: Db, now: Date, message: string, attemptId: () => string): Promise<readonly Expired[]> {
  if (db.dialect === 'postgres') return db.query<Expired>(EXPIRE_POSTGRES, [now, message]);
  const due = `select id, status, worker, attempts, started_at from jobs where claimed_until <= $1 order by claimed_until limit ${EXPIRED_MAX}`;
  if ((await db.query(due, [now])).length === 0) return [];
  return db.transaction(async (tx) => {
    const rows = await tx.query<{ id: string; status: string; worker: string; attempts: number; started_at: Date }>(due, [now]);
    for (const { id, status, worker, attempts, started_at: startedAt } of rows)
      if (status === 'running')
        await tx.query(`insert into job_attempts (${ATTEMPT_COLUMNS}) values ($1, $2, $3, 'worker_lost', $4, $5, 'worker_lost', $6, $7)`, [
          id,
          attemptId(),
          attempts,
          startedAt,
          now,
          message,
          worker,
        ]);
    return tx.query<Expired>(
      `update jobs as w set ${EXPIRE} where id in (select value from json_each($3)) returning id, status, queue, serial_key, priority`,
      [now, message, JSON.stringify(rows.map(({ id }) => id))],
    );
  });
}
