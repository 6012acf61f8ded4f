// SQL of `startJob`, for our own transactions and those of other libraries.
import type { Dialect } from '../../db/dialect.ts';
import {
  markTransaction,
  transactionEnded,
  transactionIsOpen,
  unmarkTransaction,
  type SqlExecutor,
  type SqlParameter,
  type SqlStatement,
  type SqlSteps,
} from '../../db/foreign/sql-executor.ts';

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

const notify = (rows: string, isOpen: string): string =>
  `select cast(count(*) as integer) as created, ${isOpen} as open, case when count(*) > 0 then cast(pg_notify('${WAKE_CHANNEL}', cast($16 as text)) as text) end as notified from ${rows}`;

// One statement and so one round trip: the job, and the notification that the commit sends.
const startOnPostgres = (isOpen: string): string => `with job as (
  ${INSERT} select ${VALUES.postgres}, cast(cast($1 as text) as uuid), cast($17 as text) where ${isOpen} ${ON_TAKEN_KEY} returning id
) ${notify('job', isOpen)}`;
const startOnSqlite = (isOpen: string): string => `${INSERT} select ${VALUES.sqlite}, $1, $16 where ${isOpen} ${ON_TAKEN_KEY} returning id`;
const startManyOnPostgres = (isOpen: string): string => `with job as (
  ${INSERT} select ${VALUES.postgres}, r.id, r.input from json_to_recordset(cast($1 as json)) as r(id uuid, input text) where ${isOpen} returning id
) ${notify('job', isOpen)}`;
const startManyOnSqlite = (isOpen: string): string =>
  `${INSERT} select ${VALUES.sqlite}, value ->> 'id', value ->> 'input' from json_each($1) where ${isOpen} returning id`;

/** Where the library says that its transaction is open, and where the statement must see for itself. */
const START_POSTGRES = { known: startOnPostgres('true'), guarded: startOnPostgres(transactionIsOpen('postgres', 'cast($18 as text)')) };
const START_SQLITE = { known: startOnSqlite('true'), guarded: startOnSqlite(transactionIsOpen('sqlite')) };
const START_MANY_POSTGRES = {
  known: startManyOnPostgres('true'),
  guarded: startManyOnPostgres(transactionIsOpen('postgres', 'cast($17 as text)')),
};
const START_MANY_SQLITE = { known: startManyOnSqlite('true'), guarded: startManyOnSqlite(transactionIsOpen('sqlite')) };

interface Statements {
  readonly known: string;
  readonly guarded: string;
}

/** Returns how many jobs were written. Outside a transaction nothing is, and the call is refused. */
function* writeToPostgres(tx: SqlExecutor, statements: Statements, parameters: readonly SqlParameter[], mark: string): SqlSteps<number> {
  const isKnownOpen = tx.isTransaction === true;
  const statement: SqlStatement = isKnownOpen ? [statements.known, parameters] : [statements.guarded, [...parameters, mark]];
  let [row] = (yield statement) as { created: number; open: boolean }[];
  if (row?.open === false) {
    // Nothing was written before in this transaction, or there is none: only the mark of a transaction outlives its statement.
    yield* markTransaction('postgres', mark);
    [row] = (yield statement) as { created: number; open: boolean }[];
  }
  if (row?.open === false) throw transactionEnded();
  return row?.created ?? 0;
}

function* writeToSqlite(tx: SqlExecutor, statements: Statements, parameters: readonly SqlParameter[]): SqlSteps<number> {
  if (tx.isTransaction === true) return (yield [statements.known, parameters]).length;
  yield* markTransaction('sqlite', '');
  const rows = yield [statements.guarded, parameters];
  if (!(yield* unmarkTransaction('sqlite'))) throw transactionEnded();
  return rows.length;
}

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
export function* insertJob(tx: SqlExecutor, job: NewJob): SqlSteps<boolean> {
  const parameters = parametersOf(job.id, job);
  const written =
    tx.dialect === 'sqlite'
      ? yield* writeToSqlite(tx, START_SQLITE, [...parameters, job.input])
      : yield* writeToPostgres(tx, START_POSTGRES, [...parameters, wakePayload(job), job.input], job.id);
  return written === 1;
}

/** Many jobs that differ in their input alone. */
export function* insertJobs(
  tx: SqlExecutor,
  job: Omit<NewJob, 'id' | 'input'>,
  each: readonly Pick<NewJob, 'id' | 'input'>[],
): SqlSteps<void> {
  const parameters = parametersOf(JSON.stringify(each.map(({ id, input }) => ({ id, input }))), job);
  if (tx.dialect === 'sqlite') yield* writeToSqlite(tx, START_MANY_SQLITE, parameters);
  else yield* writeToPostgres(tx, START_MANY_POSTGRES, [...parameters, wakePayload(job)], each[0]?.id ?? '');
}

/** The job that has taken the unique key. */
export function* findByUniqueKey(job: NewJob): SqlSteps<{ id: string; status: string; input: string } | undefined> {
  const [row] = yield [
    'select id, status, input from jobs where name = $1 and tenant_key = $2 and owner_id = $3 and unique_lock = $4',
    [job.name, job.tenantKey, job.owner, job.uniqueKey],
  ];
  return row as { id: string; status: string; input: string } | undefined;
}
