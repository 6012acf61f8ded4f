import { createTable, sql } from '../../../db/migrations/operation.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { t } from '../../../db/declare/column.ts';
import { timestamps } from '../../../db/declare/standard-columns.ts';

const AUDIENCES = ['owner', 'owner_in_tenant', 'tenant', 'broadcast'] as const;
const STATUSES = ['pending', 'succeeded', 'failed'] as const;
const FAILURE_REASONS = [
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

/*
 * Deliveries and attempts have no foreign keys. The statement that inserts an event's deliveries has just read the endpoints: looking both rows up
 * again, delivery by delivery, was more than half of the cost of an event to 100 endpoints, and a tenth of the work of an attempt. What the keys
 * did beyond that is done otherwise: statements that insert a delivery lock its endpoint (and its event where that is an older one) `for key share`,
 * as a foreign key does, and triggers remove deliveries and attempts with what they belong to, however it is deleted.
 */
const DELETED_WITH_SQLITE = [
  `create trigger webhook_attempts_of_deleted after delete on webhook_deliveries begin
    delete from webhook_attempts where delivery_id = old.id;
  end`,
  `create trigger webhook_deliveries_of_deleted_event after delete on webhook_events begin
    delete from webhook_deliveries where event_id = old.id;
  end`,
  `create trigger webhook_deliveries_of_deleted_endpoint after delete on webhook_endpoints begin
    delete from webhook_deliveries where endpoint_id = old.id;
  end`,
];

/** The ids as an array: a plan that is made once then reads the index, however few or many rows were deleted when it was made. */
const ofDeleted = (table: string, column: string): readonly string[] => [
  `create function webhook_deliveries_of_deleted_${table}() returns trigger language plpgsql as $$ begin
    delete from webhook_deliveries where ${column} = any(array(select id from deleted));
    return null;
  end $$`,
  `create trigger webhook_deliveries_of_deleted after delete on webhook_${table}
   referencing old table as deleted for each statement execute function webhook_deliveries_of_deleted_${table}()`,
  `create trigger webhook_deliveries_of_truncated after truncate on webhook_${table}
   for each statement execute function webhook_deliveries_of_truncated()`,
];

const DELETED_WITH_POSTGRES = [
  `create function webhook_attempts_of_deleted() returns trigger language plpgsql as $$ begin
    delete from webhook_attempts a using deleted d where a.delivery_id = d.id;
    return null;
  end $$`,
  `create trigger webhook_attempts_of_deleted after delete on webhook_deliveries
   referencing old table as deleted for each statement execute function webhook_attempts_of_deleted()`,
  `create function webhook_deliveries_of_truncated() returns trigger language plpgsql as $$ begin
    delete from webhook_deliveries;
    return null;
  end $$`,
  ...ofDeleted('events', 'event_id'),
  ...ofDeleted('endpoints', 'endpoint_id'),
];

/**
 * PostgreSQL parses and plans the check of a column again for every statement that writes to its table, and that of a domain once per connection. The
 * three checks were a tenth of the cost of an event to ten endpoints. To change one, alter the domain.
 */
const inDomain = (table: string, column: string, domain: string, values: readonly string[]): readonly string[] => [
  `create domain ${domain} as text collate "C"`,
  `alter table ${table} drop constraint ${table}_${column}_check`,
  `alter table ${table} alter column ${column} type ${domain}`,
  `alter domain ${domain} add constraint ${table}_${column}_check check (value in (${values.map((value) => `'${value}'`).join(', ')}))`,
];

// A delivery is written once more when it is claimed and once when it is finished, longer than it was: with this much room on its page the first
// touches no index. The second is an entry in three of them, next to the one that was there: with room for it no page is split.
// Claimed and finished rows come and go quickly, so the default of "a fifth of the table" would vacuum a growing table too rarely.
const ROOM_FOR_UPDATES = [
  'alter table webhook_deliveries set (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)',
  ...['webhook_deliveries_pkey', 'webhook_deliveries_event_id_endpoint_id_unique', 'webhook_deliveries_endpoint_id_id_index'].map(
    (index) => `alter index ${index} set (fillfactor = 45)`,
  ),
];

export const initial = migration('0001_initial', [
  createTable(
    'webhook_events',
    {
      id: t.uuidv7().pk(),
      type: t.text(100),
      data: t.text(),
      timestamp: t.timestamp(),
      audience: t.enum(AUDIENCES).nullable(),
      owner_id: t.text(255).dbDefault(''),
      tenant_key: t.text(255).dbDefault(''),
      ordering_key: t.text(255).nullable(),
      idempotency_key: t.text(255).nullable(),
      traceparent: t.text(55).nullable(),
      request_id: t.text(200).nullable(),
    },
    {
      indexes: [
        { columns: ['idempotency_key', 'type', 'owner_id', 'tenant_key'], unique: true, where: 'idempotency_key is not null' },
        { columns: ['id'], where: 'audience is null', name: 'webhook_events_without_audience' },
        // Events of a record have an ordering key that names it (`order:<id>`): its page in the admin site lists them.
        { columns: ['ordering_key', 'id'], where: 'ordering_key is not null', name: 'webhook_events_of_record' },
        // The history of a record shows what else its requests did. Ids of one process are in order: new entries are neighbours in the index.
        { columns: ['request_id', 'id'], where: 'request_id is not null', name: 'webhook_events_of_request' },
        // What customers list: an event is in those of its tenant or in those of its owner, and a broadcast in none.
        { columns: ['tenant_key', 'id'], where: "tenant_key <> ''", name: 'webhook_events_of_tenant' },
        { columns: ['owner_id', 'id'], where: "tenant_key = '' and owner_id <> ''", name: 'webhook_events_of_owner' },
        // A type that is rare among many events, or absent.
        { columns: ['tenant_key', 'type', 'id'], where: "tenant_key <> ''", name: 'webhook_events_of_tenant_by_type' },
        { columns: ['owner_id', 'type', 'id'], where: "tenant_key = '' and owner_id <> ''", name: 'webhook_events_of_owner_by_type' },
      ],
    },
  ),
  createTable(
    'webhook_endpoints',
    {
      id: t.uuidv7().pk(),
      owner_id: t.text(255),
      tenant_key: t.text(255).dbDefault(''),
      url: t.text(2048),
      events: t.array(t.text()),
      description: t.text(200).dbDefault(''),
      is_active: t.bool().dbDefault(true),
      disabled_reason: t.enum(['manual', 'gone', 'continuous_failure']).nullable(),
      disabled_at: t.timestamp().nullable(),
      failing_since: t.timestamp().nullable(),
      consecutive_failures: t.int().dbDefault(0),
      secret: t.text(),
      previous_secret: t.text().nullable(),
      previous_secret_expires_at: t.timestamp().nullable(),
      schedule: t.array(t.float()).nullable(),
      // Null for an encrypted secret: nothing is known of it until the next rotation.
      signature: t.enum(['v1', 'v1a']).nullable(),
      public_key: t.text(100).nullable(),
      older_secrets: t.text().nullable().sensitive(),
      headers: t.text().nullable().sensitive(),
      header_names: t.array(t.text()).nullable(),
      rate_limit: t.text(40).nullable(),
      rate_next_at: t.timestamp().nullable(),
      send_traceparent: t.bool().dbDefault(false),
      ...timestamps(),
    },
    {
      indexes: [
        { columns: ['owner_id', 'tenant_key', 'id'] },
        { columns: ['tenant_key', 'id'] },
        // The few rows that operators look for: not written when all goes well.
        { columns: ['id'], where: 'failing_since is not null', name: 'webhook_endpoints_failing' },
        { columns: ['id'], where: 'not is_active', name: 'webhook_endpoints_disabled' },
      ],
    },
  ),
  createTable(
    'webhook_subscriptions',
    {
      pattern: t.text(100),
      tenant_key: t.text(255),
      owner_id: t.text(255),
      endpoint_id: t.ref('webhook_endpoints', { onDelete: 'cascade' }),
    },
    { primaryKey: ['pattern', 'tenant_key', 'owner_id', 'endpoint_id'], indexes: [{ columns: ['endpoint_id'] }] },
  ),
  // From when to when an endpoint subscribed to what: `recover` adds only what it would have been sent then.
  createTable(
    'webhook_subscription_periods',
    {
      endpoint_id: t.ref('webhook_endpoints', { onDelete: 'cascade' }),
      pattern: t.text(100),
      tenant_key: t.text(255),
      owner_id: t.text(255),
      started_at: t.timestamp(),
      ended_at: t.timestamp().nullable(),
    },
    {
      primaryKey: ['endpoint_id', 'pattern', 'tenant_key', 'owner_id', 'started_at'],
      indexes: [{ columns: ['ended_at'], where: 'ended_at is not null', name: 'webhook_subscription_periods_ended' }],
    },
  ),
  createTable(
    'webhook_deliveries',
    {
      id: t.uuidv7().pk(),
      event_id: t.uuid(),
      endpoint_id: t.uuid(),
      event_type: t.text(100),
      status: t.enum(STATUSES).dbDefault('pending'),
      attempts: t.int().dbDefault(0),
      next_attempt_at: t.timestamp().nullable(),
      ordering_key: t.text(255).nullable(),
      claim_token: t.text(36).nullable(),
      claimed_until: t.timestamp().nullable(),
      last_status_code: t.int().nullable(),
      last_error: t.text(500).nullable(),
      failure_reason: t.enum(FAILURE_REASONS).nullable(),
      delivered_at: t.timestamp().nullable(),
      created_at: t.timestamp(),
    },
    {
      indexes: [
        { columns: ['event_id', 'endpoint_id'], unique: true },
        { columns: ['endpoint_id', 'id'] },
        { columns: ['next_attempt_at'], where: "status = 'pending' and ordering_key is null", name: 'webhook_deliveries_due' },
        {
          columns: ['endpoint_id', 'next_attempt_at'],
          // In words that `webhook_deliveries_due` does not share: a query that goes from endpoint to endpoint says them too, and PostgreSQL cannot
          // answer it from the queue of all endpoints, which the backlog of one may fill.
          where: "status <> 'succeeded' and status <> 'failed' and ordering_key is null",
          name: 'webhook_deliveries_due_of_endpoint',
        },
        {
          columns: ['endpoint_id', 'ordering_key', 'id'],
          where: "status = 'pending' and ordering_key is not null",
          name: 'webhook_deliveries_ordered',
        },
        { columns: ['id'], where: "status = 'failed'", name: 'webhook_deliveries_failed' },
        {
          columns: ['endpoint_id', 'id'],
          where: "status <> 'pending' and status <> 'succeeded'",
          name: 'webhook_deliveries_failed_of_endpoint',
        },
      ],
    },
  ),
  createTable(
    'webhook_attempts',
    {
      delivery_id: t.uuid(),
      id: t.uuidv7(),
      started_at: t.timestamp(),
      duration_ms: t.int(),
      status_code: t.int().nullable(),
      failure_reason: t.enum(FAILURE_REASONS).nullable(),
      error: t.text(500).nullable(),
      response_excerpt: t.text().nullable(),
      worker: t.text(100),
    },
    { primaryKey: ['delivery_id', 'id'] },
  ),
  // What workers count and no other row shows: claims that were lost, which are duplicates at the receiver.
  createTable('webhook_counters', { name: t.text(50).pk(), value: t.bigint() }),
  sql({
    sqlite: DELETED_WITH_SQLITE,
    postgres: [
      ...DELETED_WITH_POSTGRES,
      ...inDomain('webhook_events', 'audience', 'webhook_event_audience', AUDIENCES),
      ...inDomain('webhook_deliveries', 'status', 'webhook_delivery_status', STATUSES),
      ...inDomain('webhook_deliveries', 'failure_reason', 'webhook_delivery_failure_reason', FAILURE_REASONS),
      ...ROOM_FOR_UPDATES,
    ],
  }),
]);
