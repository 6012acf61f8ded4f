// SQL of the admin site's lists and counts.
import { AdminConditions, adminRows, bucketSql, type AdminBuckets, type AdminListQuery, type AdminRows } from '../../app/index.ts';
import type { Db } from '../../db/db.ts';
import type { ApiKey } from './api-key.ts';
import { keyringOf } from './keyring.ts';
import type { KeyState } from './state.ts';
import { stateConditions } from './store.ts';

export type ListedKey = ApiKey & { readonly owner_username: string | null };

type StoredKey = Omit<ListedKey, 'owner_is_active'> & { readonly owner_is_active: boolean | null };

/** An owner that is gone is not active. */
function listed(row: StoredKey): ListedKey {
  return { ...row, owner_is_active: row.owner_is_active === true };
}

export async function listKeysForAdmin(db: Db, query: AdminListQuery, now: Date): Promise<AdminRows<ListedKey>> {
  const { statements, users } = keyringOf(db);
  const { ownerIsActive, ownerUsername, from, select } = statements;
  const where = new AdminConditions(db.dialect);
  const { state, owner } = query.filters;
  if (query.search !== null) where.contains(['k.name', 'k.prefix', ownerUsername], query.search);
  if (state !== undefined)
    for (const condition of stateConditions(ownerIsActive, state as KeyState, now, (value) => where.parameter(value))) where.add(condition);
  if (owner !== undefined) where.add(`k.owner_id = ${where.parameter((await users.findByLogin(db, owner))?.id ?? owner)}`);
  const needsOwner = query.search !== null || state === 'active' || state === 'owner_inactive';
  const { rows, ...page } = await adminRows<StoredKey>(
    db,
    {
      columns: `${select.replace(/^select /, '')}, ${ownerUsername} as owner_username`,
      from,
      key: 'k.id',
      conditions: where.conditions,
      parameters: where.parameters,
      orders: {
        name: { sql: 'k.name', kind: 'text' },
        last_used_at: { sql: 'k.last_used_at', kind: 'time', nullable: true },
        expires_at: { sql: 'k.expires_at', kind: 'time', nullable: true },
      },
      ...(needsOwner ? {} : { countFrom: 'from api_keys k' }),
    },
    query,
  );
  return { rows: rows.map(listed), ...page };
}

export async function findKeyForAdmin(db: Db, id: string): Promise<ListedKey | null> {
  const { statements } = keyringOf(db);
  const [row] = await db.query<StoredKey>(
    `${statements.select}, ${statements.ownerUsername} as owner_username ${statements.from} where k.id = $1`,
    [id],
  );
  return row === undefined ? null : listed(row);
}

export interface KeyCounts {
  readonly active: number;
  readonly used: number;
  readonly expiring: number;
  readonly revoked: number;
}

/** One pass over the keys, whatever their number of requests. */
export async function countKeysForAdmin(
  db: Db,
  { since, now, soon }: Readonly<Record<'since' | 'now' | 'soon', Date>>,
): Promise<KeyCounts> {
  const { from, ownerIsActive } = keyringOf(db).statements;
  const usable = `k.revoked_at is null and (k.expires_at is null or k.expires_at > $2) and ${ownerIsActive} is true`;
  const count = (condition: string) => `coalesce(sum(case when ${condition} then 1 else 0 end), 0)`;
  const [row] = await db.query<Record<keyof KeyCounts, number | bigint>>(
    `select ${count(usable)} as active, ${count('k.last_used_at >= $1')} as used, ${count(`${usable} and k.expires_at <= $3`)} as expiring,
       ${count('k.revoked_at >= $1')} as revoked ${from}`,
    [since, now, soon],
  );
  return {
    active: Number(row?.active ?? 0),
    used: Number(row?.used ?? 0),
    expiring: Number(row?.expiring ?? 0),
    revoked: Number(row?.revoked ?? 0),
  };
}

/** How many keys were last used in each bucket. */
export async function lastUsesByBucket(db: Db, buckets: AdminBuckets): Promise<readonly number[]> {
  const rows = await db.query<{ bucket: number; count: number | bigint }>(
    `select ${bucketSql('last_used_at', db.dialect, buckets)} as bucket, count(*) as count from api_keys where last_used_at >= $1 group by 1`,
    [buckets.since],
  );
  const counts = buckets.starts.map(() => 0);
  for (const { bucket, count } of rows) if (bucket in counts) counts[bucket] = Number(count);
  return counts;
}
