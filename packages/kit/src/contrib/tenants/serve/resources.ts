import type { Principal, User } from '../../../auth/people/principal.ts';
import { resource } from '../../../crud/checks/declare-resource.ts';
import type { CrudCaller } from '../../../crud/declare/crud-caller.ts';
import { people } from '../../../crud/declare/people.ts';
import { one } from '../../../crud/declare/relation.ts';
import { STAFF, type WriteContext } from '../../../crud/declare/resource.ts';
import type { Db } from '../../../db/engine/db.ts';
import { whereSql } from '../../../db/sql/where/where-sql.ts';
import type { Where } from '../../../db/sql/where/where.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { hasRecentLogin } from '../../../permissions/built-ins.ts';
import { tenantsIn } from '../declare/tenants.ts';
import { tenantErrors } from '../errors.ts';
import { inviteMember, resendInvitation, revokeInvitation } from '../manage/invitations.ts';
import { changeMember, removeMember, transferTenant } from '../manage/members.ts';
import { resumeTenant, suspendTenant } from '../manage/suspend.ts';
import { createTenant, deleteTenant, restoreTenant, updateTenant } from '../manage/tenants.ts';
import { tenantInvitations, tenantMembers, tenants } from '../models.ts';
import { findMember } from '../rows/store.ts';
import {
  MemberPatch,
  NewInvitationBody,
  NewMemberBody,
  NewTenantBody,
  NoChanges,
  SuspensionBody,
  TenantPatch,
  TransferBody,
} from '../schemas.ts';

const { manager_required, last_owner, slug_taken, already_a_member, tenant_limit_reached, invalid_tenant } = tenantErrors;

/** Tenants of the caller. The functions of this module write them: controllers, the admin site and programs call them by its hooks. */
export const tenantResource = resource(tenants, {
  changes: 'trigger',
  name: 'tenant',
  missing: tenantErrors.tenant_not_found,
  rows: (caller) => ofMember(caller, 'this.id'),
  audiences: { [STAFF]: { rows: true } },
  bodies: { create: NewTenantBody, update: TenantPatch },
  computed: {
    roles: {
      requires: ['id'],
      response: jsonSchema<readonly string[]>({ type: 'array', items: { type: 'string' }, description: 'Your roles in the tenant.' }),
      load: (rows, { db, caller }) => Promise.all(rows.map(({ id }) => rolesOf(db, id, caller.user))),
    },
  },
  writes: 'verbs',
  hooks: {
    create: ({ input, tx, user, ...context }) =>
      createTenant(tx, { ...(input as { readonly name: string; readonly slug?: string }), owner: (user as User).id, ...by(context) }),
    update: ({ before, input, tx, ...context }) => updateTenant(tx, before.id, { ...input, ...by(context), ...asStaff(context) }),
    async destroy({ before, tx, ...context }) {
      await deleteTenant(tx, before.id, { ...by(context), ...asStaff(context) });
    },
  },
  actions: {
    undelete: {
      summary: 'Restore a tenant that is being deleted',
      raises: [manager_required, tenant_limit_reached],
      run: ({ row, tx, ...context }) => restoreTenant(tx, row.id, { ...by(context), ...asStaff(context) }),
    },
    suspend: {
      audience: STAFF,
      summary: 'Suspend a tenant: nobody can work in it until it is resumed',
      input: SuspensionBody,
      async run({ row, input, tx, ...context }) {
        await suspendTenant(tx, row.id, { ...input, ...by(context) });
      },
    },
    resume: {
      audience: STAFF,
      summary: 'Resume a suspended tenant: deliveries and jobs that wait go on',
      async run({ row, tx, ...context }) {
        await resumeTenant(tx, row.id, by(context));
      },
    },
    transfer: {
      summary: 'Make another member the owner',
      input: TransferBody,
      permission: hasRecentLogin,
      raises: [manager_required, tenantErrors.member_not_found, already_a_member, coreErrors.recent_login_required],
      run: ({ row, input, tx, ...context }) => transferTenant(tx, { tenant: row.id, user: input.user_id, ...by(context) }),
    },
  },
});

/** Who is in the tenants of the caller. */
export const memberResource = resource(tenantMembers, {
  changes: 'trigger',
  name: 'tenant_member',
  missing: tenantErrors.member_not_found,
  rows: (caller) => ofMember(caller, 'this.tenant_id'),
  audiences: { [STAFF]: { rows: true } },
  bodies: { create: NewMemberBody, update: MemberPatch },
  relations: { tenant: one(() => tenants, 'tenant_id'), user: people('user_id') },
  computed: {
    is_service: {
      requires: ['user_id'],
      response: jsonSchema<boolean>({ type: 'boolean', description: 'A service user: a program, and no person.' }),
      async load(rows, { db }) {
        const found = await tenantsIn(db).registry.serviceUsers?.among(
          db,
          rows.map(({ user_id }) => user_id),
        );
        return rows.map(({ user_id }) => found?.has(user_id) === true);
      },
    },
  },
  writes: 'verbs',
  hooks: {
    update({ before, input, tx, ...context }) {
      const { roles = before.roles } = input as { readonly roles?: readonly string[] };
      return changeMember(tx, { tenant: before.tenant_id, user: before.user_id, roles, ...by(context), ...asStaff(context) });
    },
    destroy: ({ before, tx, ...context }) =>
      removeMember(tx, { tenant: before.tenant_id, user: before.user_id, ...by(context), ...asStaff(context) }),
  },
});

/** Open and expired invitations, for those who could send them. */
export const invitationResource = resource(tenantInvitations, {
  changes: 'trigger',
  name: 'tenant_invitation',
  missing: tenantErrors.invitation_not_found,
  access: {
    name: 'managers of the tenant',
    actionOf: () => null,
    condition: ({ db, caller }) => ofManager(db, caller),
  },
  audiences: { [STAFF]: { rows: true, access: false } },
  hidden: ['token_digest'],
  relations: { tenant: one(() => tenants, 'tenant_id'), sender: people('invited_by') },
  bodies: { create: NewInvitationBody, update: NoChanges },
  once: {
    token: {
      on: ['create', 'resend'],
      nullable: true,
      description: 'For the link that you send to the person. Shown this once; null where the application sends a mail.',
    },
  },
  writes: 'verbs',
  hooks: {
    async create({ input, tx, once, ...context }) {
      const { tenant_id: tenant, ...given } = input as {
        readonly tenant_id: string;
        readonly email: string;
        readonly roles: readonly string[];
      };
      const { invitation, token } = await inviteMember(tx, { tenant, ...given, ...by(context), ...asStaff(context) });
      if (token !== null) once('token', token);
      return invitation;
    },
    destroy: ({ before, tx, ...context }) => revokeInvitation(tx, before.id, { ...by(context), ...asStaff(context) }),
  },
  actions: {
    resend: {
      summary: 'Send an invitation again, with a new link',
      raises: [manager_required],
      async run({ row, tx, once, ...context }) {
        const { token } = await resendInvitation(tx, row.id, { ...by(context), ...asStaff(context) });
        if (token !== null) once('token', token);
      },
    },
  },
});

export const createErrors = [slug_taken, tenant_limit_reached, invalid_tenant] as const;
export const updateErrors = [slug_taken, manager_required, invalid_tenant] as const;
export const memberErrors = [manager_required, last_owner] as const;

type Caller = Pick<CrudCaller, 'user' | 'principal'>;

/** Rows of tenants that the caller is a member of; a credential that is for one tenant sees that one alone. `key` is the column with the id. */
function ofMember({ user, principal }: Caller, key: 'this.id' | 'this.tenant_id'): Where {
  if (user === null) return whereSql('1 = 0') as Where;
  const text = `exists (select 1 from tenant_members m where m.tenant_id = ${key} and m.user_id = $1)`;
  return withinCredential(text, [user.id], key, principal);
}

function ofManager(db: Db, { user, principal }: Caller): Where {
  if (user === null) return whereSql('1 = 0') as Where;
  const { managers } = tenantsIn(db).settings.roles;
  const roles = db.dialect === 'postgres' ? 'unnest(m.roles) as r (value)' : 'json_each(m.roles) as r';
  const names = managers.map((_, index) => `$${index + 2}`).join(', ');
  const text = `exists (select 1 from tenant_members m where m.tenant_id = this.tenant_id and m.user_id = $1
    and exists (select 1 from ${roles} where r.value in (${names})))`;
  return withinCredential(text, [user.id, ...managers], 'this.tenant_id', principal);
}

function withinCredential(text: string, values: readonly unknown[], key: string, principal: Principal | null): Where {
  const { tenant, isTenantDefault = false, boundTenant } = principal ?? {};
  // A key that acts in no tenant sees none either.
  if (boundTenant === '') return whereSql('1 = 0') as Where;
  const isFree = tenant === null || tenant === undefined || tenant === '' || isTenantDefault;
  if (isFree) return whereSql(text, values) as Where;
  return whereSql(
    `${text} and ${key} = (select b.id from tenants b where cast(b.id as text) = $${values.length + 1} or b.slug = $${values.length + 1})`,
    [...values, tenant.toLowerCase()],
  ) as Where;
}

async function rolesOf(db: Db, tenantId: string, user: User | null): Promise<readonly string[]> {
  return user === null ? [] : ((await findMember(db, tenantId, user.id))?.roles ?? []);
}

function by({ principal, requestId }: Pick<WriteContext, 'principal' | 'requestId'>) {
  return { by: principal, requestId };
}

/** Staff in the admin site need no role in the tenant. */
function asStaff({ caller }: Pick<WriteContext, 'caller'>) {
  return { asStaff: caller.audience === STAFF };
}
