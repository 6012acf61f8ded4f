import { t } from '../../../db/declare/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { createTable, sql } from '../../../db/migrations/operation.ts';

const START = `insert into audit_chain (id, length, hash, pruned_through, pruned_hash)
  values (1, 0, '${'0'.repeat(64)}', 0, '${'0'.repeat(64)}')`;

export const initial = migration('0001_initial', [
  createTable(
    'audit_entries',
    {
      id: t.uuidv7().pk(),
      seq: t.bigint().nullable().unique(),
      at: t.timestamp(),
      actor_id: t.text(255).nullable(),
      actor_name: t.text(255).nullable(),
      actor_scheme: t.text(64).nullable(),
      credential_id: t.text(255).nullable(),
      action: t.text(100),
      target_type: t.text(100),
      target_id: t.text(255),
      before: t.json().nullable(),
      after: t.json().nullable(),
      metadata: t.json().nullable(),
      request_id: t.text(200).nullable(),
      content_hash: t.text(64),
      previous_hash: t.text(64).nullable(),
      hash: t.text(64).nullable(),
    },
    {
      indexes: [
        { columns: ['at'] },
        { columns: ['target_type', 'target_id', 'seq'] },
        { columns: ['actor_id', 'seq'] },
        { columns: ['action', 'seq'] },
        { columns: ['request_id'] },
      ],
    },
  ),
  createTable('audit_chain', {
    id: t.int().pk(),
    length: t.bigint(),
    hash: t.text(64),
    pruned_through: t.bigint(),
    pruned_hash: t.text(64),
  }),
  // Entries are written here in the transaction of the change; a sealer moves them into the chain after the commit (see seal.ts).
  createTable('audit_inbox', {
    id: t.uuidv7().pk(),
    at: t.timestamp(),
    actor_id: t.text(255).nullable(),
    actor_name: t.text(255).nullable(),
    actor_scheme: t.text(64).nullable(),
    credential_id: t.text(255).nullable(),
    action: t.text(100),
    target_type: t.text(100),
    target_id: t.text(255),
    before: t.json().nullable(),
    after: t.json().nullable(),
    metadata: t.json().nullable(),
    request_id: t.text(200).nullable(),
    content_hash: t.text(64),
  }),
  sql({ sqlite: [START], postgres: [START] }),
]);
