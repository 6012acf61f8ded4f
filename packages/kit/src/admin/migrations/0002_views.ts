import { createTable } from '../../db/migrations/operation.ts';
import { migration } from '../../db/migrations/migration.ts';
import { t } from '../../db/declare/column.ts';

export const views = migration('0002_views', [
  createTable(
    'admin_views',
    {
      id: t.uuidv7().pk(),
      staff_id: t.text(255),
      credential_id: t.text(255),
      user_id: t.text(255),
      tenant_id: t.text(255).dbDefault(''),
      reason: t.text({ min: 1, max: 300 }),
      started_at: t.timestamp(),
      expires_at: t.timestamp(),
    },
    { indexes: [{ columns: ['staff_id'] }, { columns: ['user_id'] }, { columns: ['tenant_id'] }, { columns: ['expires_at'] }] },
  ),
]);
