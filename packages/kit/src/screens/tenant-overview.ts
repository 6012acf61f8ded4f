import { findUsers } from '../auth/people/find-users.ts';
import type { UserTable } from '../auth/people/user-table.ts';
import type { Db } from '../db/engine/db.ts';
import type { RequestQuotas } from '../app/declare/registry.ts';

/** What lists of tenants show of each, whichever module stores them: its people, whose it is, and how much it is used. */
export const overviewColumns = [
  { name: 'members', label: 'Members', kind: 'number' },
  { name: 'seats', label: 'Seats', kind: 'number', secondary: true },
  { name: 'owners', label: 'Owners', kind: 'chips' },
  { name: 'requests', label: 'Requests in 30 days', kind: 'number', secondary: true },
  { name: 'last_request_at', label: 'Last request', kind: 'time', secondary: true },
] as const;

export interface TenantOverview {
  readonly members: number;
  /** Null: no limit. */
  readonly seats: number | null;
  readonly owners: readonly string[];
  /** Null: the app has no request log. */
  readonly requests: number | null;
  readonly last_request_at: string | null;
}

export interface OverviewMember {
  readonly tenant: string;
  readonly userId: string;
  readonly isOwner: boolean;
}

interface OverviewSources {
  readonly members: readonly OverviewMember[];
  readonly users: UserTable;
  readonly quotas: RequestQuotas | null | undefined;
  readonly seatsOf: (id: string, owner: string | undefined) => Promise<number | null>;
}

/** More owners than these are a number. */
const OWNERS_SHOWN = 3;

/** Of the tenants of a page: a statement for the owners and one for the use of all of them. */
export async function tenantOverviews(
  db: Db,
  ids: readonly string[],
  { members, users, quotas, seatsOf }: OverviewSources,
): Promise<TenantOverview[]> {
  const use = await quotas?.useOfTenants(db, ids);
  const ownersOf = (id: string) => members.filter(({ tenant, isOwner }) => isOwner && tenant === id).map(({ userId }) => userId);
  const named = await findUsers(db, users, [...new Set(ids.flatMap(ownersOf))]);
  return Promise.all(
    ids.map(async (id) => {
      const owners = ownersOf(id);
      const names = owners.slice(0, OWNERS_SHOWN).map((owner) => named.get(owner)?.username ?? owner);
      const more = owners.length - names.length;
      const { requests = null, lastAt = null } = use?.get(id) ?? {};
      return {
        members: members.filter(({ tenant }) => tenant === id).length,
        seats: await seatsOf(id, owners[0]),
        owners: more > 0 ? [...names, `${more} more`] : names,
        requests,
        last_request_at: lastAt?.toISOString() ?? null,
      };
    }),
  );
}
