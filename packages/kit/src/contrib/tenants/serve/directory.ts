import type { TenantDirectory } from '../../../app/tenants/tenant-directory.ts';
import type { TenantPlace } from '../../../app/tenants/tenant-places.ts';
import { activeTenantsOf, findNamed, findRoles, suspendedAmong } from '../rows/store.ts';

/** The tenants of this module, as requests, workers and documents see them. */
export function tenantDirectory(places: readonly TenantPlace[]): TenantDirectory {
  return {
    places,
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
  };
}
