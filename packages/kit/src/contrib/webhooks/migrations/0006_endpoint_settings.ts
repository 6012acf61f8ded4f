import { addColumn, createTable, sql } from '../../../db/migrations/operation.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { t } from '../../../db/column.ts';

const FIRST_PERIODS = `insert into webhook_subscription_periods (endpoint_id, pattern, tenant_key, owner_id, started_at)
  select s.endpoint_id, s.pattern, s.tenant_key, s.owner_id, p.created_at
  from webhook_subscriptions s join webhook_endpoints p on p.id = s.endpoint_id`;

/**
 * What an endpoint is set to: the kind of its signature with the public key, custom headers, a rate limit, and every secret that was promised to
 * sign until its time. And from when to when it subscribed to what: `recover` adds only what it would have been sent then.
 */
export const endpointSettings = migration('0006_endpoint_settings', [
  // Of an encrypted secret nothing is known here: null until the next rotation.
  ...addColumn('webhook_endpoints', 'signature', t.enum(['v1', 'v1a']).nullable(), {
    backfill: `case when secret like 'whsk!_%' escape '!' then 'v1a' when secret like 'fernet:%' then null else 'v1' end`,
  }),
  ...addColumn('webhook_endpoints', 'public_key', t.text(100).nullable()),
  ...addColumn('webhook_endpoints', 'older_secrets', t.text().nullable().sensitive()),
  ...addColumn('webhook_endpoints', 'headers', t.text().nullable().sensitive()),
  ...addColumn('webhook_endpoints', 'header_names', t.array(t.text()).nullable()),
  ...addColumn('webhook_endpoints', 'rate_limit', t.text(40).nullable()),
  ...addColumn('webhook_endpoints', 'rate_next_at', t.timestamp().nullable()),
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
  // Earlier changes were not kept: what an endpoint subscribes to now counts from its creation.
  sql({ sqlite: [FIRST_PERIODS], postgres: [FIRST_PERIODS] }),
]);
