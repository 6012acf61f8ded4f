import { migration } from '../../migrations/migration.ts';
import { dropIndex, sql } from '../../migrations/operation.ts';

/** SQLite finds expired records by their `rowid`, and saves a fifth of a write with a key without the index. PostgreSQL keeps it. */
export const idempotencyOrder = migration('0004_idempotency_order', [
  dropIndex('kit_idempotency', 'kit_idempotency_expires_at_index'),
  sql({ sqlite: [], postgres: 'create index kit_idempotency_expiry_index on kit_idempotency (expires_at)' }),
]);
