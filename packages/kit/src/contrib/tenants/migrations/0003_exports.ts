import { t } from '../../../db/declare/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { createTable } from '../../../db/migrations/operation.ts';

export const exports = migration('0003_exports', [
  createTable(
    'tenant_exports',
    {
      tenant_id: t.uuid().pk(),
      state: t.enum(['waiting', 'running', 'ready', 'failed']),
      requested_at: t.timestamp(),
      requested_by: t.text(255).nullable(),
      finished_at: t.timestamp().nullable(),
      expires_at: t.timestamp().nullable(),
      bytes: t.bigint(),
      percent: t.int().dbDefault(0),
      leased_until: t.timestamp().nullable(),
      attempt: t.uuid().nullable(),
      job_id: t.uuid().nullable(),
    },
    { indexes: [{ columns: ['expires_at'], where: 'expires_at is not null', name: 'tenant_exports_expiring' }] },
  ),
  createTable(
    'tenant_export_parts',
    {
      tenant_id: t.ref('tenant_exports', { onDelete: 'cascade', column: 'tenant_id' }),
      attempt: t.uuid(),
      number: t.int(),
      data: t.bytes(),
    },
    { primaryKey: ['tenant_id', 'attempt', 'number'] },
  ),
]);
