// SQL of `startJob`, for our own transactions and those of other libraries.
import type { Dialect } from '../../db/dialect.ts';
import type { SqlParameter, SqlSteps } from '../../db/foreign/sql-executor.ts';

/**
 * The channel on which workers are woken. The payload begins with what happened: `+<queue>` a job may be claimed, `~<queue>` one waits for its
 * time or its turn, `-<id>` a running job was cancelled.
 */
export const WAKE_CHANNEL = 'kit_jobs';

export interface NewJob {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly queue: string;
  readonly isReady: boolean;
  /** JSON text. */
  readonly input: string;
  readonly attemptsMax: number;
  readonly priority: number;
  readonly runAt: Date;
  readonly uniqueKey: string | null;
  readonly uniqueUntilStarted: boolean;
  readonly serialKey: string | null;
  readonly owner: string;
  readonly tenantKey: string;
  readonly createdAt: Date;
  /** The trace that the job belongs to. */
  readonly traceparent: string | null;
}

const COLUMNS = `name, version, queue, is_ready, attempts_max, priority, run_at, unique_key, unique_lock, unique_until_started,
  serial_key, owner_id, tenant_key, created_at, traceparent, status, attempts`;
const INSERT = `insert into jobs (${COLUMNS}, id, input)`;
const ON_TAKEN_KEY = 'on conflict (name, tenant_key, owner_id, unique_lock) where unique_lock is not null do nothing';

// From $2 on, so that `values` and `select` share it. The same parameter is the key and its lock.
const VALUES: Readonly<Record<Dialect, string>> = {
  postgres: `cast($2 as text), cast($3 as integer), cast($4 as text), cast($5 as integer) = 1, cast($6 as integer), cast($7 as integer),
  cast($8 as timestamptz), cast($9 as text), cast($9 as text), cast($10 as integer) = 1, cast($11 as text), cast($12 as text), cast($13 as text),
  cast($14 as timestamptz), cast($15 as text), 'queued', 0`,
  sqlite: `$2, $3, $4, $5, $6, $7, $8, $9, $9, $10, $11, $12, $13, $14, $15, 'queued', 0`,
};

const notify = (rows: string): string =>
  `select cast(count(*) as integer) as created, case when count(*) > 0 then cast(pg_notify('${WAKE_CHANNEL}', cast($16 as text)) as text) end as notified from ${rows}`;

const START: Readonly<Record<Dialect, string>> = {
  // One statement and so one round trip: the job, and the notification that the commit sends.
  postgres: `with job as (
  ${INSERT} values (${VALUES.postgres}, cast(cast($1 as text) as uuid), cast($17 as text)) ${ON_TAKEN_KEY} returning id
) ${notify('job')}`,
  sqlite: `${INSERT} values (${VALUES.sqlite}, $1, $16) ${ON_TAKEN_KEY} returning id`,
};

const START_MANY: Readonly<Record<Dialect, string>> = {
  postgres: `with job as (
  ${INSERT} select ${VALUES.postgres}, r.id, r.input from json_to_recordset(cast($1 as json)) as r(id uuid, input text) returning id
) ${notify('job')}`,
  sqlite: `${INSERT} select ${VALUES.sqlite}, value ->> 'id', value ->> 'input' from json_each($1) where true returning id`,
};

function parametersOf(first: string, job: Omit<NewJob, 'id' | 'input'>): SqlParameter[] {
  const { name, version, queue, isReady, attemptsMax, priority, runAt, uniqueKey, uniqueUntilStarted, serialKey, owner, tenantKey } = job;
  return [
    first,
    name,
    version,
    queue,
    Number(isReady),
    attemptsMax,
    priority,
    runAt.toISOString(),
    uniqueKey,
    Number(uniqueUntilStarted),
    serialKey,
    owner,
    tenantKey,
    job.createdAt.toISOString(),
    job.traceparent,
  ];
}

export function wakePayload({ isReady, queue }: Pick<NewJob, 'isReady' | 'queue'>): string {
  return `${isReady ? '+' : '~'}${queue}`;
}

/** Writes a job in the caller's transaction. False: its unique key is taken, and nothing was written. */
export function* insertJob(dialect: Dialect, job: NewJob): SqlSteps<boolean> {
  const parameters = parametersOf(job.id, job);
  if (dialect === 'sqlite') return (yield [START.sqlite, [...parameters, job.input]]).length === 1;
  const [row] = (yield [START.postgres, [...parameters, wakePayload(job), job.input]]) as { created: number }[];
  return row?.created === 1;
}

/** Many jobs that differ in their input alone. */
export function* insertJobs(
  dialect: Dialect,
  job: Omit<NewJob, 'id' | 'input'>,
  each: readonly Pick<NewJob, 'id' | 'input'>[],
): SqlSteps<void> {
  const parameters = parametersOf(JSON.stringify(each.map(({ id, input }) => ({ id, input }))), job);
  yield [START_MANY[dialect], dialect === 'sqlite' ? parameters : [...parameters, wakePayload(job)]];
}

/** The job that has taken the unique key. */
export function* findByUniqueKey(job: NewJob): SqlSteps<{ id: string; status: string; input: string } | undefined> {
  const [row] = yield [
    'select id, status, input from jobs where name = $1 and tenant_key = $2 and owner_id = $3 and unique_lock = $4',
    [job.name, job.tenantKey, job.owner, job.uniqueKey],
  ];
  return row as { id: string; status: string; input: string } | undefined;
}
