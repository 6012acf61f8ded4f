import { IDENTITY_LENGTH_MAX } from '../../identity-length.ts';
import { t } from '../../column.ts';
import { migration } from '../../migrations/migration.ts';
import { createTable } from '../../migrations/operation.ts';

export const deletedUsers = migration('0003_deleted_users', [
  createTable('kit_deleted_users', { user_id: t.text(IDENTITY_LENGTH_MAX).pk(), deleted_at: t.timestamp() }),
]);
