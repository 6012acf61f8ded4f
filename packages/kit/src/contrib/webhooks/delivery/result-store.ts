// SQL of the worker: writing the results of its claims.
import type { Db } from '../../../db/engine/db.ts';
import { LOCK_PATIENCE } from '../../../work/lock-patience.ts';
import type { Claim } from './claim-store.ts';
import type { WebhookDelivery } from '../endpoints/store.ts';

/** The result of a claim, as the database stores it. What is left out is null there: most results leave most of it out. */
export interface Finalised {
  readonly id: string;
  readonly token: string;
  readonly endpoint_id: string;
  readonly status: WebhookDelivery['status'];
  readonly attempts: number;
  readonly next_attempt_at?: Date | undefined;
  readonly status_code?: number | undefined;
  readonly error?: string | undefined;
  readonly reason?: NonNullable<WebhookDelivery['failure_reason']> | undefined;
  readonly delivered_at?: Date | undefined;
  /** The row of the attempt history; left out when nothing was sent. */
  readonly attempt_id?: string | undefined;
  readonly started_at: Date;
  readonly duration_ms: number;
  readonly excerpt?: string | undefined;
}

export type WrittenResult = Pick<WebhookDelivery, 'id' | 'status'>;

// A retry of an endpoint that was disabled while the request was under way fails like its other pending deliveries.
const OUTCOME = `status = case when r.status = 'pending' and not p.is_active then 'failed' else r.status end,
  failure_reason = case when r.status = 'pending' and not p.is_active then 'endpoint_disabled' else r.reason end,
  next_attempt_at = case when r.status = 'pending' and p.is_active then r.next_attempt_at end,
  attempts = r.attempts, last_status_code = r.status_code, last_error = r.error, delivered_at = r.delivered_at,
  claim_token = null, claimed_until = null`;
const ATTEMPT_COLUMNS = 'delivery_id, id, started_at, duration_ms, status_code, failure_reason, error, response_excerpt, worker';
const ATTEMPT_VALUES = 'r.id, r.attempt_id, r.started_at, r.duration_ms, r.status_code, r.reason, r.error, r.excerpt, $2';

/** Locks the deliveries that no other transaction has locked; returns their ids. PostgreSQL only. */
export async function lockFree(tx: Db, ids: readonly string[]): Promise<Set<string>> {
  const rows = await tx.query<{ id: string }>(
    'select id from webhook_deliveries where id = any(cast($1 as uuid[])) order by id for no key update skip locked',
    [ids],
  );
  return new Set(rows.map(({ id }) => id));
}

// What nearly every result is: nothing that depends on the endpoint, and columns instead of documents, which PostgreSQL reads in a tenth of the
// time. The attempts are inserted from what the update returns, so an attempt is written if and only if its delivery was ours.
const SUCCEED_POSTGRES = `with finalised as (
  update webhook_deliveries d set status = 'succeeded', attempts = r.attempts, last_status_code = r.status_code,
    delivered_at = to_timestamp(r.delivered_ms / 1000), next_attempt_at = null, last_error = null, failure_reason = null,
    claim_token = null, claimed_until = null
  from unnest(cast($1 as uuid[]), cast($2 as text[]), cast($3 as integer[]), cast($4 as integer[]), cast($5 as float8[]), cast($6 as uuid[]),
    cast($7 as float8[]), cast($8 as integer[]), cast($9 as text[]))
    as r(id, token, attempts, status_code, delivered_ms, attempt_id, started_ms, duration_ms, excerpt), ${LOCK_PATIENCE}
  where d.id = r.id and d.claim_token = r.token
  returning d.id, r.attempt_id, r.started_ms, r.duration_ms, r.status_code, r.excerpt
), attempt as (
  insert into webhook_attempts (delivery_id, id, started_at, duration_ms, status_code, response_excerpt, worker)
  select id, attempt_id, to_timestamp(started_ms / 1000), duration_ms, status_code, coalesce(excerpt, ''), $10 from finalised
)
select cast(count(*) as integer) as count from finalised`;

const FINALISE_POSTGRES = `with r as (
  select * from json_to_recordset(cast($1 as json)) as r(id uuid, token text, endpoint_id uuid, status text, attempts integer,
    next_attempt_at timestamptz, status_code integer, error text, reason text, delivered_at timestamptz, attempt_id uuid,
    started_at timestamptz, duration_ms integer, excerpt text)
), finalised as (
  update webhook_deliveries d set ${OUTCOME} from r join webhook_endpoints p on p.id = r.endpoint_id, ${LOCK_PATIENCE}
  where d.id = r.id and d.claim_token = r.token returning d.id, d.status
), attempt as (
  insert into webhook_attempts (${ATTEMPT_COLUMNS})
  select ${ATTEMPT_VALUES} from r join finalised f on f.id = r.id where r.attempt_id is not null
)
select id, status from finalised`;

const member = (name: string): string => `value ->> '${name}' as ${name}`;
const FINALISE_SQLITE = `update webhook_deliveries set ${OUTCOME}
from (select ${['id', 'token', 'endpoint_id', 'status', 'attempts', 'next_attempt_at', 'status_code', 'error', 'reason', 'delivered_at'].map(member).join(', ')}
  from json_each($1)) r join webhook_endpoints p on p.id = r.endpoint_id
where webhook_deliveries.id = r.id and webhook_deliveries.claim_token = r.token returning webhook_deliveries.id, webhook_deliveries.status`;
const ATTEMPTS_SQLITE = `insert into webhook_attempts (${ATTEMPT_COLUMNS})
select ${ATTEMPT_VALUES} from (select ${['id', 'attempt_id', 'started_at', 'duration_ms', 'status_code', 'reason', 'error', 'excerpt'].map(member).join(', ')}
  from json_each($1)) r where r.attempt_id is not null`;

/** A result that needs no more than `succeed` writes. */
export interface Success extends Finalised {
  readonly delivered_at: Date;
  readonly attempt_id: string;
  readonly excerpt: string;
}

export function isSuccess(result: Finalised): result is Success {
  const { status, delivered_at: at, attempt_id: attempt, excerpt } = result;
  return status === 'succeeded' && at !== undefined && attempt !== undefined && excerpt !== undefined;
}

/**
 * Writes successes and their attempts; returns how many were still ours. Only for PostgreSQL: SQLite has no arrays, and reads JSON in its
 * own process.
 */
export async function succeed(db: Db, results: readonly Success[], worker: string): Promise<number> {
  const column = (value: (result: Success) => string | number): string => `{${results.map(value).join(',')}}`;
  const [row] = await db.query<{ count: number }>(SUCCEED_POSTGRES, [
    column(({ id }) => id),
    column(({ token }) => token),
    column(({ attempts }) => attempts),
    column(({ status_code }) => status_code ?? 'NULL'),
    column(({ delivered_at }) => delivered_at.getTime()),
    column(({ attempt_id }) => attempt_id),
    column(({ started_at }) => started_at.getTime()),
    column(({ duration_ms }) => duration_ms),
    results.every(({ excerpt }) => excerpt === '') ? null : results.map(({ excerpt }) => excerpt),
    worker,
  ]);
  return row?.count ?? 0;
}

/** Writes results and attempts. Rows whose claim is no longer ours are left alone and missing from the answer. */
export async function finalise(db: Db, results: readonly Finalised[], worker: string): Promise<WrittenResult[]> {
  if (db.dialect === 'postgres') return db.query<WrittenResult>(FINALISE_POSTGRES, [JSON.stringify(results), worker]);
  return db.transaction(async (tx) => {
    const rows = await tx.query<WrittenResult>(FINALISE_SQLITE, [JSON.stringify(results)]);
    const ours = new Set(rows.map(({ id }) => id));
    const attempts = results.filter(({ id, attempt_id }) => attempt_id !== undefined && ours.has(id));
    if (attempts.length > 0) await tx.query(ATTEMPTS_SQLITE, [JSON.stringify(attempts), worker]);
    return rows;
  });
}

/** The deliveries whose results were not written, as far as they still exist. */
export async function unwritten(
  db: Db,
  results: readonly Pick<Finalised, 'id' | 'attempt_id'>[],
): Promise<(WrittenResult & { readonly is_ours: boolean })[]> {
  const source =
    db.dialect === 'postgres'
      ? 'json_to_recordset(cast($1 as json)) as r(id uuid, attempt_id uuid)'
      : `(select ${member('id')}, ${member('attempt_id')} from json_each($1)) r`;
  const rows = await db.query<WrittenResult & { attempt: string | null }>(
    // Ours after all: the statement did its work, and the connection was lost before it could say so.
    `select d.id, d.status, a.id as attempt from ${source} join webhook_deliveries d on d.id = r.id
     left join webhook_attempts a on a.delivery_id = r.id and a.id = r.attempt_id`,
    [JSON.stringify(results)],
  );
  return rows.map(({ id, status, attempt }) => ({ id, status, is_ours: attempt !== null }));
}

/** What the results of a batch mean for an endpoint's health. */
export interface HealthChange {
  readonly id: string;
  /** The end of the last request that succeeded; failures count from there. */
  readonly succeeded_at: Date | null;
  readonly failures: number;
  readonly failing_since: Date | null;
}

// A success forgets the failures before it and none after it, which another worker may have written already.
const FORGETS =
  '(r.succeeded_at is not null and (webhook_endpoints.failing_since is null or webhook_endpoints.failing_since <= r.succeeded_at))';
const HEALTH = `failing_since = case when ${FORGETS} then r.failing_since else coalesce(webhook_endpoints.failing_since, r.failing_since) end,
  consecutive_failures = case when ${FORGETS} then r.failures else webhook_endpoints.consecutive_failures + r.failures end`;
const UNHEALTHY = '(r.failures > 0 or webhook_endpoints.failing_since is not null or webhook_endpoints.consecutive_failures <> 0)';

// Locked in one order by everyone: two workers with results for the same endpoints cannot wait for each other.
const HEALTH_POSTGRES = `with r as (
  select * from json_to_recordset(cast($1 as json)) as r(id uuid, succeeded_at timestamptz, failures integer, failing_since timestamptz)
), held as (
  select webhook_endpoints.id from ${LOCK_PATIENCE}, webhook_endpoints where webhook_endpoints.id in (select id from r)
  order by webhook_endpoints.id for no key update of webhook_endpoints
)
update webhook_endpoints set ${HEALTH} from r join held on held.id = r.id where webhook_endpoints.id = r.id and ${UNHEALTHY}`;
const HEALTH_SQLITE = `update webhook_endpoints set ${HEALTH}
from (select ${['id', 'succeeded_at', 'failures', 'failing_since'].map(member).join(', ')} from json_each($1)) r
where webhook_endpoints.id = r.id and ${UNHEALTHY}`;

export async function changeHealth(db: Db, changes: readonly HealthChange[]): Promise<void> {
  if (changes.length === 0) return;
  await db.query(db.dialect === 'postgres' ? HEALTH_POSTGRES : HEALTH_SQLITE, [JSON.stringify(changes)]);
}

/** Gives claims back: due again at once, or parked until something makes them due. */
export async function releaseClaims(db: Db, claims: readonly Pick<Claim, 'id' | 'token'>[], { park = false } = {}): Promise<void> {
  if (claims.length === 0) return;
  const r =
    db.dialect === 'postgres'
      ? `json_to_recordset(cast($1 as json)) as r(id uuid, token text), ${LOCK_PATIENCE}`
      : `(select ${member('id')}, ${member('token')} from json_each($1)) r`;
  await db.query(
    `update webhook_deliveries set claim_token = null, claimed_until = null${park ? ', next_attempt_at = null' : ''}
     from ${r} where webhook_deliveries.id = r.id and webhook_deliveries.claim_token = r.token`,
    [JSON.stringify(claims.map(({ id, token }) => ({ id, token })))],
  );
}
