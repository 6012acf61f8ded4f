import { t } from '../../../db/declare/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { createTable, sql } from '../../../db/migrations/operation.ts';

/** Former members are written down by the database itself, in the statement that removes them: by better-auth, a cascade or another program. */
export const memberChangesTable = migration('0003_member_changes', [
  createTable(
    'better_auth_member_changes',
    { user_id: t.text(255), organization_id: t.text(255) },
    { primaryKey: ['user_id', 'organization_id'] },
  ),
  sql({
    sqlite: ['delete', 'update of "userId", "organizationId"'].map(
      (event) => `create trigger better_auth_member_${event.split(' ', 1)[0]} after ${event} on "member"
        begin insert or ignore into better_auth_member_changes (user_id, organization_id) values (old."userId", old."organizationId"); end`,
    ),
    postgres: [
      `create function better_auth_member_left() returns trigger language plpgsql as $body$
        begin insert into better_auth_member_changes (user_id, organization_id) values (old."userId", old."organizationId")
          on conflict do nothing; return null; end $body$`,
      `create trigger better_auth_member_left after delete or update of "userId", "organizationId" on "member"
        for each row execute function better_auth_member_left()`,
    ],
  }),
]);
