import type { Db } from '../../db/engine/db.ts';
import type { Principal } from './principal.ts';

/** Sessions that remember the tenant that a person works in. The accounts module provides them. */
export interface SessionTenants {
  /** False where the principal is no session of the provider. Effective with the next request. */
  choose(db: Db, principal: Principal, tenant: string | null): Promise<boolean>;
}
