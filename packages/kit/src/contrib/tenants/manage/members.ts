import type { ServiceMembers } from '../../../auth/request/service-users.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { uuidv7 } from '../../../db/values/uuidv7.ts';
import { refuseUnknownNames, requireArguments } from '../../../options/read-options.ts';
import { anObject, queryable } from '../../../options/value-rule.ts';
import { canInvite, orderedRoles, rolesAfterTransfer } from '../declare/roles.ts';
import { tenantsIn } from '../declare/tenants.ts';
import { tenantErrors } from '../errors.ts';
import {
  countMembers,
  deleteInvitation,
  deleteMember,
  findMember,
  insertMember,
  invitationsBy,
  type MemberRow,
  setRoles,
  type TenantRow,
} from '../rows/store.ts';
import { invalidRoles, lockedFor, requireChange, requireOwner } from './actor.ts';
import { changeContextNames, type ChangeContext, recordInvitation, recordMember } from './record-change.ts';
import { requireSeat } from './seats.ts';

/** A user in a tenant, and what the user is to be there. */
export interface MemberToAdd extends ChangeContext {
  /** The id of the tenant. */
  readonly tenant: string;
  /** The id of the user. */
  readonly user: string;
  /** Roles of the module's `roles`. */
  readonly roles: readonly string[];
}

/** Who is removed from which tenant. */
export type MemberToRemove = Omit<MemberToAdd, 'roles'>;

const REMOVED: ReadonlySet<string> = new Set(
  Object.keys({ ...changeContextNames, tenant: true, user: true } satisfies Record<keyof MemberToRemove, true>),
);
const ADDED: ReadonlySet<string> = new Set([...REMOVED, 'roles']);

/** Makes a user a member. 409 where the user is one, or no seat is free. */
export async function addMember(db: Db, given: MemberToAdd & AsStaff): Promise<MemberRow> {
  requireArguments('addMember()', { db, given }, { db: queryable, given: anObject });
  const { asStaff = false, ...rest } = given;
  refuseUnknownNames('addMember()', rest, ADDED);
  return db.transaction(async (tx) => {
    const { tenant, actor } = await lockedFor(tx, given.tenant, given.by, { asStaff });
    const roles = requireRoles(tx, given.roles);
    await requireChange(tx, tenant.id, given.user, { actor: actor.roles, isSelf: false, before: null, after: roles });
    return insertNewMember(tx, tenant, { user: given.user, roles, addedBy: actor.userId }, given);
  }, CONFLICT_RETRIES);
}

/** A service user of a tenant: a member with one role, below that of owners. */
export const serviceMembers: ServiceMembers = {
  async add(tx, { tenant: tenantId, userId, role }, change) {
    const { tenant, actor } = await lockedFor(tx, tenantId, change.by);
    const roles = requireRoles(tx, [role]);
    requireServiceRoles(tx, roles);
    await requireChange(tx, tenant.id, userId, { actor: actor.roles, isSelf: false, before: null, after: roles });
    await insertNewMember(tx, tenant, { user: userId, roles, addedBy: actor.userId }, change);
  },
  async remove(tx, { tenant, userId }, change) {
    await removeMember(tx, { tenant, user: userId, ...change });
  },
};

/** Nobody could act as the owner, and it has one role. */
function requireServiceRoles(tx: Db, roles: readonly string[]): void {
  const { roles: rules } = tenantsIn(tx).settings;
  if (roles.length !== 1 || roles.includes(rules.owner)) throw tenantErrors.service_member();
}

async function isServiceUser(tx: Db, userId: string): Promise<boolean> {
  return (await tenantsIn(tx).registry.serviceUsers?.among(tx, [userId]))?.has(userId) === true;
}

/** In a transaction that holds the tenant, after every right is decided. */
export async function insertNewMember(
  tx: Db,
  tenant: TenantRow,
  { user, roles, addedBy }: { readonly user: string; readonly roles: readonly string[]; readonly addedBy: string | null },
  context: ChangeContext,
): Promise<MemberRow> {
  const { clock } = tenantsIn(tx);
  if ((await findMember(tx, tenant.id, user)) !== null) throw tenantErrors.already_a_member();
  // It is a member of one tenant, which made it.
  if (await isServiceUser(tx, user)) throw tenantErrors.service_member();
  await requireSeat(tx, tenant, await countMembers(tx, tenant.id));
  const row = { id: uuidv7(clock), tenant_id: tenant.id, user_id: user, roles: [...roles], created_at: clock.now(), added_by: addedBy };
  const after = await insertMember(tx, row);
  await recordMember(tx, { before: null, after }, context);
  return after;
}

/** Gives a member other roles. Owners are made and demoted by owners; the last owner stays one. */
export async function changeMember(db: Db, given: MemberToAdd & AsStaff): Promise<MemberRow> {
  const { asStaff = false, ...rest } = given;
  refuseUnknownNames('changeMember()', rest, ADDED);
  return db.transaction(async (tx) => {
    const { tenant, actor } = await lockedFor(tx, given.tenant, given.by, { asStaff });
    const before = await requireMember(tx, tenant.id, given.user);
    const roles = requireRoles(tx, given.roles);
    const isSelf = actor.userId === given.user;
    await requireChange(tx, tenant.id, given.user, { actor: actor.roles, isSelf, before: before.roles, after: roles });
    return replaceRoles(tx, before, roles, given);
  }, CONFLICT_RETRIES);
}

/** Removes a member; one who removes itself leaves. The last owner cannot. */
export async function removeMember(db: Db, given: MemberToRemove & AsStaff): Promise<void> {
  requireArguments('removeMember()', { db, given }, { db: queryable, given: anObject });
  const { asStaff = false, ...rest } = given;
  refuseUnknownNames('removeMember()', rest, REMOVED);
  await db.transaction(async (tx) => {
    const { tenant, actor } = await lockedFor(tx, given.tenant, given.by, { asStaff, whileSuspended: true });
    const before = await requireMember(tx, tenant.id, given.user);
    const isSelf = actor.userId === given.user;
    await requireChange(tx, tenant.id, given.user, { actor: actor.roles, isSelf, before: before.roles, after: null });
    await removeRow(tx, before, given);
  }, CONFLICT_RETRIES);
}

interface AsStaff {
  /** True: a member of staff in the admin site, who needs no role in the tenant. */
  readonly asStaff?: boolean;
}

/** The owner's role goes to another member; the owner keeps the other roles, or gets the one below. */
export async function transferTenant(db: Db, { tenant: tenantId, user, ...context }: MemberToRemove): Promise<void> {
  await db.transaction(async (tx) => {
    const { tenant, actor } = await lockedFor(tx, tenantId, context.by);
    requireOwner(tx, actor);
    const { roles: rules } = tenantsIn(tx).settings;
    const to = await requireMember(tx, tenant.id, user);
    if (actor.userId === user || to.roles.includes(rules.owner))
      throw tenantErrors.already_a_member({ detail: 'The member is an owner already.' });
    const roles = orderedRoles(rules, [rules.owner, ...to.roles]) ?? [rules.owner];
    // First the new owner: the old one is the last until then.
    await replaceRoles(tx, to, roles, context);
    if (actor.userId === null) return;
    const from = await requireMember(tx, tenant.id, actor.userId);
    const left = rolesAfterTransfer(rules, from.roles);
    await requireChange(tx, tenant.id, actor.userId, { actor: actor.roles, isSelf: true, before: from.roles, after: left });
    await replaceRoles(tx, from, left, context);
  }, CONFLICT_RETRIES);
}

async function requireMember(tx: Db, tenantId: string, user: string): Promise<MemberRow> {
  const member = await findMember(tx, tenantId, user);
  if (member === null) throw tenantErrors.member_not_found();
  return member;
}

function requireRoles(tx: Db, roles: readonly string[]): readonly string[] {
  const { roles: rules } = tenantsIn(tx).settings;
  const ordered = orderedRoles(rules, roles);
  if (ordered === undefined) throw invalidRoles(rules.all);
  return ordered;
}

async function replaceRoles(tx: Db, before: MemberRow, roles: readonly string[], context: ChangeContext): Promise<MemberRow> {
  if (before.roles.join() === roles.join()) return before;
  if (await isServiceUser(tx, before.user_id)) requireServiceRoles(tx, roles);
  const after = await setRoles(tx, before.id, roles);
  await recordMember(tx, { before, after }, context);
  await endInvitations(tx, after, roles, context);
  return after;
}

/** Everything that ends with a membership, in the transaction that ends it. */
export async function removeRow(tx: Db, before: MemberRow, context: ChangeContext): Promise<void> {
  const { registry } = tenantsIn(tx);
  await deleteMember(tx, before.id);
  await recordMember(tx, { before, after: null }, context);
  await endInvitations(tx, before, [], context);
  const former = { userId: before.user_id, tenant: before.tenant_id };
  for (const listener of registry.memberChanges)
    await listener(tx, former, { by: context.by ?? null, requestId: context.requestId ?? null });
}

/** Invitations end with the rights of their sender. */
async function endInvitations(
  tx: Db,
  { tenant_id: tenantId, user_id: userId }: MemberRow,
  roles: readonly string[],
  context: ChangeContext,
): Promise<void> {
  const { roles: rules } = tenantsIn(tx).settings;
  for (const invitation of await invitationsBy(tx, userId, tenantId)) {
    if (canInvite(rules, roles, invitation.roles)) continue;
    await deleteInvitation(tx, invitation.id);
    await recordInvitation(tx, 'revoked', invitation, context);
  }
}
