import { t } from '../../../declare/column.ts';
import { migration } from '../../migration.ts';
import { createTable, sql } from '../../operation.ts';

export const secretsAndIdempotency = migration('0002_secrets_and_idempotency', [
  createTable('kit_secrets', { name: t.text(64).pk(), value: t.bytes(), created_at: t.timestamp() }),
  createTable('kit_idempotency', {
    scope_hash: t.text(64).pk(),
    key: t.text(255),
    caller: t.text(400),
    operation: t.text(200),
    fingerprint: t.text(64),
    token: t.uuid(),
    state: t.enum(['running', 'complete']),
    lease_until: t.timestamp(),
    status: t.int().nullable(),
    headers: t.json().nullable(),
    body: t.bytes().nullable(),
    created_at: t.timestamp(),
    expires_at: t.timestamp(),
    audience: t.text(64).nullable(),
  }),
  // SQLite finds expired records by their `rowid`, and saves a fifth of a write with a key without the index.
  sql({ sqlite: [], postgres: 'create index kit_idempotency_expiry_index on kit_idempotency (expires_at)' }),
]);
