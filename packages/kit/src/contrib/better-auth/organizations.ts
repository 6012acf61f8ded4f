import { type ModuleTenants, tenantsOf } from '../../app/tenants/tenant-directory.ts';
import type { Principal } from '../../auth/people/principal.ts';
import type { BetterAuthSettings } from './options.ts';
import { serviceMembers } from './service-users.ts';
import { findMembership, findRoles, organizationsOf, type FoundMembership } from './store.ts';

/** What the statement that authenticated a session found in the organization that the request asked for. */
interface SessionMembership {
  readonly asked: string | null;
  /** Null: the user is not a member, or no organization was asked for and none is active. */
  readonly found: FoundMembership | null;
}

/** Principals of sessions belong to one request each. */
const ofSessions = new WeakMap<Principal, SessionMembership>();

export function rememberMembership(principal: Principal, membership: SessionMembership): void {
  ofSessions.set(principal, membership);
}

/**
 * Organizations as tenants, by id. The session's statement has proved the membership already; API keys and access tokens need one more.
 * A request that asks for an organization without the user in it is rejected.
 */
export function organizationTenants({ places, organization }: BetterAuthSettings): ModuleTenants {
  return tenantsOf({
    places: places ?? organization,
    managers: ['owner', 'admin'],
    async named({ db, principal, names }) {
      const known = ofSessions.get(principal);
      const found = await Promise.all(
        names.map(async (name) => {
          const isKnown = known !== undefined && name === (known.asked ?? principal.tenant);
          const member = isKnown ? known.found : await findMembership(db, principal.user.id, name);
          if (member === null) return [];
          return [[name, { tenant: member.organization, membership: { roles: rolesOf(member.roles) } }]] as const;
        }),
      );
      return new Map(found.flat());
    },
    async memberships(db, asked) {
      const roles = await findRoles(db, asked);
      return roles.map((list) => (list === null ? null : { roles: rolesOf(list) }));
    },
    ofUser: organizationsOf,
    serviceMembers,
  });
}

/**
 * better-auth stores several roles as a comma list, and compares what is between the commas as it is. So do we: an administrator, who may not invite
 * owners, can invite with `member, owner`, where better-auth sees no owner.
 */
function rolesOf(list: string): readonly string[] {
  return list.split(',').filter((role) => role !== '');
}
