import { t } from '../../../db/declare/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { createTable } from '../../../db/migrations/operation.ts';

/** One until the first release: changed in place. From then on released ones are never edited. */
export const initial = migration('0001_initial', [
  createTable(
    'personal_exports',
    {
      user_id: t.text(255).pk(),
      state: t.enum(['waiting', 'running', 'ready', 'failed']),
      requested_at: t.timestamp(),
      finished_at: t.timestamp().nullable(),
      expires_at: t.timestamp().nullable(),
      bytes: t.bigint(),
      percent: t.int().dbDefault(0),
      leased_until: t.timestamp().nullable(),
      attempt: t.uuid().nullable(),
    },
    {
      indexes: [
        { columns: ['state', 'leased_until'] },
        { columns: ['expires_at'], where: 'expires_at is not null', name: 'personal_exports_expiring' },
      ],
    },
  ),
  createTable(
    'personal_export_parts',
    {
      user_id: t.ref('personal_exports', { onDelete: 'cascade', column: 'user_id', type: t.text(255) }),
      attempt: t.uuid(),
      number: t.int(),
      data: t.bytes(),
    },
    { primaryKey: ['user_id', 'attempt', 'number'] },
  ),
]);
