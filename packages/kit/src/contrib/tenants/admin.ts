import type { AdminContext, AdminDeclaration } from '../../app/admin/declaration.ts';
import type { AdminField, AdminSecret, AdminState, AdminValue } from '../../app/admin/shapes.ts';
import { overviewColumns, type TenantOverview, tenantOverviews } from '../../screens/tenant-overview.ts';
import { findUsers } from '../../auth/people/find-users.ts';
import type { Db } from '../../db/engine/db.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { isKitError } from '../../errors/kit-error.ts';
import { screen } from '../../screens/screen.ts';
import { tenantsIn } from './declare/tenants.ts';
import { addMember } from './manage/members.ts';
import { inviteMember } from './manage/invitations.ts';
import { seatsOf } from './manage/seats.ts';
import { createTenant } from './manage/tenants.ts';
import { NAME_LENGTH_MAX, SUSPENDED_REASON_MAX } from './models.ts';
import type { RoleRules } from './declare/roles.ts';
import { membersOfTenants, type MemberRow, type TenantRow } from './rows/store.ts';
import { SLUG_LENGTH_MAX } from './declare/slug.ts';
import { invitationResource, memberResource, tenantResource } from './serve/resources.ts';

const nameField: AdminField = { name: 'name', label: 'Name', kind: 'text', required: true, maxLength: NAME_LENGTH_MAX };
const slugField: AdminField = { name: 'slug', label: 'Slug', kind: 'text', maxLength: SLUG_LENGTH_MAX };

/** Tenants, members and invitations in the admin site. Their rules are those of the module: staff needs no role in the tenant. */
export function tenantsAdmin({ all }: RoleRules): AdminDeclaration {
  const rolesField: AdminField = { name: 'roles', label: 'Roles', kind: 'strings', required: true, suggestions: all };
  return { resources: [tenantScreen(), memberScreen(rolesField), invitationScreen(rolesField)] };
}

function tenantScreen() {
  return screen(tenantResource, {
    label: 'Tenants',
    singular: 'tenant',
    group: 'Tenants',
    icon: 'tenant',
    title: 'name',
    columns: [
      'name',
      { name: 'slug', kind: 'code' },
      { name: 'condition', label: 'State', kind: 'state' },
      ...overviewColumns,
      { name: 'created_at', label: 'Created', secondary: true },
    ],
    facts: [
      'id',
      { name: 'suspended_at', label: 'Suspended', ifSet: true },
      { name: 'suspended_reason', label: 'Reason', ifSet: true },
      { name: 'deletes_at', label: 'Deleted permanently', ifSet: true },
      { name: 'updated_at', label: 'Changed' },
    ],
    state: 'condition',
    load: (rows, context) => listed(rows as readonly TenantRow[], context),
    cells: { condition: (row) => conditionOf(row as TenantRow) },
    filters: ['state', { column: 'suspended_at', name: 'suspended', label: 'Suspended', ends: ['suspended_since', 'suspended_before'] }],
    search: ['name', 'slug'],
    forms: {
      create: [nameField, slugField],
      edit: [nameField, { ...slugField, required: true, help: 'Requests that use the old one are rejected at once.' }],
      values: ({ name, slug }) => ({ name, slug }),
      input: (fields) => ({ ...fields }),
    },
    creation: {
      fields: [nameField, { ...slugField, help: 'Empty: made of the name.' }, userField('owner', 'Owner')],
      async create({ db, principal, requestId }, fields) {
        const slug = fields['slug'] === '' || fields['slug'] === null ? undefined : (fields['slug'] as string | undefined);
        const owner = await userNamed(db, 'owner', fields);
        const tenant = await ofForm('slug', () =>
          createTenant(db, { name: String(fields['name']), slug, owner, by: principal, requestId }),
        );
        return { message: `${tenant.name} is created.`, id: tenant.id };
      },
    },
    removal:
      'Nobody can act in the tenant from the next request on. It is deleted permanently when its grace is over; until then it can be restored.',
    bulkEdit: false,
    actions: [
      {
        name: 'suspend',
        label: 'Suspend',
        tone: 'bad',
        done: 'suspended',
        when: ({ suspended_at: since }) => since === null,
        fields: [{ name: 'reason', label: 'Reason', kind: 'text', maxLength: SUSPENDED_REASON_MAX, help: 'Shown to the members.' }],
        confirm: 'Members get 403, streams end, deliveries and jobs wait. Nothing is lost.',
      },
      {
        name: 'resume',
        label: 'Resume',
        done: 'resumed',
        when: ({ suspended_at: since }) => since !== null,
        confirm: 'Members can work again; deliveries and jobs that wait go on.',
      },
      // Of an owner who gives the role away. Staff changes roles under Members.
      { name: 'transfer', on: 'record', when: () => false },
      {
        name: 'undelete',
        label: 'Restore',
        done: 'restored',
        when: ({ state }) => state === 'deleting',
        confirm: 'The tenant is active again.',
      },
    ],
  });
}

function memberScreen(rolesField: AdminField) {
  return screen(memberResource, {
    label: 'Members',
    singular: 'member',
    group: 'Tenants',
    icon: 'group',
    title: 'title',
    columns: [
      { name: 'user_id', label: 'User', kind: 'link' },
      { name: 'tenant_id', label: 'Tenant', kind: 'link' },
      'roles',
      { name: 'is_service', label: 'Service user', kind: 'bool', secondary: true },
      { name: 'created_at', label: 'Since', secondary: true },
    ],
    viewAs: ({ user_id: user, tenant_id: tenant }) => ({ user, tenant }),
    facts: ['id', { name: 'added_by', label: 'Added by', kind: 'link', ifSet: true }],
    load: (rows, context) => links(rows as readonly MemberRow[], context),
    cells: {
      // A record that was just saved is not loaded for the list.
      title: (row) => ('user_name' in row ? (row as LinkedMember).user_name : 'Member'),
      user_id: (row) => (row as LinkedMember).user_link,
      tenant_id: (row) => (row as LinkedMember).tenant_link,
    },
    filters: [
      {
        name: 'tenant',
        column: 'tenant_id',
        label: 'Tenant',
        kind: 'reference',
        of: 'tenant',
        where: (id) => ({ tenant_id: id }),
        isIndexed: true,
      },
      { name: 'user', column: 'user_id', label: 'User', kind: 'reference', of: 'user', where: (id) => ({ user_id: id }), isIndexed: true },
    ],
    search: [],
    related: [{ to: 'user', filter: 'user', column: 'user_id' }],
    forms: {
      create: [],
      edit: [rolesField],
      values: ({ roles }) => ({ roles }),
      input: (fields) => ({ ...fields }),
    },
    creation: {
      fields: [{ name: 'tenant', label: 'Tenant', kind: 'reference', of: 'tenant', required: true }, userField('user', 'User'), rolesField],
      async create({ db, principal, requestId }, fields) {
        const user = await userNamed(db, 'user', fields);
        const [tenant, roles] = [String(fields['tenant']), fields['roles'] as readonly string[]];
        const member = await ofForm('user', () => addMember(db, { tenant, user, roles, by: principal, requestId, asStaff: true }));
        return { message: 'The user is a member.', id: member.id };
      },
    },
    removal: 'The user loses access with the next request; keys and streams in the tenant end. The last owner cannot be removed.',
    bulkEdit: false,
  });
}

function invitationScreen(rolesField: AdminField) {
  return screen(invitationResource, {
    label: 'Invitations',
    singular: 'invitation',
    group: 'Tenants',
    icon: 'mail',
    title: 'email',
    columns: [
      'email',
      { name: 'tenant_id', label: 'Tenant' },
      'roles',
      { name: 'expires_at', label: 'Expires' },
      { name: 'created_at', label: 'Sent', secondary: true },
    ],
    facts: ['id', { name: 'invited_by', label: 'Sent by', ifSet: true }],
    filters: [
      {
        name: 'tenant',
        column: 'tenant_id',
        label: 'Tenant',
        kind: 'reference',
        of: 'tenant',
        where: (id) => ({ tenant_id: id }),
        isIndexed: true,
      },
      { column: 'expires_at', name: 'expires', label: 'Expires', ends: ['expires_since', 'expires_before'] },
    ],
    search: ['email'],
    creation: {
      fields: [
        { name: 'tenant', label: 'Tenant', kind: 'reference', of: 'tenant', required: true },
        { name: 'email', label: 'Email', kind: 'text', required: true, maxLength: 254 },
        rolesField,
      ],
      async create({ db, principal, requestId }, fields) {
        const [tenant, email, roles] = [String(fields['tenant']), String(fields['email']), fields['roles'] as readonly string[]];
        const { invitation, token } = await ofForm('email', () =>
          inviteMember(db, { tenant, email, roles, by: principal, requestId, asStaff: true }),
        );
        const secret = shownToken(token);
        return {
          message: token === null ? `The invitation to ${invitation.email} is on its way.` : `${invitation.email} is invited.`,
          id: invitation.id,
          ...(secret === null ? {} : { secret }),
        };
      },
    },
    once: (_row, values) => shownToken(values.get('token') ?? null),
    actions: [
      {
        name: 'resend',
        label: 'Send again',
        done: 'sent again',
        confirm: 'The link in the former mail stops working. The invitation no longer depends on the member who sent it.',
      },
    ],
    readOnly: false,
    editable: () => false,
    removal: 'The link in the mail stops working.',
    bulkEdit: false,
    exports: false,
  });
}

/** Null: a mail takes it to the person. */
function shownToken(token: string | null): AdminSecret | null {
  if (token === null) return null;
  return {
    label: 'Token of the invitation',
    value: token,
    note: 'It is shown this once. Send it to the person in the link of your application.',
  };
}

function conditionOf({ state, suspended_at: suspended }: TenantRow): AdminState {
  if (state === 'deleting') return { value: 'deleting', tone: 'bad', hint: 'It is deleted permanently when its grace is over.' };
  return suspended === null ? { value: 'active', tone: 'good' } : { value: 'suspended', tone: 'warning' };
}

async function listed(rows: readonly TenantRow[], { db }: AdminContext): Promise<readonly TenantOverview[]> {
  const { users, settings, registry } = tenantsIn(db);
  const byId = new Map(rows.map((row) => [row.id, row]));
  const ids = [...byId.keys()];
  const members = await membersOfTenants(db, ids, settings.roles.owner);
  const seatsIn = (id: string) => seatsOf(db, byId.get(id) as TenantRow);
  return tenantOverviews(db, ids, { members, users: users.table, quotas: registry.quotas, seatsOf: seatsIn });
}

interface LinkedMember extends MemberRow {
  readonly user_name: string;
  readonly user_link: AdminValue;
  readonly tenant_link: AdminValue;
}

/** By what people call them, to their pages. */
async function links(rows: readonly MemberRow[], { db, linkTo, titlesOf }: AdminContext): Promise<readonly object[]> {
  const ids = rows.map(({ user_id: id }) => id);
  const [named, titles] = [
    await findUsers(db, tenantsIn(db).users.table, ids),
    await titlesOf(
      'tenant',
      rows.map(({ tenant_id: id }) => id),
    ),
  ];
  return rows.map(({ user_id: user, tenant_id: tenant }) => {
    const [name, title] = [named.get(user)?.username ?? user, titles.get(tenant) ?? tenant];
    return { user_name: name, user_link: linkTo('user', user, name) ?? name, tenant_link: linkTo('tenant', tenant, title) ?? title };
  });
}

function userField(name: string, label: string): AdminField {
  return { name, label, kind: 'text', required: true, help: 'User name, e-mail address or id.' };
}

async function userNamed(db: Db, field: string, fields: Readonly<Record<string, unknown>>): Promise<string> {
  const { users } = tenantsIn(db);
  const given = String(fields[field]);
  const user = (await users.findByLogin(db, given)) ?? (await users.findById(db, given));
  if (user !== null) return user.id;
  throw coreErrors.validation_error({ errors: [{ location: ['body', field], code: 'unknown_user', message: 'There is no such user.' }] });
}

/** What the verb rejects is shown at the field that it is about. */
async function ofForm<R>(field: string, work: () => Promise<R>): Promise<R> {
  try {
    return await work();
  } catch (error) {
    if (!isKitError(error) || error.status !== 409) throw error;
    throw coreErrors.validation_error({ errors: [{ location: ['body', field], code: error.code, message: error.detail }] });
  }
}
