import type { UserDirectory } from '../../auth/people/user-directory.ts';
import type { Db } from '../../db/engine/db.ts';
import { STANDING_SCHEME, type Standings } from '../../auth/rights/standing.ts';
import type { AppTenants } from './tenant-directory.ts';

/** Of an app, for modules that store whose something is. */
export interface MemberSources {
  readonly registry: { readonly standings: Standings; readonly tenants: AppTenants };
  readonly users: UserDirectory;
}

/** The id of the tenant with this id or slug that the user is a member of; null where there is none. In an app without tenants a name is what it is. */
export async function tenantOfMember(db: Db, { registry, users }: MemberSources, userId: string, name: string): Promise<string | null> {
  const { exist, directory } = registry.tenants;
  if (!exist) return name;
  if (directory === null) {
    const [standing] = await registry.standings.of(db, [{ userId, tenant: name }]);
    return standing?.ok === true || standing?.why === 'not_known' || standing?.why === 'inactive' ? name : null;
  }
  const user = await users.findById(db, userId);
  if (user === null) return null;
  const found = await directory.named({ db, principal: { user, scheme: STANDING_SCHEME, scopes: null }, names: [name] });
  return found.get(name)?.tenant ?? null;
}
