// SQL of `startJob`, for our own transactions and those of other libraries.
import type { Dialect } from '../../../db/dialect.ts';
import {
  markTransaction,
  transactionEnded,
  transactionIsOpen,
  unmarkTransaction,
  type SqlExecutor,
  type SqlParameter,
  type SqlStatement,
  type SqlSteps,
} from '../../../db/engine/foreign/sql-executor.ts';
import { timestampText } from '../../../db/values/timestamp.ts';
import { canWakeAfterCommit } from '../../../work/wake-workers.ts';

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
  /** The request that starts it. */
  readonly requestId: string | null;
}

const COLUMNS = `name, version, queue, is_ready, attempts_max, priority, run_at, unique_key, unique_lock, unique_until_started,
  serial_key, owner_id, tenant_key, turn_key, created_at, traceparent, request_id, status, attempts`;
const INSERT = `insert into jobs (${COLUMNS}, id, input)`;
const ON_TAKEN_KEY = 'on conflict (name, tenant_key, owner_id, unique_lock) where unique_lock is not null do nothing';

// From $2 on, so that `values` and `select` share it. The same parameter is the key and its lock. Jobs without an owner take turns by tenant.
const VALUES: Readonly<Record<Dialect, string>> = {
  postgres: `cast($2 as text), cast($3 as integer), cast($4 as text), cast($5 as integer) = 1, cast($6 as integer), cast($7 as integer),
  cast($8 as timestamptz), cast($9 as text), cast($9 as text), cast($10 as integer) = 1, cast($11 as text), cast($12 as text), cast($13 as text),
  case when cast($12 as text) = '' then cast($13 as text) else cast($12 as text) end, cast($14 as timestamptz), cast($15 as text),
  cast($16 as text), 'queued', 0`,
  sqlite: `$2, $3, $4, $5, $6, $7, $8, $9, $9, $10, $11, $12, $13, case when $12 = '' then $13 else $12 end, $14, $15, $16, 'queued', 0`,
};

/** Of a statement on PostgreSQL: how it knows that a transaction is open, and the parameter with which it notifies the workers, if it does. */
interface Variant {
  readonly isOpen: string;
  readonly payload: string | null;
}

const counted = (isOpen: string, payload: string | null): string =>
  `select cast(count(*) as integer) as created, ${isOpen} as open${payload === null ? '' : `, case when count(*) > 0 then cast(pg_notify('${WAKE_CHANNEL}', ${payload}) as text) end as notified`} from job`;

// One statement and so one round trip: the job and, where it cannot be done after the commit, the notification of workers.
const startOnPostgres = ({ isOpen, payload }: Variant): string => {
  const insert = `${INSERT} select ${VALUES.postgres}, cast(cast($1 as text) as uuid), cast($17 as text) where ${isOpen} ${ON_TAKEN_KEY}`;
  if (isOpen === 'true' && payload === null) return `${insert} returning 1 as created, true as open`;
  return `with job as (${insert} returning id) ${counted(isOpen, payload)}`;
};
const startOnSqlite = (isOpen: string): string => `${INSERT} select ${VALUES.sqlite}, $1, $17 where ${isOpen} ${ON_TAKEN_KEY} returning id`;
const startManyOnPostgres = ({ isOpen, payload }: Variant): string => `with job as (
  ${INSERT} select ${VALUES.postgres}, r.id, r.input from json_to_recordset(cast($1 as json)) as r(id uuid, input text) where ${isOpen} returning id
) ${counted(isOpen, payload)}`;
const startManyOnSqlite = (isOpen: string): string =>
  `${INSERT} select ${VALUES.sqlite}, value ->> 'id', value ->> 'input' from json_each($1) where ${isOpen} returning id`;

/** Where the library says that its transaction is open, and where the statement must see for itself. */
const START_SQLITE = { known: startOnSqlite('true'), guarded: startOnSqlite(transactionIsOpen('sqlite')) };
const START_MANY_SQLITE = { known: startManyOnSqlite('true'), guarded: startManyOnSqlite(transactionIsOpen('sqlite')) };
const START_POSTGRES = onPostgres(18, startOnPostgres);
const START_MANY_POSTGRES = onPostgres(17, startManyOnPostgres);

/** Silent ones leave it to `startJob` to wake the workers after the commit. `next`: the first parameter after those of the jobs. */
function onPostgres(next: number, make: (variant: Variant) => string): { readonly silent: Statements; readonly notifying: Statements } {
  const text = (parameter: number): string => `cast($${parameter} as text)`;
  const isOpen = (mark: number): string => transactionIsOpen('postgres', text(mark));
  return {
    silent: { known: make({ isOpen: 'true', payload: null }), guarded: make({ isOpen: isOpen(next), payload: null }) },
    notifying: {
      known: make({ isOpen: 'true', payload: text(next) }),
      guarded: make({ isOpen: isOpen(next + 1), payload: text(next) }),
    },
  };
}

interface Statements {
  readonly known: string;
  readonly guarded: string;
}

/** Returns how many jobs were written. Outside a transaction nothing is, and the call is refused. */
function* writeToPostgres(
  tx: SqlExecutor,
  of: ReturnType<typeof onPostgres>,
  ofJobs: readonly SqlParameter[],
  { payload, mark }: { readonly payload: string; readonly mark: string },
): SqlSteps<number> {
  const [statements, parameters] = canWakeAfterCommit(tx) ? [of.silent, ofJobs] : [of.notifying, [...ofJobs, payload]];
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
    timestampText(runAt),
    uniqueKey,
    Number(uniqueUntilStarted),
    serialKey,
    owner,
    tenantKey,
    timestampText(job.createdAt),
    job.traceparent,
    job.requestId,
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
      : yield* writeToPostgres(tx, START_POSTGRES, [...parameters, job.input], { payload: wakePayload(job), mark: job.id });
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
  else yield* writeToPostgres(tx, START_MANY_POSTGRES, parameters, { payload: wakePayload(job), mark: each[0]?.id ?? '' });
}

/** The job that has taken the unique key. */
export function* findByUniqueKey(job: NewJob): SqlSteps<{ id: string; status: string; input: string } | undefined> {
  const [row] = yield [
    'select id, status, input from jobs where name = $1 and tenant_key = $2 and owner_id = $3 and unique_lock = $4',
    [job.name, job.tenantKey, job.owner, job.uniqueKey],
  ];
  return row as { id: string; status: string; input: string } | undefined;
}
