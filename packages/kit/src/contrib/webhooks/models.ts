import { model } from '../../db/declare/model.ts';
import { t } from '../../db/declare/column.ts';
import { timestamps } from '../../db/declare/standard-columns.ts';
import { REQUEST_ID_LENGTH_MAX } from '../../http/exchange/acting-request.ts';
import { EVENT_TYPE_LENGTH_MAX } from './publishing/subscription.ts';
import { URL_LENGTH_MAX } from './network/url-policy.ts';

/** Keys of owners and tenants are the application's own: text, and not foreign keys, because those tables may be anyone's. */
export const AUDIENCE_KEY_LENGTH_MAX = 255;
export const DESCRIPTION_LENGTH_MAX = 200;
/** Of `orderingKey` and `idempotencyKey`. */
export const EVENT_KEY_LENGTH_MAX = 255;
export const ERROR_LENGTH_MAX = 500;
export const WORKER_NAME_LENGTH_MAX = 100;
export const RATE_LENGTH_MAX = 40;

export const AUDIENCES = ['owner', 'owner_in_tenant', 'tenant', 'broadcast'] as const;
export const SIGNATURES = ['v1', 'v1a'] as const;
export const DELIVERY_STATUSES = ['pending', 'succeeded', 'failed'] as const;
export const DISABLED_REASONS = ['manual', 'gone', 'continuous_failure'] as const;
export const FAILURE_REASONS = [
  'http_status',
  'timeout',
  'connection',
  'tls',
  'blocked_address',
  'audience_changed',
  'endpoint_disabled',
  'secret_unavailable',
  'payload',
] as const;

/** The model of published events. */
export const webhookEvents = model(
  'webhook_events',
  {
    id: t.uuidv7().pk(),
    type: t.text(EVENT_TYPE_LENGTH_MAX),
    /** JSON text of an object, exactly as it is sent: a JSON column would reorder its members between two attempts. */
    data: t.text(),
    timestamp: t.timestamp(),
    /**
     * Null on rows from before audiences existed: not sent until an audience is assigned. On PostgreSQL the values of this column, and of
     * `status` and `failure_reason` of deliveries, are checked by domains: see migrations/0001_initial.ts.
     */
    audience: t.enum(AUDIENCES).nullable(),
    /** Empty unless the audience names an owner. */
    owner_id: t.text(AUDIENCE_KEY_LENGTH_MAX).dbDefault('').person(),
    /** Empty unless the audience names a tenant. */
    tenant_key: t.text(AUDIENCE_KEY_LENGTH_MAX).dbDefault('').tenant(),
    ordering_key: t.text(EVENT_KEY_LENGTH_MAX).nullable(),
    idempotency_key: t.text(EVENT_KEY_LENGTH_MAX).nullable(),
    /** W3C Trace Context of the request that published it; null outside a trace. */
    traceparent: t.text(55).nullable(),
    /** The request that published it, or that started the job which did; null outside requests. */
    request_id: t.text(REQUEST_ID_LENGTH_MAX).nullable(),
  },
  {
    guarded: true,
    indexes: [
      // One tenant's keys never meet another's.
      { columns: ['idempotency_key', 'type', 'owner_id', 'tenant_key'], unique: true, where: 'idempotency_key is not null' },
      { columns: ['id'], where: 'audience is null', name: 'webhook_events_without_audience' },
      { columns: ['ordering_key', 'id'], where: 'ordering_key is not null', name: 'webhook_events_of_record' },
      { columns: ['request_id', 'id'], where: 'request_id is not null', name: 'webhook_events_of_request' },
      // What customers list: an event is in those of its tenant or in those of its owner, and a broadcast in none.
      { columns: ['tenant_key', 'id'], where: "tenant_key <> ''", name: 'webhook_events_of_tenant' },
      { columns: ['owner_id', 'id'], where: "tenant_key = '' and owner_id <> ''", name: 'webhook_events_of_owner' },
      // A type that is rare among many events, or absent.
      { columns: ['tenant_key', 'type', 'id'], where: "tenant_key <> ''", name: 'webhook_events_of_tenant_by_type' },
      { columns: ['owner_id', 'type', 'id'], where: "tenant_key = '' and owner_id <> ''", name: 'webhook_events_of_owner_by_type' },
    ],
  },
);

/** The model of webhook endpoints. */
export const webhookEndpoints = model(
  'webhook_endpoints',
  {
    id: t.uuidv7().pk(),
    owner_id: t.text(AUDIENCE_KEY_LENGTH_MAX).person(),
    tenant_key: t.text(AUDIENCE_KEY_LENGTH_MAX).dbDefault('').tenant().describe('Empty for personal endpoints.'),
    url: t.text(URL_LENGTH_MAX),
    /** What the owner asked for; the rows of `webhook_subscriptions` are what publishing reads. */
    events: t.array(t.text()),
    description: t.text(DESCRIPTION_LENGTH_MAX).dbDefault(''),
    is_active: t.bool().dbDefault(true),
    disabled_reason: t.enum(DISABLED_REASONS).nullable(),
    disabled_at: t.timestamp().nullable(),
    failing_since: t.timestamp().nullable().describe('The first failure since the last success.'),
    consecutive_failures: t.int().dbDefault(0),
    /** As `SecretBox.seal` returns it: `fernet:<token>`, or as given without keys. */
    secret: t.text().sensitive(),
    /** The secret before the last rotation, which signs too until `previous_secret_expires_at`. */
    previous_secret: t.text().nullable().sensitive(),
    previous_secret_expires_at: t.timestamp().nullable().describe('When the previous secret stops signing.'),
    schedule: t.array(t.float()).nullable().describe('Delays between attempts, in seconds; null for the schedule of the application.'),
    /** The kind of signature. Null on rows from before it was stored, whose secret is encrypted. */
    signature: t.enum(SIGNATURES).nullable(),
    /** What receivers verify a `v1a` signature with. */
    public_key: t.text(100).nullable(),
    /** Secrets from before `previous_secret` that were promised to sign until a time that has not come: see `older-secrets.ts`. */
    older_secrets: t.text().nullable().sensitive(),
    /** Custom headers, a JSON object as `SecretBox.seal` returns it. */
    headers: t.text().nullable().sensitive(),
    header_names: t.array(t.text()).nullable(),
    /** Such as `10/s`. */
    rate_limit: t.text(RATE_LENGTH_MAX).nullable(),
    /** When the rate limit has room again; in the past or null: now. */
    rate_next_at: t.timestamp().nullable(),
    /** Sends the `traceparent` of the request that published the event, whatever the module says. */
    send_traceparent: t.bool().dbDefault(false),
    ...timestamps(),
  },
  {
    guarded: true,
    indexes: [
      { columns: ['owner_id', 'tenant_key', 'id'] },
      { columns: ['tenant_key', 'id'] },
      // What operators look for among many healthy ones.
      { columns: ['id'], where: 'failing_since is not null', name: 'webhook_endpoints_failing' },
      { columns: ['id'], where: 'not is_active', name: 'webhook_endpoints_disabled' },
    ],
  },
);

/**
 * One row per pattern of an endpoint. Owner and tenant are repeated here so that publishing reads exactly the
 * subscribers of an audience from one index, however many endpoints subscribe to the same pattern.
 */
export const webhookSubscriptions = model(
  'webhook_subscriptions',
  {
    pattern: t.text(EVENT_TYPE_LENGTH_MAX),
    tenant_key: t.text(AUDIENCE_KEY_LENGTH_MAX).tenant(),
    owner_id: t.text(AUDIENCE_KEY_LENGTH_MAX).person(),
    endpoint_id: t.ref(() => webhookEndpoints, { onDelete: 'cascade' }),
  },
  { guarded: true, primaryKey: ['pattern', 'tenant_key', 'owner_id', 'endpoint_id'], indexes: [{ columns: ['endpoint_id'] }] },
);

/** From when to when an endpoint subscribed to a pattern, and for which audience. The open periods say what `webhook_subscriptions` says. */
export const webhookSubscriptionPeriods = model(
  'webhook_subscription_periods',
  {
    endpoint_id: t.ref(() => webhookEndpoints, { onDelete: 'cascade' }),
    pattern: t.text(EVENT_TYPE_LENGTH_MAX),
    tenant_key: t.text(AUDIENCE_KEY_LENGTH_MAX).tenant(),
    owner_id: t.text(AUDIENCE_KEY_LENGTH_MAX).person(),
    started_at: t.timestamp(),
    ended_at: t.timestamp().nullable(),
  },
  {
    guarded: true,
    primaryKey: ['endpoint_id', 'pattern', 'tenant_key', 'owner_id', 'started_at'],
    indexes: [{ columns: ['ended_at'], where: 'ended_at is not null', name: 'webhook_subscription_periods_ended' }],
  },
);

/** The model of deliveries: one row per event and endpoint. */
export const webhookDeliveries = model(
  'webhook_deliveries',
  {
    id: t.uuidv7().pk(),
    /** No foreign keys: the statements that write a delivery lock what it refers to, and triggers remove deliveries with it. */
    event_id: t.uuid().refersTo(() => webhookEvents),
    endpoint_id: t
      .uuid()
      .refersTo(() => webhookEndpoints)
      .person()
      .tenant(),
    event_type: t.text(EVENT_TYPE_LENGTH_MAX),
    status: t.enum(DELIVERY_STATUSES).dbDefault('pending'),
    /** A manual retry starts at 0 again. */
    attempts: t.int().dbDefault(0).describe('Attempts made in the current retry schedule.'),
    /** When a pending delivery is due. Null: not before something happens (its event gets an audience). */
    next_attempt_at: t.timestamp().nullable(),
    ordering_key: t.text(EVENT_KEY_LENGTH_MAX).nullable(),
    /** Of the worker that is sending it. Finalising needs the same token, so a worker that comes late changes nothing. */
    claim_token: t.text(36).nullable(),
    /** The end of the claim's lease; afterwards the delivery is due again. */
    claimed_until: t.timestamp().nullable(),
    last_status_code: t.int().nullable(),
    last_error: t.text(ERROR_LENGTH_MAX).nullable(),
    failure_reason: t.enum(FAILURE_REASONS).nullable(),
    delivered_at: t.timestamp().nullable(),
    created_at: t.timestamp(),
  },
  {
    guarded: true,
    indexes: [
      { columns: ['event_id', 'endpoint_id'], unique: true },
      { columns: ['endpoint_id', 'id'] },
      { columns: ['id'], where: "status = 'failed'", name: 'webhook_deliveries_failed' },
      {
        columns: ['endpoint_id', 'id'],
        // The same rows as those of the index above, in other words: see management-store.ts.
        where: "status <> 'pending' and status <> 'succeeded'",
        name: 'webhook_deliveries_failed_of_endpoint',
      },
      // Only work that is left is in these three, so a million finished deliveries do not slow a claim down.
      { columns: ['next_attempt_at'], where: "status = 'pending' and ordering_key is null", name: 'webhook_deliveries_due' },
      {
        columns: ['endpoint_id', 'next_attempt_at'],
        // The same rows as those above, in other words: see claim-store.ts.
        where: "status <> 'succeeded' and status <> 'failed' and ordering_key is null",
        name: 'webhook_deliveries_due_of_endpoint',
      },
      {
        columns: ['endpoint_id', 'ordering_key', 'id'],
        where: "status = 'pending' and ordering_key is not null",
        name: 'webhook_deliveries_ordered',
      },
    ],
  },
);

/** One row per request that was made. */
export const webhookAttempts = model(
  'webhook_attempts',
  {
    /** No foreign key: the statement that writes an attempt holds its delivery, and a trigger removes attempts with it. */
    delivery_id: t
      .uuid()
      .refersTo(() => webhookDeliveries)
      .person()
      .tenant(),
    id: t.uuidv7(),
    started_at: t.timestamp(),
    duration_ms: t.int(),
    status_code: t.int().nullable(),
    failure_reason: t.enum(FAILURE_REASONS).nullable(),
    error: t.text(ERROR_LENGTH_MAX).nullable(),
    /** The first 4 KiB of the response body. */
    response_excerpt: t.text().nullable(),
    worker: t.text(WORKER_NAME_LENGTH_MAX),
  },
  { guarded: true, primaryKey: ['delivery_id', 'id'] },
);

/** What workers count and no other row shows. */
export const webhookCounters = model('webhook_counters', { name: t.text(50).pk(), value: t.bigint() }, { guarded: true });

export const webhookModels = [
  webhookEvents,
  webhookEndpoints,
  webhookSubscriptions,
  webhookSubscriptionPeriods,
  webhookDeliveries,
  webhookAttempts,
  webhookCounters,
] as const;
