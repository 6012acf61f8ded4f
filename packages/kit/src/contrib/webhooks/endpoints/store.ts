import type { Db } from '../../../db/engine/db.ts';
import type { Row } from '../../../db/declare/rows.ts';
import type { webhookAttempts, webhookDeliveries, webhookEndpoints, webhookEvents } from '../models.ts';

export type WebhookEvent = Row<typeof webhookEvents>;
export type WebhookEndpoint = Row<typeof webhookEndpoints>;
export type WebhookDelivery = Row<typeof webhookDeliveries>;
export type WebhookAttempt = Row<typeof webhookAttempts>;

export async function findEndpoint(db: Db, id: string): Promise<WebhookEndpoint | null> {
  const [row] = await db.query<WebhookEndpoint>('select * from webhook_endpoints where id = $1', [id]);
  return row ?? null;
}

/** The row as it is until the end of the transaction. */
export async function lockEndpoint(tx: Db, id: string): Promise<WebhookEndpoint | null> {
  const lock = tx.dialect === 'postgres' ? ' for no key update' : '';
  const [row] = await tx.query<WebhookEndpoint>(`select * from webhook_endpoints where id = $1${lock}`, [id]);
  return row ?? null;
}

export type NewEndpoint = Pick<
  WebhookEndpoint,
  | 'id'
  | 'owner_id'
  | 'tenant_key'
  | 'url'
  | 'events'
  | 'description'
  | 'secret'
  | 'signature'
  | 'public_key'
  | 'schedule'
  | 'headers'
  | 'header_names'
  | 'rate_limit'
  | 'send_traceparent'
  | 'created_at'
>;

/** The endpoint and its subscriptions. */
export async function insertEndpoint(tx: Db, endpoint: NewEndpoint): Promise<WebhookEndpoint> {
  const { id, owner_id, tenant_key, url, events, description, secret, signature, public_key, schedule, created_at } = endpoint;
  const { headers, header_names, rate_limit, send_traceparent } = endpoint;
  const [row] = await tx.query<WebhookEndpoint>(
    `insert into webhook_endpoints (id, owner_id, tenant_key, url, events, description, secret, signature, public_key, schedule,
       headers, header_names, rate_limit, send_traceparent, created_at, updated_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $15) returning *`,
    [
      id,
      owner_id,
      tenant_key,
      url,
      events,
      description,
      secret,
      signature,
      public_key,
      schedule,
      headers,
      header_names,
      rate_limit,
      send_traceparent,
      created_at,
    ],
  );
  if (row === undefined) throw new Error('the insert returned no row');
  await replaceSubscriptions(tx, row, created_at);
  return row;
}

/** Makes the subscription rows say what the endpoint's `events`, owner and tenant say, and keeps from when on they do. */
export async function replaceSubscriptions(
  tx: Db,
  endpoint: Pick<WebhookEndpoint, 'id' | 'events' | 'owner_id' | 'tenant_key'>,
  now: Date,
): Promise<void> {
  const patterns = tx.dialect === 'postgres' ? 'json_array_elements_text(cast($4 as json)) as value' : 'json_each($4)';
  await tx.query('delete from webhook_subscriptions where endpoint_id = $1', [endpoint.id]);
  await tx.query(
    `insert into webhook_subscriptions (endpoint_id, owner_id, tenant_key, pattern) select $1, $2, $3, value from ${patterns}`,
    [endpoint.id, endpoint.owner_id, endpoint.tenant_key, JSON.stringify([...new Set(endpoint.events)])],
  );
  await tx.query(
    `update webhook_subscription_periods set ended_at = $2 where endpoint_id = $1 and ended_at is null and not exists (
       select 1 from webhook_subscriptions s where s.endpoint_id = webhook_subscription_periods.endpoint_id
         and s.owner_id = webhook_subscription_periods.owner_id and s.tenant_key = webhook_subscription_periods.tenant_key
         and s.pattern = webhook_subscription_periods.pattern)`,
    [endpoint.id, now],
  );
  // A period that began and ended in the same millisecond goes on.
  await tx.query(
    `insert into webhook_subscription_periods (endpoint_id, owner_id, tenant_key, pattern, started_at)
     select s.endpoint_id, s.owner_id, s.tenant_key, s.pattern, ${tx.dialect === 'postgres' ? 'cast($2 as timestamptz)' : '$2'}
     from webhook_subscriptions s where s.endpoint_id = $1 and not exists (
       select 1 from webhook_subscription_periods o where o.endpoint_id = s.endpoint_id and o.owner_id = s.owner_id
         and o.tenant_key = s.tenant_key and o.pattern = s.pattern and o.ended_at is null)
     on conflict (endpoint_id, pattern, tenant_key, owner_id, started_at) do update set ended_at = null`,
    [endpoint.id, now],
  );
}

export type EndpointChanges = Partial<
  Pick<
    WebhookEndpoint,
    | 'owner_id'
    | 'tenant_key'
    | 'url'
    | 'events'
    | 'description'
    | 'schedule'
    | 'is_active'
    | 'disabled_reason'
    | 'disabled_at'
    | 'failing_since'
    | 'consecutive_failures'
    | 'secret'
    | 'previous_secret'
    | 'previous_secret_expires_at'
    | 'older_secrets'
    | 'signature'
    | 'public_key'
    | 'headers'
    | 'header_names'
    | 'rate_limit'
    | 'rate_next_at'
    | 'send_traceparent'
  >
>;

/** Writes the named columns and no others: a rename that races a rotation or a disabling undoes neither. */
export async function changeEndpoint(tx: Db, id: string, changes: EndpointChanges, now: Date): Promise<WebhookEndpoint | null> {
  const sets = Object.keys(changes).map((name, index) => `${name} = $${index + 3}`);
  const [row] = await tx.query<WebhookEndpoint>(
    `update webhook_endpoints set ${['updated_at = $2', ...sets].join(', ')} where id = $1 returning *`,
    [id, now, ...Object.values(changes)],
  );
  if (row === undefined) return null;
  if (changes.events !== undefined || changes.owner_id !== undefined || changes.tenant_key !== undefined)
    await replaceSubscriptions(tx, row, now);
  return row;
}

export async function countEndpoints(db: Db, ownerId: string, tenantKey: string): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    'select count(*) as count from webhook_endpoints where owner_id = $1 and tenant_key = $2',
    [ownerId, tenantKey],
  );
  return row?.count ?? 0;
}

/** Until the end of the transaction no other one counts or creates endpoints of this owner. SQLite has one writer anyway. */
export async function lockEndpointsOf(tx: Db, ownerId: string, tenantKey: string): Promise<void> {
  if (tx.dialect === 'sqlite') return;
  await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`webhook_endpoints ${JSON.stringify([ownerId, tenantKey])}`]);
}

/** With its subscriptions, deliveries and their attempts. */
export async function deleteEndpoint(tx: Db, id: string): Promise<boolean> {
  return (await tx.query('delete from webhook_endpoints where id = $1 returning id', [id])).length === 1;
}

export async function findDelivery(db: Db, id: string): Promise<WebhookDelivery | null> {
  const [row] = await db.query<WebhookDelivery>('select * from webhook_deliveries where id = $1', [id]);
  return row ?? null;
}

export async function findEvent(db: Db, id: string): Promise<WebhookEvent | null> {
  const [row] = await db.query<WebhookEvent>('select * from webhook_events where id = $1', [id]);
  return row ?? null;
}

/** Oldest first. */
export async function attemptsOf(db: Db, deliveryId: string): Promise<WebhookAttempt[]> {
  return db.query<WebhookAttempt>('select * from webhook_attempts where delivery_id = $1 order by id', [deliveryId]);
}

/**
 * What waits for a disabled endpoint fails. Deliveries that a worker holds are left to it: it may be about to succeed,
 * and finalising a failure looks at the endpoint again.
 */
export async function failPendingOf(tx: Db, endpointId: string, now: Date): Promise<number> {
  const { count } = await tx.execute(
    `update webhook_deliveries set status = 'failed', failure_reason = 'endpoint_disabled', last_error = 'The endpoint is disabled.',
       next_attempt_at = null, claim_token = null, claimed_until = null
     where endpoint_id = $1 and status = 'pending' and (claimed_until is null or claimed_until <= $2)
       and exists (select 1 from webhook_endpoints p where p.id = $1 and not p.is_active)`,
    [endpointId, now],
  );
  return count;
}

/** Reads the deliveries of the endpoint: asked only when it is about to be disabled. */
export async function hasSucceededSince(db: Db, endpointId: string, since: Date): Promise<boolean> {
  const rows = await db.query(`select id from webhook_deliveries where endpoint_id = $1 and delivered_at > $2 limit 1`, [
    endpointId,
    since,
  ]);
  return rows.length === 1;
}

/**
 * Back to pending with all its attempts, unless a worker holds the row; check and write are one statement.
 * `from` lists the states that may be requeued.
 */
export async function requeueDelivery(db: Db, id: string, now: Date, from: readonly WebhookDelivery['status'][]): Promise<boolean> {
  const states = from.map((_, index) => `$${index + 3}`).join(', ');
  const rows = await db.query(
    `update webhook_deliveries set status = 'pending', attempts = 0, next_attempt_at = $2, claim_token = null, claimed_until = null,
       failure_reason = null, delivered_at = null
     where id = $1 and status in (${states}) and (claimed_until is null or claimed_until <= $2) returning id`,
    [id, now, ...from],
  );
  return rows.length === 1;
}
