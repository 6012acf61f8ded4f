import { createTable } from '../../db/migrations/operation.ts';
import { migration } from '../../db/migrations/migration.ts';
import { t } from '../../db/declare/column.ts';

export const initial = migration('0001_initial', [
  createTable(
    'admin_saved_filters',
    {
      id: t.uuidv7().pk(),
      user_id: t.text(255),
      resource: t.text(100),
      name: t.text({ min: 1, max: 80 }),
      query: t.text(2000),
      created_at: t.timestamp(),
    },
    { indexes: [{ columns: ['user_id', 'resource', 'name'], unique: true }] },
  ),
  createTable('admin_alerts', {
    name: t.text(200).pk(),
    severity: t.enum(['bad', 'warning']),
    value: t.text(200),
    since: t.timestamp(),
  }),
  createTable('admin_alert_checks', { id: t.int().pk(), began_at: t.timestamp() }),
]);
