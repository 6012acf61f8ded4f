import { rememberDeleted } from '../data/remember-deleted.ts';
import { standingsOf } from '../declare/standing.ts';
import type { collectRegistry } from './collect-registry.ts';
import type { AppPlan } from './plan-app.ts';

/** What the app itself puts on the registry: what its own directories of users and tenants say. */
export function ownRegistry({ login, users, tenants }: AppPlan): Parameters<typeof collectRegistry>[2] {
  return {
    login,
    standings: standingsOf({ users, tenants }),
    tenants: { exist: tenants.tenant !== undefined, directory: tenants.directory ?? null },
    userChanges: users === null ? [] : [rememberDeleted(users)],
  };
}
