import { IDENTITY_LENGTH_MAX } from '../../../values/identity-length.ts';
import { t } from '../../../declare/column.ts';
import { migration } from '../../migration.ts';
import { createTable } from '../../operation.ts';

export const deletedUsers = migration('0003_deleted_users', [
  createTable('kit_deleted_users', { user_id: t.text(IDENTITY_LENGTH_MAX).pk(), deleted_at: t.timestamp() }),
]);
