import type { TenantDirectory } from '../../../app/tenants/tenant-directory.ts';
import type { TenantSettings } from '../options.ts';
import { serviceMembers } from '../manage/members.ts';
import { activeTenantsOf, findNamed, findRoles, suspendedAmong } from '../rows/store.ts';

/** The tenants of this module, as requests, workers and documents see them. */
export function tenantDirectory({ find, roles }: Pick<TenantSettings, 'find' | 'roles'>): TenantDirectory {
  return {
    places: find,
    managers: roles.managers,
    async named({ db, principal, names }) {
      const found = await findNamed(db, principal.user.id, names);
      return new Map([...found].map(([name, { tenant, roles, isSuspended }]) => [name, { tenant, membership: { roles, isSuspended } }]));
    },
    async memberships(db, asked) {
      const found = await findRoles(db, asked);
      return found;
    },
    suspended: suspendedAmong,
    ofUser: activeTenantsOf,
    serviceMembers,
  };
}
