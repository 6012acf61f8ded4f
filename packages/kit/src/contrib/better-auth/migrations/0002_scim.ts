import { migration } from '../../../db/migrations/migration.ts';
import { code, sql } from '../../../db/migrations/operation.ts';
import { addMissingColumns } from './adopt-tables.ts';
import { scimTables } from './tables-scim-1-7.ts';

/** Roles are a comma list in one text. better-auth splits it at commas and compares what is between them as it is: `admin, user` has no role `user`. */
const isAdmin = (position: 'instr' | 'strpos'): string => `(${position}(',' || coalesce("role", '') || ',', ',admin,') > 0)`;

/**
 * Whoever was provisioned by SCIM is active while one of the directories says so: a user that all of them have deactivated or deleted, or whose
 * connections were decommissioned, is not. Users that SCIM never provisioned have no row in "scimSubject".
 */
const IS_PROVISIONED = `(not exists (select 1 from "scimSubject" p where p."userId" = "user"."id")
  or exists (select 1 from "scimUser" p where p."userId" = "user"."id" and p."active" and not exists
    (select 1 from "scimConnectionBinding" b where b."connectionId" = p."connectionId" and b."decommissionStatus" <> 'active')))`;

/** The users as other modules join them. A ban that has expired is none. */
function usersView(isAllowed: string, staff: string): string {
  return `create view better_auth_users as select "id" as id, "email" as username, "email" as email,
    (${isAllowed}) and ${IS_PROVISIONED} as is_active, ${staff} as is_staff, ${staff} as is_superuser from "user"`;
}

/** Changes of provisioned users are written down by the database itself, as bans are. */
const sqliteTriggers = [
  ...(['insert', 'update of "active", "userId"', 'delete'] as const).map(
    (event) => `create trigger better_auth_scim_user_${event.split(' ', 1)[0]} after ${event} on "scimUser"
      begin insert or ignore into better_auth_user_changes (user_id) values (${event === 'delete' ? 'old' : 'new'}."userId"); end`,
  ),
  `create trigger better_auth_scim_subject_delete after delete on "scimSubject"
    begin insert or ignore into better_auth_user_changes (user_id) values (old."userId"); end`,
  `create trigger better_auth_scim_connection_update after update of "decommissionStatus" on "scimConnectionBinding"
    begin insert or ignore into better_auth_user_changes (user_id) select distinct "userId" from "scimUser" where "connectionId" = new."connectionId"; end`,
];
const postgresTriggers = [
  `create function better_auth_scim_user_changed() returns trigger language plpgsql as $body$
    begin insert into better_auth_user_changes (user_id)
      values (case when tg_op = 'DELETE' then old."userId" else new."userId" end) on conflict do nothing; return null; end $body$`,
  `create trigger better_auth_scim_user_changed after insert or update of "active", "userId" or delete on "scimUser"
    for each row execute function better_auth_scim_user_changed()`,
  `create trigger better_auth_scim_subject_deleted after delete on "scimSubject" for each row execute function better_auth_scim_user_changed()`,
  `create function better_auth_scim_connection_changed() returns trigger language plpgsql as $body$
    begin insert into better_auth_user_changes (user_id)
      select distinct "userId" from "scimUser" where "connectionId" = new."connectionId" on conflict do nothing; return null; end $body$`,
  `create trigger better_auth_scim_connection_changed after update of "decommissionStatus" on "scimConnectionBinding"
    for each row execute function better_auth_scim_connection_changed()`,
];

const common = [
  'drop view better_auth_users',
  // Sessions of staff who act as somebody else end when the staff member changes.
  `create index if not exists "session_impersonatedBy_idx" on "session" ("impersonatedBy") where "impersonatedBy" is not null`,
];

export const scim = migration('0002_scim', [
  sql(scimTables),
  code('add the column of domain verification', (tx) => addMissingColumns(tx, { ssoProvider: { domainVerified: 'boolean' } })),
  sql({
    sqlite: [
      ...common,
      usersView(`not coalesce("banned", 0) or coalesce("banExpires" <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 0)`, isAdmin('instr')),
      ...sqliteTriggers,
    ],
    postgres: [
      ...common,
      usersView(`not coalesce("banned", false) or coalesce("banExpires" <= now(), false)`, isAdmin('strpos')),
      ...postgresTriggers,
    ],
  }),
]);
