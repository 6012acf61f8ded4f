import { t } from '../../../db/declare/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { createTable, sql } from '../../../db/migrations/operation.ts';

/** For the lists of the admin site. */
const views = [
  `create view better_auth_organizations as select o."id" as id, o."name" as name, o."slug" as slug, o."createdAt" as created_at,
    s.suspended_at as suspended_at, s.reason as suspended_reason
    from "organization" o left join better_auth_suspensions s on s.organization_id = o."id"`,
  `create view better_auth_members as select "id" as id, "userId" as user_id, "organizationId" as organization_id, "role" as roles,
    "createdAt" as created_at from "member"`,
];

export const suspensionsTable = migration('0004_suspensions', [
  createTable('better_auth_suspensions', {
    organization_id: t.text(255).pk(),
    suspended_at: t.timestamp(),
    reason: t.text(300).nullable(),
  }),
  sql({ sqlite: views, postgres: views }),
]);
