import { createTable } from '../../../db/migrations/operation.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { t } from '../../../db/column.ts';
import { timestamps } from '../../../db/standard-columns.ts';

export const groupTables = migration('0002_groups', [
  createTable(
    'groups',
    {
      id: t.uuidv7().pk(),
      tenant_key: t.text(200).dbDefault(''),
      name: t.text({ min: 1, max: 150 }),
      managed_by: t.text(255).dbDefault(''),
      ...timestamps(),
    },
    { indexes: [{ columns: ['tenant_key', 'name'], unique: true }] },
  ),
  createTable(
    'group_members',
    {
      group_id: t.ref('groups', { onDelete: 'cascade' }),
      user_id: t.ref('users', { onDelete: 'cascade' }),
      created_at: t.timestamp(),
    },
    { primaryKey: ['user_id', 'group_id'], indexes: [{ columns: ['group_id', 'user_id'] }] },
  ),
]);
