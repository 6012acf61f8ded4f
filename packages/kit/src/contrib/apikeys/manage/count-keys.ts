// SQL of the overview of the admin site.
import { bucketSql, type AdminBuckets } from '../../../app/admin/range.ts';
import type { Db } from '../../../db/engine/db.ts';
import { keyringOf } from '../verify/keyring.ts';

export interface KeyCounts {
  readonly active: number;
  readonly used: number;
  readonly expiring: number;
  readonly revoked: number;
  /** Keys that were looked at. */
  readonly all: number;
}

/** Keys that are counted, the newest: more would make the overview as slow as the table is large. */
export const COUNTED_KEYS_MAX = 50_000;
const NEWEST = `(select * from api_keys order by id desc limit ${COUNTED_KEYS_MAX}) newest`;

/** One pass over the newest keys; owners are looked up once each, not once per key. */
export async function countKeys(
  db: Db,
  { since, until, now, soon }: Readonly<Record<'since' | 'until' | 'now' | 'soon', Date>>,
): Promise<KeyCounts> {
  const { from, ownerIsActive } = keyringOf(db).statements;
  const usable = 'revoked_at is null and (expires_at is null or expires_at > $2)';
  const count = (condition: string) => `sum(case when ${condition} then 1 else 0 end)`;
  const byOwner = `(select owner_id, ${count(usable)} as usable, ${count('last_used_at >= $1 and last_used_at < $4')} as used,
    count(*) as every, ${count(`${usable} and expires_at <= $3`)} as expiring, ${count('revoked_at >= $1 and revoked_at < $4')} as revoked from ${NEWEST} group by owner_id)`;
  const ofActive = (column: string) => `coalesce(sum(case when ${ownerIsActive} is true then ${column} else 0 end), 0)`;
  const [row] = await db.query<Record<keyof KeyCounts, number | bigint | string>>(
    `select ${ofActive('k.usable')} as active, coalesce(sum(k.every), 0) as "all", coalesce(sum(k.used), 0) as used, ${ofActive('k.expiring')} as expiring,
       coalesce(sum(k.revoked), 0) as revoked ${from.replace('from api_keys k', `from ${byOwner} k`)}`,
    [since, now, soon, until],
    { mayBeLong: 'counts of API keys' },
  );
  const of = (name: keyof KeyCounts) => Number(row?.[name] ?? 0);
  return { active: of('active'), used: of('used'), expiring: of('expiring'), revoked: of('revoked'), all: of('all') };
}

/** How many keys were last used in each bucket. */
export async function lastUsesByBucket(db: Db, buckets: AdminBuckets): Promise<readonly number[]> {
  const rows = await db.query<{ bucket: number; count: number | bigint }>(
    `select ${bucketSql('last_used_at', db.dialect, buckets)} as bucket, count(*) as count from ${NEWEST} where last_used_at >= $1 and last_used_at < $2 group by 1`,
    [buckets.since, buckets.until],
    { mayBeLong: 'last uses of API keys' },
  );
  const counts = buckets.starts.map(() => 0);
  for (const { bucket, count } of rows) if (bucket in counts) counts[bucket] = Number(count);
  return counts;
}
