import { t } from '../../../db/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { createIndex, createTable } from '../../../db/migrations/operation.ts';

export const usage = migration('0002_usage', [
  createTable(
    'api_key_usage',
    {
      key_id: t.uuid(),
      hour: t.timestamp(),
      requests: t.bigint(),
    },
    { primaryKey: ['key_id', 'hour'], indexes: [{ columns: ['hour'] }] },
  ),
  createIndex('api_keys', { columns: ['expires_at'], where: 'expires_at is not null', name: 'api_keys_expiring' }),
  createIndex('api_keys', { columns: ['revoked_at'], where: 'revoked_at is not null', name: 'api_keys_revoked' }),
]);
