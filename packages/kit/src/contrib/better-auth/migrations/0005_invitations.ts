import { migration } from '../../../db/migrations/migration.ts';
import { sql } from '../../../db/migrations/operation.ts';

/** For the lists of the admin site: invitations that nobody has answered yet. */
const views = [
  `create view better_auth_invitations as select "id" as id, "email" as email, "organizationId" as organization_id, "role" as roles,
    "inviterId" as invited_by, "expiresAt" as expires_at, "createdAt" as created_at from "invitation" where "status" = 'pending'`,
];

export const invitationsView = migration('0005_invitations', [sql({ sqlite: views, postgres: views })]);
