import { t } from '../../../db/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { createTable, sql } from '../../../db/migrations/operation.ts';

const CONTENT = `id, at, actor_id, actor_name, actor_scheme, credential_id, action, target_type, target_id, before, after, metadata, request_id, content_hash`;

/**
 * A process of the release before, still running during the deployment, writes into `audit_entries` and expects the commit to give the
 * entry its place. Its entries go to the inbox instead. The sealer's own have a place and pass.
 */
const REDIRECT_FUNCTION = `create function kit_audit_to_inbox() returns trigger language plpgsql as $redirect$
begin
  insert into audit_inbox (${CONTENT})
  values (${CONTENT.split(', ')
    .map((name) => `new.${name}`)
    .join(', ')});
  return null;
end $redirect$`;

const REDIRECT_TRIGGER = `create trigger kit_audit_to_inbox before insert on audit_entries
  for each row when (new.seq is null) execute function kit_audit_to_inbox()`;

/**
 * Entries used to get their place in the chain in the transaction of the change: on PostgreSQL in a trigger at commit, which made audited
 * transactions commit one at a time. Now they are written to the inbox, and a sealer moves them into the chain after the commit (see
 * seal.ts). Entries that are in the chain stay as they are.
 */
export const inbox = migration('0002_inbox', [
  createTable('audit_inbox', {
    id: t.uuidv7().pk(),
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
  }),
  sql({
    sqlite: [],
    postgres: ['drop trigger kit_audit_link on audit_entries', 'drop function kit_audit_link()', REDIRECT_FUNCTION, REDIRECT_TRIGGER],
  }),
]);
