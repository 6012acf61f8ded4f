import type { AuditEntry } from '../../../auth/request/audit-sink.ts';
import type { Db } from '../../../db/engine/db.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import type { KitError } from '../../../errors/kit-error.ts';
import { canManage, memberFault, type MemberChange, type MemberFault } from '../declare/roles.ts';
import { tenantsIn } from '../declare/tenants.ts';
import { tenantErrors } from '../errors.ts';
import { findMember, lockTenant, type TenantRow, usersWithRole } from '../rows/store.ts';

/** Who acts in a tenant. */
export interface Actor {
  /** Null: a program, or staff in the admin site. */
  readonly userId: string | null;
  /** Roles in the tenant now; null where they are not asked. */
  readonly roles: readonly string[] | null;
}

interface AllowedStates {
  readonly asStaff?: boolean;
  readonly whileDeleting?: boolean;
  /** For what ends things only: a suspended tenant can be left and deleted. */
  readonly whileSuspended?: boolean;
}

/**
 * The tenant, locked, and what the caller is in it now: the right is asked in the transaction of the change. A principal is a member, or the tenant does
 * not exist for it; programs (a string, nobody) and staff (`asStaff`) have every right.
 */
export async function lockedFor(
  tx: Db,
  tenantId: string,
  by: AuditEntry['actor'],
  { asStaff = false, whileDeleting = false, whileSuspended = whileDeleting }: AllowedStates = {},
): Promise<{ readonly tenant: TenantRow; readonly actor: Actor }> {
  const tenant = await lockTenant(tx, tenantId);
  if (tenant === null || (tenant.state === 'deleting' && !whileDeleting)) throw tenantErrors.tenant_not_found();
  if (asStaff || by === null || by === undefined || typeof by === 'string') return { tenant, actor: { userId: null, roles: null } };
  const { id } = 'user' in by ? by.user : by;
  const member = await findMember(tx, tenant.id, id);
  if (member === null) throw tenantErrors.tenant_not_found();
  if (tenant.suspended_at !== null && !whileSuspended) throw coreErrors.tenant_suspended();
  return { tenant, actor: { userId: id, roles: member.roles } };
}

export function requireManager(tx: Db, { roles }: Actor): void {
  const { roles: rules } = tenantsIn(tx).settings;
  if (roles !== null && !canManage(rules, roles)) throw rejected(tx, 'not_a_manager');
}

export function requireOwner(tx: Db, { roles }: Actor): void {
  const { owner } = tenantsIn(tx).settings.roles;
  if (roles !== null && !roles.includes(owner)) throw rejected(tx, 'not_an_owner');
}

/** Throws the reason why the change of a member is rejected. */
export async function requireChange(tx: Db, tenantId: string, userId: string, change: Omit<MemberChange, 'hasOtherOwner'>): Promise<void> {
  const { roles: rules } = tenantsIn(tx).settings;
  const stopsOwning = change.before?.includes(rules.owner) === true && change.after?.includes(rules.owner) !== true;
  const hasOtherOwner = !stopsOwning || (await hasActiveOwner(tx, tenantId, userId));
  const fault = memberFault(rules, { ...change, hasOtherOwner });
  if (fault !== null) throw rejected(tx, fault);
}

/** An owner who can still act, besides one user. */
async function hasActiveOwner(tx: Db, tenantId: string, except: string): Promise<boolean> {
  const { registry, settings } = tenantsIn(tx);
  const others = await usersWithRole(tx, tenantId, settings.roles.owner, except);
  const standings = await registry.standings.of(
    tx,
    others.map((userId) => ({ userId, tenant: null })),
  );
  return standings.some(({ ok }) => ok);
}

function rejected(tx: Db, fault: MemberFault): KitError {
  const { owner, managers } = tenantsIn(tx).settings.roles;
  if (fault === 'last_owner') return tenantErrors.last_owner();
  return tenantErrors.manager_required({ extensions: { required_roles: fault === 'not_an_owner' ? [owner] : managers } });
}

/** 422 for roles that the app does not have. */
export function invalidRoles(all: readonly string[]): KitError {
  const message = `Choose one or more of ${all.join(', ')}.`;
  return coreErrors.validation_error({ errors: [{ location: ['body', 'roles'], code: 'invalid_roles', message }] });
}
