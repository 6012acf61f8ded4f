import type { Membership } from '../auth/membership.ts';
import type { Principal } from '../auth/principal.ts';
import type { Db } from '../db/db.ts';
import { isKitError } from '../errors/kit-error.ts';
import type { Exchange } from '../http/exchange.ts';
import type { TenantDirectory } from './tenant-source.ts';

/** A caller whose request has proved a membership. */
interface Member {
  readonly principal: Principal;
  readonly tenant: string;
}

/** What the callers of open requests are in their tenants now, in the order given: one question for each user and tenant, or one for all of them. */
export async function currentMemberships(
  { membership, memberships }: TenantDirectory,
  exchanges: readonly Exchange[],
): Promise<readonly (Membership | null)[]> {
  const [first] = exchanges;
  if (first === undefined) return [];
  const { db } = first;
  const members = new Map<string, Member>();
  const keys = exchanges.map(({ principal, knownTenant: tenant }) => {
    if (principal === null || tenant === null) return '';
    const key = JSON.stringify([principal.scheme, principal.user.id, tenant]);
    members.set(key, { principal, tenant });
    return key;
  });
  const asked = [...members.values()];
  const found =
    memberships === undefined
      ? await oneByOne(asked, db, membership)
      : await memberships(
          db,
          asked.map(({ principal, tenant }) => ({ userId: principal.user.id, tenant })),
        );
  const current = new Map([...members.keys()].map((key, index) => [key, found[index] ?? null]));
  return keys.map((key) => current.get(key) ?? null);
}

/** In turn: a thousand streams do not take all connections. What refuses a request refuses its stream. */
async function oneByOne(
  asked: readonly Member[],
  db: Db,
  membership: TenantDirectory['membership'],
): Promise<readonly (Membership | null)[]> {
  const found: (Membership | null)[] = [];
  for (const { principal, tenant } of asked)
    try {
      found.push((await membership?.({ user: principal.user, tenant, principal, db })) ?? null);
    } catch (error) {
      if (!isKitError(error) || error.status >= 500) throw error;
      found.push(null);
    }
  return found;
}
