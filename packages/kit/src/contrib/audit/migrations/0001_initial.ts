import { t } from '../../../db/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { createTable, sql } from '../../../db/migrations/operation.ts';

const START = `insert into audit_chain (id, length, hash, pruned_through, pruned_hash)
  values (1, 0, '${'0'.repeat(64)}', 0, '${'0'.repeat(64)}')`;

/**
 * PostgreSQL links entries in a trigger that is deferred to the commit. Linking needs the end of the chain, which only one transaction
 * can hold; taken at the first entry it would be held until the end of the caller's transaction, which may go on to wait for rows that
 * the next in line has locked: a deadlock. At commit nothing is waited for any more. SQLite has one writer, so there `record` links.
 */
const LINK_FUNCTION = `create function kit_audit_link() returns trigger language plpgsql as $link$
declare
  chain audit_chain%rowtype;
  link text;
begin
  select * into strict chain from audit_chain where id = 1 for update;
  link := encode(sha256(convert_to(chain.hash || new.content_hash, 'UTF8')), 'hex');
  update audit_entries set seq = chain.length + 1, previous_hash = chain.hash, hash = link where id = new.id;
  update audit_chain set length = chain.length + 1, hash = link where id = 1;
  return null;
end $link$`;

const LINK_TRIGGER = `create constraint trigger kit_audit_link after insert on audit_entries
  deferrable initially deferred for each row execute function kit_audit_link()`;

export const initial = migration('0001_initial', [
  createTable(
    'audit_entries',
    {
      id: t.uuidv7().pk(),
      seq: t.bigint().nullable().unique(),
      at: t.timestamp(),
      actor_id: t.text(64).nullable(),
      actor_name: t.text(255).nullable(),
      actor_scheme: t.text(64).nullable(),
      credential_id: t.text(64).nullable(),
      action: t.text(100),
      target_type: t.text(100),
      target_id: t.text(200),
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
  sql({ sqlite: [START], postgres: [START, LINK_FUNCTION, LINK_TRIGGER] }),
]);
