import type { AppTenants } from '../../../app/tenants/tenant-directory.ts';
import { settledStandings } from '../../../auth/rights/settled-standings.ts';
import { type Hindrance, hindranceOf, type Standings } from '../../../auth/rights/standing.ts';
import type { Database, Db } from '../../../db/engine/db.ts';
import type { WebhookEndpoint } from './store.ts';

export type OwnedEndpoint = Pick<WebhookEndpoint, 'owner_id' | 'tenant_key'>;

/**
 * Why the owners of these endpoints may not receive anything, in the order given; null for those who may, and rejected where it cannot be found out.
 * `db` is the handle at hand.
 */
export type FindHindrances = (db: Db, endpoints: readonly OwnedEndpoint[]) => Promise<readonly PromiseSettledResult<Hindrance | null>[]>;

/**
 * An endpoint receives what its owner may still read. An owner need not be a user (decision 058), and its tenant may be one that only the
 * controller knows. `database` is where the users are, which need not be where the endpoints are.
 */
export function hindrancesIn(standings: Standings, tenants: AppTenants, database: Database): FindHindrances {
  return async (db, endpoints) => {
    const asked = endpoints.map(({ owner_id: userId, tenant_key: tenant }) => ({ userId, tenant }));
    const ofUsers = db.database === database ? db : database;
    const found = await settledStandings(standings, ofUsers, asked);
    // An owner that is no user is in no tenant, but its endpoint is.
    const suspended = await suspendedOf(tenants, ofUsers, endpoints);
    return found.map((each, index) => {
      if (each.status === 'rejected') return each;
      // First: what waits is not lost, and its owner is asked again afterwards.
      if (suspended.has(endpoints[index]?.tenant_key ?? '')) return { status: each.status, value: 'suspended' };
      return { status: each.status, value: hindranceOf(each.value, ['unknown_user', 'not_known']) };
    });
  };
}

async function suspendedOf({ directory }: AppTenants, db: Db, endpoints: readonly OwnedEndpoint[]): Promise<ReadonlySet<string>> {
  const keys = [...new Set(endpoints.map(({ tenant_key: key }) => key).filter((key) => key !== null && key !== ''))] as string[];
  return keys.length === 0 ? new Set() : ((await directory?.suspended?.(db, keys)) ?? new Set());
}

/** Shown with a delivery that was not sent. */
export const HINDRANCES: Readonly<Record<Hindrance, string>> = {
  deleted: 'The owner of the endpoint was deleted.',
  unknown_user: 'The owner of the endpoint is not a user.',
  inactive: 'The owner of the endpoint is deactivated.',
  not_a_member: 'The owner of the endpoint is not a member of its tenant.',
  suspended: 'The tenant of the endpoint is suspended.',
  not_known: 'The members of the tenant of the endpoint are not known.',
};
