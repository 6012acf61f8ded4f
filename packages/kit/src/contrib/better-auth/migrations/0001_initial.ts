import { t } from '../../../db/declare/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { code, createTable, sql } from '../../../db/migrations/operation.ts';
import { addMissingColumns, checkExistingTables, READ } from './adopt-tables.ts';
import { betterAuthTables } from './tables-1-7-3.ts';

/** Roles are a comma list in one text. */
const IS_ADMIN = `(',' || replace(coalesce("role", ''), ' ', '') || ',') like '%,admin,%'`;

/** The users as other modules join them. A ban that has expired is none. */
function usersView(isActive: string): string {
  return `create view better_auth_users as select "id" as id, "email" as username, "email" as email,
    (${isActive}) as is_active, (${IS_ADMIN}) as is_staff, (${IS_ADMIN}) as is_superuser from "user"`;
}

/** Changes that other modules must hear of are written down by the database itself, in the statement that makes them. */
const sqliteTriggers = [
  `create trigger better_auth_user_updated after update of "role", "banned", "banExpires" on "user"
    begin insert or ignore into better_auth_user_changes (user_id) values (new."id"); end`,
  `create trigger better_auth_user_deleted after delete on "user"
    begin insert or ignore into better_auth_user_changes (user_id) values (old."id"); end`,
];
const postgresTriggers = [
  `create function better_auth_user_changed() returns trigger language plpgsql as $body$
    begin insert into better_auth_user_changes (user_id) values (old."id") on conflict do nothing; return null; end $body$`,
  `create trigger better_auth_user_updated after update of "role", "banned", "banExpires" on "user"
    for each row execute function better_auth_user_changed()`,
  `create trigger better_auth_user_deleted after delete on "user" for each row execute function better_auth_user_changed()`,
];

export const initial = migration('0001_initial', [
  code('check existing tables', checkExistingTables),
  sql(betterAuthTables),
  code('add missing columns', (tx) => addMissingColumns(tx, READ)),
  createTable('better_auth_user_changes', { user_id: t.text(255).pk() }),
  createTable(
    'better_auth_used_codes',
    { user_id: t.text(255), code_digest: t.text(64), used_at: t.timestamp() },
    { primaryKey: ['user_id', 'code_digest'], indexes: [{ columns: ['used_at'] }] },
  ),
  sql({
    sqlite: [
      usersView(`not coalesce("banned", 0) or coalesce("banExpires" <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 0)`),
      ...sqliteTriggers,
    ],
    postgres: [usersView(`not coalesce("banned", false) or coalesce("banExpires" <= now(), false)`), ...postgresTriggers],
  }),
]);
