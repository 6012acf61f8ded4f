import { createTable, sql } from '../../../db/migrations/operation.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { t } from '../../../db/column.ts';
import { timestamps } from '../../../db/standard-columns.ts';

export const initial = migration('0001_initial', [
  createTable(
    'webhook_events',
    {
      id: t.uuidv7().pk(),
      type: t.text(100),
      data: t.text(),
      timestamp: t.timestamp(),
      audience: t.enum(['owner', 'owner_in_tenant', 'tenant', 'broadcast']).nullable(),
      owner_id: t.text(255).dbDefault(''),
      tenant_key: t.text(255).dbDefault(''),
      ordering_key: t.text(255).nullable(),
      idempotency_key: t.text(255).nullable(),
    },
    {
      indexes: [
        { columns: ['idempotency_key', 'type', 'owner_id', 'tenant_key'], unique: true, where: 'idempotency_key is not null' },
        { columns: ['id'], where: 'audience is null', name: 'webhook_events_without_audience' },
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
      ...timestamps(),
    },
    { indexes: [{ columns: ['owner_id', 'tenant_key', 'id'] }, { columns: ['tenant_key', 'id'] }] },
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
  createTable(
    'webhook_deliveries',
    {
      id: t.uuidv7().pk(),
      event_id: t.ref('webhook_events', { onDelete: 'cascade' }),
      endpoint_id: t.ref('webhook_endpoints', { onDelete: 'cascade' }),
      event_type: t.text(100),
      status: t.enum(['pending', 'succeeded', 'failed']).dbDefault('pending'),
      attempts: t.int().dbDefault(0),
      next_attempt_at: t.timestamp().nullable(),
      ordering_key: t.text(255).nullable(),
      claim_token: t.text(36).nullable(),
      claimed_until: t.timestamp().nullable(),
      last_status_code: t.int().nullable(),
      last_error: t.text(500).nullable(),
      failure_reason: t
        .enum([
          'http_status',
          'timeout',
          'connection',
          'tls',
          'blocked_address',
          'audience_changed',
          'endpoint_disabled',
          'secret_unavailable',
          'payload',
        ])
        .nullable(),
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
          where: "status = 'pending' and ordering_key is null",
          name: 'webhook_deliveries_due_of_endpoint',
        },
        {
          columns: ['endpoint_id', 'ordering_key', 'id'],
          where: "status = 'pending' and ordering_key is not null",
          name: 'webhook_deliveries_ordered',
        },
      ],
    },
  ),
  createTable(
    'webhook_attempts',
    {
      delivery_id: t.ref('webhook_deliveries', { onDelete: 'cascade' }),
      id: t.uuidv7(),
      started_at: t.timestamp(),
      duration_ms: t.int(),
      status_code: t.int().nullable(),
      failure_reason: t
        .enum([
          'http_status',
          'timeout',
          'connection',
          'tls',
          'blocked_address',
          'audience_changed',
          'endpoint_disabled',
          'secret_unavailable',
          'payload',
        ])
        .nullable(),
      error: t.text(500).nullable(),
      response_excerpt: t.text().nullable(),
      worker: t.text(100),
    },
    { primaryKey: ['delivery_id', 'id'] },
  ),
  // A claim changes no indexed column: with room left on the page for a second version of every row it is a heap-only update
  // and touches no index.
  // Claimed and finished rows come and go quickly, so the default of "a fifth of the table" would vacuum a growing table too rarely.
  sql({
    sqlite: [],
    postgres: [
      'alter table webhook_deliveries set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)',
    ],
  }),
]);
