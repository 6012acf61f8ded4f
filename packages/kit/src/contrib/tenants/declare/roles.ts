/** The roles of an app's tenants. */
export interface RoleRules {
  /** In the order in which they are stored and shown. */
  readonly all: readonly string[];
  /** The role that every tenant has at least one member with. */
  readonly owner: string;
  /** Roles that invite, change and remove members. */
  readonly managers: readonly string[];
}

/** A change of one member. Roles are null where the user is not a member: before joining, after leaving. */
export interface MemberChange {
  /** Roles of the caller in the tenant; null: a program or staff, whose rights were decided elsewhere. */
  readonly actor: readonly string[] | null;
  /** The member is the caller. */
  readonly isSelf: boolean;
  readonly before: readonly string[] | null;
  readonly after: readonly string[] | null;
  /** Whether another active member is an owner. Read only where the member stops being one. */
  readonly hasOtherOwner: boolean;
}

/** Why a change is rejected. */
export type MemberFault = 'not_a_manager' | 'not_an_owner' | 'last_owner';

/** Whether members with these roles invite, change and remove others. */
export function canManage({ managers }: RoleRules, roles: readonly string[]): boolean {
  return roles.some((role) => managers.includes(role));
}

/** The roles in their order, each once; undefined for a list that is empty or has an unknown role. */
export function orderedRoles({ all }: RoleRules, roles: readonly string[]): readonly string[] | undefined {
  const known = all.filter((role) => roles.includes(role));
  return known.length === 0 || roles.some((role) => !all.includes(role)) ? undefined : known;
}

/** Decides a change of a member: the first reason why it is rejected, or null. Leaving needs no role; the last owner can neither leave nor be demoted. */
export function memberFault(rules: RoleRules, { actor, isSelf, before, after, hasOtherOwner }: MemberChange): MemberFault | null {
  const [was, is] = [before?.includes(rules.owner) === true, after?.includes(rules.owner) === true];
  const isLeaving = isSelf && after === null;
  if (actor !== null && !isLeaving) {
    if (!canManage(rules, actor)) return 'not_a_manager';
    // An owner is made, changed and removed by owners only.
    if ((was || is) && !actor.includes(rules.owner)) return 'not_an_owner';
  }
  return was && !is && !hasOtherOwner ? 'last_owner' : null;
}

/** Whether a member with these roles can send an invitation with those. */
export function canInvite(rules: RoleRules, sender: readonly string[], invited: readonly string[]): boolean {
  return memberFault(rules, { actor: sender, isSelf: false, before: null, after: invited, hasOtherOwner: true }) === null;
}

/** The roles of an owner who gave the role away: what is left, or the highest role below it. */
export function rolesAfterTransfer({ all, owner }: RoleRules, roles: readonly string[]): readonly string[] {
  const left = roles.filter((role) => role !== owner);
  return left.length > 0 ? left : all.filter((role) => role !== owner).slice(0, 1);
}
