import { t } from '../../../db/declare/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { createTable } from '../../../db/migrations/operation.ts';

export const initial = migration('0001_initial', [
  createTable(
    'request_log',
    {
      id: t.uuidv7().pk(),
      finished_at: t.timestamp(),
      duration_ms: t.float(),
      method: t.text(20),
      route: t.text(500).nullable(),
      path: t.text(300).nullable(),
      status: t.int().nullable(),
      failed: t.bool(),
      aborted: t.bool(),
      error_code: t.text(100).nullable(),
      owner_id: t.text(255),
      tenant_key: t.text(255),
      scheme: t.text(64).nullable(),
      key_id: t.text(255).nullable(),
      request_id: t.text(200).nullable(),
      version: t.text(40).nullable(),
      deprecated: t.bool(),
      via: t.enum(['http', 'mcp']),
    },
    {
      indexes: [
        { columns: ['owner_id', 'id'], where: "owner_id <> ''", name: 'request_log_of_owner' },
        { columns: ['tenant_key', 'id'], where: "tenant_key <> ''", name: 'request_log_of_tenant' },
        { columns: ['key_id', 'id'], where: 'key_id is not null', name: 'request_log_of_key' },
        { columns: ['request_id'], where: 'request_id is not null', name: 'request_log_by_request' },
        { columns: ['owner_id', 'id'], where: "owner_id <> '' and failed", name: 'request_log_failed_of_owner' },
        { columns: ['tenant_key', 'id'], where: "tenant_key <> '' and failed", name: 'request_log_failed_of_tenant' },
        { columns: ['id'], where: 'failed', name: 'request_log_failed' },
      ],
    },
  ),
  createTable(
    'request_usage',
    {
      id: t.uuid().pk(),
      day: t.date(),
      method: t.text(20),
      route: t.text(500),
      version: t.text(40),
      deprecated: t.bool(),
      via: t.enum(['http', 'mcp']),
      owner_id: t.text(255),
      tenant_key: t.text(255),
      key_id: t.text(255),
      requests: t.bigint(),
      failures: t.bigint(),
    },
    {
      indexes: [
        { columns: ['day', 'id'] },
        { columns: ['owner_id', 'day', 'id'], where: "owner_id <> ''", name: 'request_usage_of_owner' },
        { columns: ['tenant_key', 'day', 'id'], where: "tenant_key <> ''", name: 'request_usage_of_tenant' },
        { columns: ['key_id', 'day'], where: "key_id <> ''", name: 'request_usage_of_key' },
        { columns: ['day', 'id'], where: 'deprecated', name: 'request_usage_deprecated' },
      ],
    },
  ),
  createTable(
    'request_quotas',
    {
      id: t.uuid().pk(),
      kind: t.enum(['key', 'owner', 'tenant']),
      owner_id: t.text(255),
      tenant_key: t.text(255),
      key_id: t.text(255),
      period: t.enum(['hour', 'day', 'month', 'year']),
      starts_at: t.timestamp(),
      ends_at: t.timestamp(),
      used: t.bigint(),
      quota: t.bigint().nullable(),
      recorded_at: t.timestamp().nullable(),
      counted_in_redis: t.bigint().dbDefault(0n),
    },
    {
      indexes: [
        { columns: ['owner_id', 'ends_at'], where: "owner_id <> ''", name: 'request_quotas_of_owner' },
        { columns: ['tenant_key', 'ends_at'], where: "tenant_key <> ''", name: 'request_quotas_of_tenant' },
        { columns: ['key_id', 'ends_at'], where: "key_id <> ''", name: 'request_quotas_of_key' },
        { columns: ['ends_at', 'id'] },
        { columns: ['ends_at'], where: 'recorded_at is null', name: 'request_quotas_unrecorded' },
      ],
    },
  ),
]);
