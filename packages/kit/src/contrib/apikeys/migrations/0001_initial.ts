import { t } from '../../../db/declare/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { createTable } from '../../../db/migrations/operation.ts';

export const initial = migration('0001_initial', [
  createTable(
    'api_keys',
    {
      id: t.uuidv7().pk(),
      owner_id: t.text(255),
      name: t.text({ min: 1, max: 100 }),
      prefix: t.text(12).unique(),
      digest: t.text(64),
      scopes: t.array(t.text()),
      rate_limit: t.text(40).nullable(),
      created_at: t.timestamp(),
      last_used_at: t.timestamp().nullable(),
      expires_at: t.timestamp().nullable(),
      revoked_at: t.timestamp().nullable(),
      revoked_reason: t.text(200).nullable(),
      previous_digest: t.text(64).nullable(),
      previous_expires_at: t.timestamp().nullable(),
      previous_last_used_at: t.timestamp().nullable(),
    },
    {
      indexes: [
        { columns: ['owner_id', 'created_at'] },
        { columns: ['owner_id', 'id'] },
        { columns: ['expires_at'], where: 'expires_at is not null', name: 'api_keys_expiring' },
        { columns: ['revoked_at'], where: 'revoked_at is not null', name: 'api_keys_revoked' },
      ],
    },
  ),
  createTable(
    'api_key_usage',
    { key_id: t.uuid(), hour: t.timestamp(), requests: t.bigint() },
    { primaryKey: ['key_id', 'hour'], indexes: [{ columns: ['hour'] }] },
  ),
]);
