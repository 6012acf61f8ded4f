import type { AdminContext, AdminDeclaration } from '../../app/admin/declaration.ts';
import { adminDone, adminEach } from '../../app/admin/each.ts';
import type { AdminState } from '../../app/admin/shapes.ts';
import { overviewColumns, type TenantOverview, tenantOverviews } from '../../screens/tenant-overview.ts';
import { isTrue } from '../../auth/people/user-table.ts';
import { findUsers } from '../../auth/people/find-users.ts';
import { t } from '../../db/declare/column.ts';
import { model } from '../../db/declare/model.ts';
import type { RowOf } from '../../db/declare/rows.ts';
import { screen } from '../../screens/screen.ts';
import { type InstanceOptions, pluginOf } from './instance.ts';
import { SUSPENDED_REASON_MAX } from './models.ts';
import { resumeTenant, suspendTenant } from './organizations.ts';
import { membersOf } from './store.ts';
import { betterAuthState } from './user-changes.ts';

// Views: the tables are better-auth's, and nothing here writes them.
const users = model('better_auth_users', {
  id: t.text(255).pk(),
  username: t.text(255),
  is_active: t.bool(),
  is_staff: t.bool(),
});
const organizations = model('better_auth_organizations', {
  id: t.text(255).pk(),
  name: t.text(255),
  slug: t.text(255),
  created_at: t.timestamp(),
  suspended_at: t.timestamp().nullable(),
  suspended_reason: t.text(SUSPENDED_REASON_MAX).nullable(),
});
const members = model('better_auth_members', {
  id: t.text(255).pk(),
  user_id: t.text(255),
  organization_id: t.text(255),
  roles: t.text(255),
  created_at: t.timestamp(),
});

const invitations = model('better_auth_invitations', {
  id: t.text(255).pk(),
  email: t.text(255),
  organization_id: t.text(255),
  roles: t.text(255).nullable(),
  invited_by: t.text(255),
  expires_at: t.timestamp(),
  created_at: t.timestamp(),
});

type OrganizationRow = RowOf<typeof organizations.columns>;
type MemberRow = RowOf<typeof members.columns>;
type InvitationRow = RowOf<typeof invitations.columns>;

const BY_BETTER_AUTH = 'The plugins admin() and organization() of better-auth have routes for this.';

const userScreen = screen(users, {
  name: 'users',
  auditedAs: 'user',
  label: 'Users',
  singular: 'user',
  group: 'Access',
  icon: 'user',
  title: 'username',
  columns: [
    { name: 'username', label: 'E-mail' },
    { name: 'is_active', label: 'Active' },
    { name: 'is_staff', label: 'Staff' },
  ],
  // Expressions of a view have no type on SQLite.
  cells: { is_active: (row) => isTrue(row.is_active), is_staff: (row) => isTrue(row.is_staff) },
  filters: [
    { column: 'is_active', name: 'active', label: 'Active' },
    { column: 'is_staff', name: 'staff', label: 'Staff' },
  ],
  search: ['username'],
  viewAs: ({ id: user }) => ({ user, tenant: null }),
  readOnly: true,
  creation: { refused: BY_BETTER_AUTH },
});

const organizationScreen = (instance: InstanceOptions) =>
  screen(organizations, {
    name: 'organizations',
    auditedAs: 'tenant',
    label: 'Organizations',
    singular: 'organization',
    group: 'Access',
    icon: 'tenant',
    title: 'name',
    columns: [
      'name',
      { name: 'slug', kind: 'code' },
      { name: 'state', label: 'State', kind: 'state' },
      ...overviewColumns,
      { name: 'created_at', label: 'Created', secondary: true },
    ],
    facts: ['id', { name: 'suspended_at', label: 'Suspended', ifSet: true }, { name: 'suspended_reason', label: 'Reason', ifSet: true }],
    state: 'state',
    load: (rows, context) => overviews(rows, context, instance),
    cells: { state: (row) => stateOf(row) },
    filters: [{ column: 'suspended_at', name: 'suspended', label: 'Suspended', ends: ['suspended_since', 'suspended_before'] }],
    search: ['name', 'slug'],
    actions: [
      {
        name: 'suspend',
        label: 'Suspend',
        tone: 'bad',
        on: 'selection',
        when: ({ suspended_at: since }) => since === null,
        fields: [{ name: 'reason', label: 'Reason', kind: 'text', maxLength: SUSPENDED_REASON_MAX, help: 'Goes into the audit log.' }],
        confirm: 'Members get 403, streams end, deliveries and jobs wait. Nothing is lost.',
        run: (context, ids, { reason }) =>
          change(context, ids, 'suspended', (id) =>
            suspendTenant(context.db, id, { ...by(context), ...(typeof reason === 'string' ? { reason } : {}) }),
          ),
      },
      {
        name: 'resume',
        label: 'Resume',
        tone: 'neutral',
        on: 'selection',
        when: ({ suspended_at: since }) => since !== null,
        confirm: 'Members can work again; deliveries and jobs that wait go on.',
        run: (context, ids) => change(context, ids, 'resumed', (id) => resumeTenant(context.db, id, by(context))),
      },
    ],
    readOnly: true,
    creation: { refused: BY_BETTER_AUTH },
  });

const memberScreen = screen(members, {
  name: 'organization-members',
  label: 'Members',
  singular: 'member',
  group: 'Access',
  icon: 'group',
  title: 'title',
  columns: [
    { name: 'user_id', label: 'User', kind: 'link' },
    { name: 'organization_id', label: 'Organization', kind: 'link' },
    'roles',
    { name: 'is_service', label: 'Service user', kind: 'bool', secondary: true },
    { name: 'created_at', label: 'Since', secondary: true },
  ],
  facts: ['id'],
  load: (rows, context) => linked(rows, context),
  cells: {
    title: (row) => (row as LoadedMember).user_name ?? 'Member',
    user_id: (row, { linkTo }) => linkTo('user', row.user_id, (row as LoadedMember).user_name ?? row.user_id),
    organization_id: (row, { linkTo }) =>
      linkTo('tenant', row.organization_id, (row as LoadedMember).organization_name ?? row.organization_id),
  },
  filters: [
    { column: 'organization_id', name: 'tenant', label: 'Organization', kind: 'reference', of: 'tenant' },
    { column: 'user_id', name: 'user', label: 'User', kind: 'reference', of: 'user' },
  ],
  search: [],
  related: [
    { to: 'tenant', filter: 'tenant', column: 'organization_id' },
    { to: 'user', filter: 'user', column: 'user_id' },
  ],
  viewAs: ({ user_id: user, organization_id: tenant }) => ({ user, tenant }),
  readOnly: true,
  creation: { refused: BY_BETTER_AUTH },
});

const invitationScreen = screen(invitations, {
  name: 'organization-invitations',
  label: 'Invitations',
  singular: 'invitation',
  group: 'Access',
  icon: 'mail',
  title: 'email',
  columns: [
    'email',
    { name: 'organization_id', label: 'Organization', kind: 'link' },
    'roles',
    { name: 'expires_at', label: 'Expires' },
    { name: 'created_at', label: 'Sent', secondary: true },
  ],
  facts: ['id', { name: 'invited_by', label: 'Sent by', kind: 'link' }],
  load: (rows, context) => ofOrganizations(rows, context),
  cells: {
    organization_id: (row, { linkTo }) => linkTo('tenant', row.organization_id, (row as LoadedInvitation).organization_name),
    invited_by: (row, { linkTo }) => linkTo('user', row.invited_by, (row as LoadedInvitation).sender_name),
  },
  filters: [{ column: 'organization_id', name: 'tenant', label: 'Organization', kind: 'reference', of: 'tenant' }],
  search: ['email'],
  related: [{ to: 'tenant', filter: 'tenant', column: 'organization_id' }],
  readOnly: true,
  creation: { refused: BY_BETTER_AUTH },
});

/** Who is there. Changes are made by better-auth's own routes. */
export function betterAuthAdmin(instance: InstanceOptions): AdminDeclaration {
  return { resources: [userScreen, organizationScreen(instance), memberScreen, invitationScreen] };
}

interface OrganizationOptions {
  readonly creatorRole?: string;
  readonly membershipLimit?: number | ((user: object, organization: object) => number | Promise<number>);
}

/** What better-auth takes without the option. */
const MEMBERSHIP_LIMIT = 100;

async function overviews(
  rows: readonly OrganizationRow[],
  { db }: AdminContext,
  instance: InstanceOptions,
): Promise<readonly TenantOverview[]> {
  const { users: directory, registry } = betterAuthState.of(db);
  const { creatorRole = 'owner', membershipLimit = MEMBERSHIP_LIMIT } = (pluginOf(instance, 'organization')?.options ??
    {}) as OrganizationOptions;
  const byId = new Map(rows.map((row) => [row.id, row]));
  const ids = [...byId.keys()];
  // A limit by user is the owner's: whoever joins has another one, and nobody in particular joins here.
  const seatsOf = async (id: string, owner: string | undefined): Promise<number | null> => {
    if (typeof membershipLimit === 'number') return membershipLimit || MEMBERSHIP_LIMIT;
    const user = owner === undefined ? null : await directory.findById(db, owner);
    const { name, slug, created_at: createdAt } = byId.get(id) as OrganizationRow;
    return user === null ? null : membershipLimit({ ...user, name: user.username }, { id, name, slug, createdAt });
  };
  return tenantOverviews(db, ids, {
    members: await membersOf(db, ids, creatorRole),
    users: directory.table,
    quotas: registry.quotas,
    seatsOf,
  });
}

interface LoadedInvitation extends InvitationRow {
  readonly organization_name: string;
  readonly sender_name: string;
}

async function ofOrganizations(rows: readonly InvitationRow[], { db, titlesOf }: AdminContext): Promise<readonly object[]> {
  const { users: directory } = betterAuthState.of(db);
  const named = await findUsers(
    db,
    directory.table,
    rows.map(({ invited_by: id }) => id),
  );
  const titles = await titlesOf(
    'tenant',
    rows.map(({ organization_id: id }) => id),
  );
  return rows.map(({ organization_id: organization, invited_by: sender }) => ({
    organization_name: titles.get(organization) ?? organization,
    sender_name: named.get(sender)?.username ?? sender,
  }));
}

function stateOf({ suspended_at: suspended }: Pick<OrganizationRow, 'suspended_at'>): AdminState {
  return suspended === null ? { value: 'active', tone: 'good' } : { value: 'suspended', tone: 'warning' };
}

function by({ principal, requestId }: AdminContext) {
  return { by: principal, requestId };
}

async function change(context: AdminContext, ids: readonly string[], done: string, work: (id: string) => Promise<void>) {
  return adminDone(await adminEach(context, ids, work), ['organization', 'organizations'], done);
}

interface LoadedMember extends MemberRow {
  readonly user_name?: string;
  readonly organization_name?: string;
}

async function linked(rows: readonly MemberRow[], { db, titlesOf }: AdminContext): Promise<readonly object[]> {
  const { users: directory, registry } = betterAuthState.of(db);
  const ids = rows.map(({ user_id: id }) => id);
  const named = await findUsers(db, directory.table, ids);
  const services = await registry.serviceUsers?.among(db, ids);
  const titles = await titlesOf(
    'tenant',
    rows.map(({ organization_id: id }) => id),
  );
  return rows.map(({ user_id: user, organization_id: organization }) => ({
    user_name: named.get(user)?.username ?? user,
    organization_name: titles.get(organization) ?? organization,
    is_service: services?.has(user) === true,
  }));
}
