import { t } from '../../../db/declare/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { createTable } from '../../../db/migrations/operation.ts';

export const serviceUsers = migration('0005_service_users', [
  createTable(
    'service_users',
    {
      id: t.uuidv7().pk(),
      tenant_id: t.text(255),
      user_id: t.text(255).unique(),
      name: t.text({ min: 1, max: 100 }),
      created_at: t.timestamp(),
      created_by: t.text(255).nullable(),
    },
    { indexes: [{ columns: ['tenant_id', 'id'] }] },
  ),
]);
