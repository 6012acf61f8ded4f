// SQL of the maintenance commands: bounded batches, each in a transaction of its own.
import { exceptHeld } from '../../../app/data/legal-holds.ts';
import type { Db } from '../../../db/engine/db.ts';
import { estimateCount } from '../../../db/rows/count-rows.ts';
import type { Subject } from '../../../db/subjects/subject.ts';
import { skipLocked } from '../../../work/lock-patience.ts';
import type { Audience } from '../publishing/audience.ts';
import { endIdBefore } from '../publishing/event-id.ts';
import type { WebhookEndpoint } from '../endpoints/store.ts';
import { webhookDeliveries, webhookEvents, webhookSubscriptionPeriods } from '../models.ts';
import { countUnreachable } from './unreachable-store.ts';

export interface WebhookStats {
  /** Waiting to be sent. What waits for an audience does not count: see `events_without_audience`. */
  readonly pending: number;
  /** Of the pending ones, those with a failed attempt behind them. */
  readonly retrying: number;
  /** On PostgreSQL estimated where there are more than a million deliveries. */
  readonly succeeded: number;
  readonly failed: number;
  /** Being sent now. */
  readonly claimed: number;
  /** Held by a worker that did not come back in time; due again. */
  readonly expired_claims: number;
  readonly endpoints: number;
  readonly disabled_endpoints: number;
  readonly events_without_audience: number;
  /** Of the newest 10,000 events, those that no endpoint can receive, whatever it subscribes to: there is none in their audience. */
  readonly events_without_endpoint: number;
  /** Results that came after the lease had ended, since the tables exist: each is a duplicate at its receiver. */
  readonly lost_claims: number;
  /** Seconds since the oldest pending delivery was published; null when nothing is pending. */
  readonly oldest_pending_age_seconds: number | null;
}

/** Pending, with an audience: without one nothing makes it due. */
const WAITING = 'next_attempt_at is not null';

// In the words of the two partial indexes of pending work, so that finished deliveries are not read.
const PENDING = ['ordering_key is null', 'ordering_key is not null']
  .map((key) => `select attempts, created_at, next_attempt_at, claimed_until from webhook_deliveries where status = 'pending' and ${key}`)
  .join(' union all ');

/** Deliveries of a table with more rows than this are not counted one by one on PostgreSQL (10 s for 50,000,000). */
const COUNTED_MAX = 1_000_000;

/** Those that succeeded are nearly all: of a large table, the rows that PostgreSQL estimates without the others. */
async function countSucceeded(db: Db, others: number): Promise<number> {
  const rows = db.dialect === 'postgres' ? await estimateCount(db, 'webhook_deliveries') : undefined;
  if (rows !== undefined && rows > COUNTED_MAX) return Math.max(0, rows - others);
  const [row] = await db.query<{ count: number }>(`select count(*) as count from webhook_deliveries where status = 'succeeded'`);
  return row?.count ?? 0;
}

export async function readStats(db: Db, now: Date): Promise<WebhookStats> {
  const count = (condition: string): string => `coalesce(sum(case when ${condition} then 1 else 0 end), 0)`;
  const [work] = await db.query<Record<string, number> & { oldest: Date | string | null }>(
    `select count(*) as "all", ${count(WAITING)} as pending, ${count(`${WAITING} and attempts > 0`)} as retrying,
       ${count('claimed_until > $1')} as claimed, ${count('claimed_until <= $1')} as expired_claims,
       min(case when ${WAITING} then created_at end) as oldest
     from (${PENDING}) d`,
    [now],
  );
  const [ended] = await db.query<{ failed: number }>(`select count(*) as failed from webhook_deliveries where status = 'failed'`);
  const [endpoints] = await db.query<Record<string, number>>(
    `select count(*) as endpoints, ${count('not is_active')} as disabled_endpoints from webhook_endpoints`,
  );
  const [legacy] = await db.query<{ count: number }>('select count(*) as count from webhook_events where audience is null');
  const [lost] = await db.query<{ value: number | bigint }>(`select value from webhook_counters where name = '${LOST_CLAIMS}'`);
  const of = (row: Record<string, unknown> | undefined, name: string): number => Number(row?.[name] ?? 0);
  const failed = of(ended, 'failed');
  const oldest = work?.oldest ?? null;
  return {
    pending: of(work, 'pending'),
    retrying: of(work, 'retrying'),
    succeeded: await countSucceeded(db, of(work, 'all') + failed),
    failed,
    claimed: of(work, 'claimed'),
    expired_claims: of(work, 'expired_claims'),
    endpoints: of(endpoints, 'endpoints'),
    disabled_endpoints: of(endpoints, 'disabled_endpoints'),
    events_without_audience: legacy?.count ?? 0,
    events_without_endpoint: await countUnreachable(db),
    lost_claims: Number(lost?.value ?? 0),
    // SQLite has no type for the result of min().
    oldest_pending_age_seconds: oldest === null ? null : Math.max(0, (now.getTime() - new Date(oldest).getTime()) / 1000),
  };
}

const LOST_CLAIMS = 'lost_claims';

export async function countLostClaims(db: Db, count: number): Promise<void> {
  await db.query(
    `insert into webhook_counters (name, value) values ($1, $2)
     on conflict (name) do update set value = webhook_counters.value + excluded.value`,
    [LOST_CLAIMS, count],
  );
}

/** `column` is one of the ids; as text for SQLite, as an array for PostgreSQL. */
function oneOf(db: Db, column: string, ids: readonly string[]): readonly [condition: string, parameter: unknown] {
  if (db.dialect === 'postgres') return [`${column} = any(cast($1 as uuid[]))`, ids];
  return [`${column} in (select value from json_each($1))`, JSON.stringify(ids)];
}

/** Smaller than every key. */
export const FIRST_ID = '00000000-0000-0000-0000-000000000000';

const UNFINISHED = `(d.status = 'pending' or d.claim_token is not null)`;

export interface Pruned {
  readonly removed: number;
  /** The last event that was looked at; null: there are no more. */
  readonly last: string | null;
}

/**
 * Looks at the next `limit` events from before a time, oldest first, and removes those that are finished, with deliveries and attempts. Work that is
 * left and events without an audience stay. Events are chosen by their key and their deliveries are looked up by event: a condition on both in one
 * statement reads all deliveries (2 s for 500 events at 3,000,000). On PostgreSQL the rows are locked, so a retry at the same time either comes first
 * and keeps its event, or finds the delivery gone.
 */
export async function pruneEvents(tx: Db, before: Date, limit: number, after = FIRST_ID, holds: readonly Subject[] = []): Promise<Pruned> {
  const values: unknown[] = [before, limit, endIdBefore(before), after];
  const held = exceptHeld(holds, webhookEvents, 'webhook_events', values);
  const chosen = await tx.query<{ id: string; is_old: number }>(
    `select id, case when timestamp < $1 and audience is not null${held} then 1 else 0 end as is_old from webhook_events
     where id > $4 and id < $3 order by id limit $2${skipLocked(tx)}`,
    values,
  );
  const ids = chosen.filter(({ is_old }) => is_old === 1).map(({ id }) => id);
  const [ofEvents, events] = oneOf(tx, 'd.event_id', ids);
  const parameters: unknown[] = [events];
  // An event of nobody may have been sent to an endpoint of somebody.
  const free = exceptHeld(holds, webhookDeliveries, 'd', parameters);
  const deliveries = await tx.query<{ event_id: string; unfinished: number }>(
    `select d.event_id, case when ${UNFINISHED}${free === '' ? '' : ` or not (true${free})`} then 1 else 0 end as unfinished from webhook_deliveries d where ${ofEvents}
     ${tx.dialect === 'postgres' ? 'for update of d' : ''}`,
    parameters,
  );
  const kept = new Set(deliveries.filter(({ unfinished }) => unfinished === 1).map(({ event_id }) => event_id));
  const [condition, parameter] = oneOf(
    tx,
    'id',
    ids.filter((id) => !kept.has(id)),
  );
  const { count } = await tx.execute(`delete from webhook_events where ${condition}`, [parameter]);
  return { removed: count, last: chosen.length < limit ? null : (chosen.at(-1)?.id ?? null) };
}

/**
 * Removes deliveries of events from before a time whose event or endpoint is gone. The only way to one is a transaction above READ COMMITTED that
 * deletes an endpoint (or an event) to which another has published (or recovered) since it began: its trigger does not see that delivery.
 */
export async function pruneOrphans(db: Db, before: Date, limit: number): Promise<void> {
  for (const [table, column] of [
    ['webhook_events', 'event_id'],
    ['webhook_endpoints', 'endpoint_id'],
  ]) {
    const orphans = `select d.id from webhook_deliveries d
      where d.id < $1 and not exists (select 1 from ${table} r where r.id = d.${column}) order by d.id limit $2`;
    for (;;) {
      const { count } = await db.execute(`delete from webhook_deliveries where id in (${orphans})`, [endIdBefore(before), limit]);
      if (count < limit) break;
    }
  }
}

/** Removes subscription periods that ended before a time: recovering from before then finds no events any more. */
export async function prunePeriods(db: Db, before: Date, limit: number, holds: readonly Subject[] = []): Promise<void> {
  const values: unknown[] = [before, limit];
  const kept = exceptHeld(holds, webhookSubscriptionPeriods, 'webhook_subscription_periods', values);
  const chosen = `select endpoint_id, pattern, tenant_key, owner_id, started_at from webhook_subscription_periods
    where ended_at is not null and ended_at < $1${kept} order by ended_at limit $2`;
  for (;;) {
    const { count } = await db.execute(
      `delete from webhook_subscription_periods where (endpoint_id, pattern, tenant_key, owner_id, started_at) in (${chosen})`,
      values,
    );
    if (count < limit) return;
  }
}

export interface ReplayFilter {
  readonly since: Date;
  readonly until: Date;
  readonly type?: string | undefined;
  readonly endpointId?: string | undefined;
  /** Leaves out what succeeded. */
  readonly failedOnly?: boolean | undefined;
}

/** Finished deliveries of active endpoints, by id after the cursor. The first cursor is `firstIdFrom(filter.since)`. */
export async function findReplayable(db: Db, filter: ReplayFilter, after: string, limit: number): Promise<string[]> {
  const parameters: unknown[] = [after, filter.since, filter.until, endIdBefore(filter.until)];
  const type = filter.type === undefined ? '' : ` and d.event_type = $${parameters.push(filter.type)}`;
  const endpoint = filter.endpointId === undefined ? '' : ` and d.endpoint_id = $${parameters.push(filter.endpointId)}`;
  const finished = filter.failedOnly === true ? `d.status = 'failed'` : `d.status in ('succeeded', 'failed')`;
  const rows = await db.query<{ id: string }>(
    `select d.id from webhook_deliveries d join webhook_endpoints p on p.id = d.endpoint_id
     where d.id > $1 and d.id < $4 and d.created_at >= $2 and d.created_at < $3 and ${finished} and p.is_active${type}${endpoint}
     order by d.id limit $${parameters.push(limit)}`,
    parameters,
  );
  return rows.map(({ id }) => id);
}

export async function requeueFinished(tx: Db, ids: readonly string[], now: Date): Promise<number> {
  const [condition, parameter] = oneOf(tx, 'id', ids);
  const { count } = await tx.execute(
    `update webhook_deliveries set status = 'pending', attempts = 0, next_attempt_at = $2, claim_token = null, claimed_until = null,
       failure_reason = null, delivered_at = null
     where ${condition} and status in ('succeeded', 'failed') and (claimed_until is null or claimed_until <= $2)`,
    [parameter, now],
  );
  return count;
}

/** Gives an event without an audience one, and makes what waited for it due. False: no such event, or it has one. */
export async function setAudience(tx: Db, eventId: string, audience: Audience, now: Date): Promise<boolean> {
  const { count } = await tx.execute(
    'update webhook_events set audience = $2, owner_id = $3, tenant_key = $4 where id = $1 and audience is null',
    [eventId, audience.kind, 'owner' in audience ? audience.owner : '', 'tenantKey' in audience ? audience.tenantKey : ''],
  );
  if (count === 0) return false;
  await tx.query(
    `update webhook_deliveries set next_attempt_at = $2 where event_id = $1 and status = 'pending' and next_attempt_at is null`,
    [eventId, now],
  );
  return true;
}

export type StoredSecrets = Pick<WebhookEndpoint, 'id' | 'secret' | 'previous_secret' | 'older_secrets' | 'headers'>;

export async function countSecrets(db: Db): Promise<number> {
  const [row] = await db.query<{ count: number }>('select count(*) as count from webhook_endpoints');
  return row?.count ?? 0;
}

export function readSecrets(db: Db, after: string, limit: number): Promise<StoredSecrets[]> {
  return db.query<StoredSecrets>(
    'select id, secret, previous_secret, older_secrets, headers from webhook_endpoints where id > $1 order by id limit $2',
    [after, limit],
  );
}

/** Only where the stored form is still the one that was read: a rotation in between wins. */
export async function replaceStored(
  db: Db,
  id: string,
  column: Exclude<keyof StoredSecrets, 'id'>,
  from: string,
  to: string,
): Promise<boolean> {
  const { count } = await db.execute(`update webhook_endpoints set ${column} = $3 where id = $1 and ${column} = $2`, [id, from, to]);
  return count === 1;
}
