// SQL about the deliveries of one endpoint, for the verbs and the admin site.
import type { Db } from '../../../db/engine/db.ts';
import { operatorsSql } from '../publishing/audience.ts';
import { firstIdFrom } from '../publishing/event-id.ts';
import { waitsInOrder } from './held-store.ts';
import { webhookErrors } from '../errors.ts';
import { EXAMPLE_KEY, PING_EVENT } from './ping-event.ts';
import type { WebhookDelivery, WebhookEndpoint, WebhookEvent } from './store.ts';

// The words of the index `webhook_deliveries_failed_of_endpoint`, which only a query with the same words can use, and which no other index has: with
// `status = 'failed'` PostgreSQL may read what failed at all endpoints instead.
const FAILED = "status <> 'pending' and status <> 'succeeded'";

/** Newest first. */
export function newestDeliveriesOf(db: Db, endpointId: string, limit: number): Promise<WebhookDelivery[]> {
  return db.query<WebhookDelivery>('select * from webhook_deliveries where endpoint_id = $1 order by id desc limit $2', [
    endpointId,
    limit,
  ]);
}

const insertFor = (values: string, lock: string): string =>
  `insert into webhook_deliveries (id, event_id, endpoint_id, event_type, status, attempts, next_attempt_at, created_at)
   select ${values} from webhook_endpoints p where p.id = $3 ${lock} returning *`;
const INSERT_FOR = {
  postgres: insertFor(
    `cast($1 as uuid), cast($2 as uuid), p.id, cast($4 as text), 'pending', 0, cast($5 as timestamptz), cast($5 as timestamptz)`,
    'for key share',
  ),
  sqlite: insertFor(`$1, $2, p.id, $4, 'pending', 0, $5, $5`, ''),
};

/** An event for this endpoint alone, whatever it subscribes to, and its delivery, due at once. */
export async function insertEventFor(
  tx: Db,
  endpoint: Pick<WebhookEndpoint, 'id' | 'owner_id' | 'tenant_key'>,
  event: Pick<WebhookEvent, 'id' | 'type' | 'data' | 'timestamp' | 'idempotency_key'>,
  deliveryId: string,
): Promise<WebhookDelivery> {
  const { id, type, data, timestamp, idempotency_key } = event;
  const { owner_id, tenant_key } = endpoint;
  await tx.query(
    'insert into webhook_events (id, type, data, timestamp, audience, owner_id, tenant_key, idempotency_key) values ($1, $2, $3, $4, $5, $6, $7, $8)',
    [id, type, data, timestamp, tenant_key === '' ? 'owner' : 'owner_in_tenant', owner_id, tenant_key, idempotency_key],
  );
  const [delivery] = await tx.query<WebhookDelivery>(INSERT_FOR[tx.dialect], [deliveryId, id, endpoint.id, type, timestamp]);
  if (delivery === undefined) throw webhookErrors.endpoint_not_found();
  return delivery;
}

export interface RecoverWindow {
  readonly since: Date;
  readonly now: Date;
  readonly limit: number;
}

/** Failed deliveries of events since then are due again with all their attempts, oldest first. */
export async function requeueFailedOf(tx: Db, endpointId: string, { since, now, limit }: RecoverWindow): Promise<number> {
  const free = `${FAILED} and (claimed_until is null or claimed_until <= $3)`;
  const { count } = await tx.execute(
    `update webhook_deliveries set status = 'pending', attempts = 0, next_attempt_at = $3, claim_token = null, claimed_until = null,
       failure_reason = null, delivered_at = null
     where ${free} and id in (
       select id from webhook_deliveries where endpoint_id = $1 and created_at >= $2 and ${free} order by id limit $4)`,
    [endpointId, since, now, limit],
  );
  return count;
}

// What `publish` would have written had the endpoint been active: for the audience of the event and the endpoint then and now, and only where the
// endpoint subscribed to it then and still does.
const subscribes = (table: string, row: string): string => `exists (select 1 from ${table} ${row} where ${row}.endpoint_id = p.id
      and ${row}.owner_id = p.owner_id and ${row}.tenant_key = p.tenant_key
      and (${row}.pattern = '*' or ${row}.pattern = e.type
        or (${row}.pattern like '%.*' and substr(e.type, 1, length(${row}.pattern) - 1) = substr(${row}.pattern, 1, length(${row}.pattern) - 1)))`;

/** The events that `publish` would have sent to the endpoint $1, published since $2; $3 is the first id of that time. */
const MISSED_EVENTS = `from webhook_endpoints p cross join webhook_events e
  where p.id = $1 and e.id >= $3 and e.timestamp >= $2 and e.timestamp >= p.created_at
    and e.type not in ('${PING_EVENT}', 'webhook.endpoint.disabled')
    and (e.idempotency_key is null or e.idempotency_key not like '${EXAMPLE_KEY} %')
    and (e.audience = 'broadcast' or (${operatorsSql('p')} and e.audience is not null)
      or (e.audience = 'owner' and p.tenant_key = '' and e.owner_id = p.owner_id)
      or (e.audience = 'owner_in_tenant' and e.tenant_key = p.tenant_key and e.owner_id = p.owner_id)
      or (e.audience = 'tenant' and e.tenant_key = p.tenant_key))
    and ${subscribes('webhook_subscriptions', 's')})
    and ${subscribes('webhook_subscription_periods', 't')} and t.started_at <= e.timestamp and (t.ended_at is null or t.ended_at > e.timestamp))
    and not exists (select 1 from webhook_deliveries d where d.event_id = e.id and d.endpoint_id = p.id)`;

// Endpoint and events stay until the transaction ends, as with a foreign key: a delivery never outlives either.
function missedStatement(dialect: Db['dialect']): string {
  const at = dialect === 'postgres' ? 'cast($4 as timestamptz)' : '$4';
  const id =
    dialect === 'postgres'
      ? 'cast(left(cast(e.id as text), 18) || right(cast(gen_random_uuid() as text), 18) as uuid)'
      : `substr(e.id, 1, 18) || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(lower(hex(randomblob(2))), 2) || '-' || lower(hex(randomblob(6)))`;
  return `insert into webhook_deliveries (id, event_id, endpoint_id, event_type, status, attempts, next_attempt_at, ordering_key, created_at)
  select ${id}, e.id, p.id, e.type, 'pending', 0, ${at}, e.ordering_key, e.timestamp
  ${MISSED_EVENTS}
  order by e.id limit $5${dialect === 'postgres' ? ' for key share of p, e' : ''}
  on conflict (event_id, endpoint_id) do nothing`;
}

const MISSED = { postgres: missedStatement('postgres'), sqlite: missedStatement('sqlite') };

/** Deliveries of events that were published while the endpoint was disabled, oldest first. */
export async function insertMissedOf(tx: Db, endpointId: string, { since, now, limit }: RecoverWindow): Promise<number> {
  const { count } = await tx.execute(MISSED[tx.dialect], [endpointId, since, firstIdFrom(since), now, limit]);
  return count;
}

/** What `recoverEndpoint` would queue, counted up to the limit. */
export async function countMissedOf(db: Db, endpointId: string, { since, limit }: Pick<RecoverWindow, 'since' | 'limit'>): Promise<number> {
  const [failed] = await db.query<{ count: number | bigint }>(
    `select count(*) as count from (
       select 1 as one from webhook_deliveries where endpoint_id = $1 and created_at >= $2 and ${FAILED} limit $3) counted`,
    [endpointId, since, limit],
  );
  const [missed] = await db.query<{ count: number | bigint }>(
    `select count(*) as count from (select 1 as one ${MISSED_EVENTS} limit $4) counted`,
    [endpointId, since, firstIdFrom(since), limit],
  );
  return Number(failed?.count ?? 0) + Number(missed?.count ?? 0);
}

/** When the oldest delivery failed that was published since then; null: none. */
export async function oldestFailedOf(db: Db, endpointId: string, since: Date): Promise<Date | null> {
  const [row] = await db.query<{ created_at: Date }>(
    `select created_at from webhook_deliveries where endpoint_id = $1 and id >= $2 and ${FAILED} order by id limit 1`,
    [endpointId, firstIdFrom(since)],
  );
  return row?.created_at ?? null;
}

// In the words of the partial indexes of pending work: see models.ts.
const UNORDERED = "status <> 'succeeded' and status <> 'failed' and ordering_key is null";
const ORDERED = "status = 'pending' and ordering_key is not null";

export interface WaitingOfEndpoint {
  readonly waiting: number;
  /** The next attempt; null when nothing waits, or only for an earlier delivery. */
  readonly next: Date | null;
}

/** Deliveries that are not finished, counted up to the limit. */
export async function waitingOf(db: Db, endpointId: string, limit: number): Promise<WaitingOfEndpoint> {
  const part = (condition: string, time = 'd.next_attempt_at') =>
    `select * from (select ${time} as next_attempt_at from webhook_deliveries d where d.endpoint_id = $1 and ${condition} limit $2) w`;
  // One that is held was due when it was published, and is not sent before the one it waits for.
  const unheld = `case when ${waitsInOrder('d')} then null else d.next_attempt_at end`;
  const [row] = await db.query<{ count: number | bigint; next: Date | string | null }>(
    `select count(*) as count, min(next_attempt_at) as next from (${part(UNORDERED)} union all ${part(ORDERED, unheld)}) waiting`,
    [endpointId, limit],
  );
  return { waiting: Number(row?.count ?? 0), next: row?.next === null || row?.next === undefined ? null : new Date(row.next) };
}

/** What waits for a later attempt is due now; the number of its attempts stays as it is. */
export async function hastenWaitingOf(tx: Db, endpointId: string, now: Date, limit: number): Promise<number> {
  const free = 'next_attempt_at > $2 and (claimed_until is null or claimed_until <= $2)';
  let hastened = 0;
  for (const condition of [UNORDERED, ORDERED]) {
    const { count } = await tx.execute(
      `update webhook_deliveries set next_attempt_at = $2 where ${free} and status = 'pending' and id in (
         select id from webhook_deliveries where endpoint_id = $1 and ${condition} and ${free} order by id limit $3)`,
      [endpointId, now, limit - hastened],
    );
    hastened += count;
  }
  return hastened;
}
