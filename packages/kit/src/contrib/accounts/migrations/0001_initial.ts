import { createTable } from '../../../db/migrations/operation.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { t } from '../../../db/column.ts';
import { timestamps } from '../../../db/standard-columns.ts';

export const initial = migration('0001_initial', [
  createTable('users', {
    id: t.uuidv7().pk(),
    username: t.text({ min: 1, max: 150 }).unique(),
    email: t.text(254).nullable().unique(),
    is_active: t.bool().dbDefault(true),
    is_staff: t.bool().dbDefault(false),
    is_superuser: t.bool().dbDefault(false),
    password_hash: t.text(255).nullable().sensitive().readOnly(),
    ...timestamps(),
  }),
  createTable(
    'sessions',
    {
      id: t.uuidv7().pk(),
      user_id: t.ref('users', { onDelete: 'cascade' }),
      token_digest: t.text(64).unique().sensitive(),
      created_at: t.timestamp(),
      seen_at: t.timestamp(),
      expires_at: t.timestamp(),
    },
    { indexes: [{ columns: ['user_id'] }, { columns: ['expires_at'] }] },
  ),
]);
