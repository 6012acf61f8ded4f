import type { User } from '../../../auth/people/principal.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { KnownAsker } from '../declare/asker.ts';
import type { ObjectActions } from '../declare/object-actions.ts';
import { objectChain } from '../declare/object-chain.ts';
import { knownAsker } from './caller-subjects.ts';

/** A staff member of the admin site, and the tenant that the site acts in. */
export interface StaffCaller {
  readonly user: User | null;
  readonly tenant: string | null;
}

/** A staff member as grants see it. */
export function askerOf(db: Db, { user, tenant }: StaffCaller): Promise<KnownAsker> {
  return knownAsker(db, { user, tenant });
}

/** As {@link askerOf}, for one object. The site shows superusers the objects of every tenant, so they act in the tenant of the object. */
export async function askerFor(db: Db, caller: StaffCaller, declaration: ObjectActions, id: unknown): Promise<KnownAsker> {
  if (caller.user?.is_superuser !== true) return askerOf(db, caller);
  const [object] = await objectChain(db, declaration, id, 0);
  return askerOf(db, { user: caller.user, tenant: (object?.tenantKey ?? '') || null });
}
