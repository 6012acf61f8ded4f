// SQL of the admin site's lists and counts.
import { AdminConditions, adminRows, type AdminRows } from '../../app/admin/list.ts';
import { bucketSql, type AdminBuckets } from '../../app/admin/range.ts';
import type { AdminListQuery } from '../../app/admin/declaration.ts';
import type { Db } from '../../db/db.ts';
import { quoteName } from '../../db/names.ts';
import { containsSql } from '../../db/portable-sql.ts';
import type { ApiKey } from './api-key.ts';
import { keyringOf } from './keyring.ts';
import type { KeyState } from './state.ts';
import { stateConditions } from './store.ts';
import { tableSql } from '../../auth/user-table.ts';

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
  const { state, owner, used_since: usedSince, expires_before: expiresBefore, revoked_since: revokedSince } = query.filters;
  if (query.search !== null) {
    // Owners first: a join for every key only to look at the name would cost more than the rest of the search.
    const owners = await ownersNamedLike(db, query.search);
    const owned = owners.length === 0 ? [] : [`k.owner_id in (${owners.map((id) => where.parameter(id)).join(', ')})`];
    where.contains(['k.name', 'k.prefix'], query.search, owned);
  }
  if (state !== undefined)
    for (const condition of stateConditions(ownerIsActive, state as KeyState, now, (value) => where.parameter(value))) where.add(condition);
  if (owner !== undefined) where.add(`k.owner_id = ${where.parameter((await users.findByLogin(db, owner))?.id ?? owner)}`);
  if (usedSince !== undefined) where.add(`k.last_used_at >= ${where.parameter(new Date(usedSince))}`);
  if (expiresBefore !== undefined) where.add(`k.expires_at <= ${where.parameter(new Date(expiresBefore))}`);
  if (revokedSince !== undefined) where.add(`k.revoked_at >= ${where.parameter(new Date(revokedSince))}`);
  const needsOwner = state === 'active' || state === 'owner_inactive';
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

/** The ids of users whose name contains the text; more than these and the search says too little. */
async function ownersNamedLike(db: Db, text: string): Promise<readonly string[]> {
  const { table } = keyringOf(db).users;
  const rows = await db.query<{ id: unknown }>(
    `select ${quoteName(table.id)} as id from ${tableSql(table)} where ${containsSql(quoteName(table.username), '$1', db.dialect)} limit 100`,
    [text],
  );
  return rows.map((row) => String(row.id));
}

export async function findKeyForAdmin(db: Db, id: string): Promise<ListedKey | null> {
  const { statements } = keyringOf(db);
  const [row] = await db.query<StoredKey>(
    `${statements.select}, ${statements.ownerUsername} as owner_username ${statements.from} where k.id = $1`,
    [id],
  );
  return row === undefined ? null : listed(row);
}

export function namesOfKeys(db: Db, ids: readonly string[]): Promise<{ id: string; name: string }[]> {
  if (ids.length === 0) return Promise.resolve([]);
  return db.query(`select id, name from api_keys where id in (${ids.map((_, index) => `$${index + 1}`).join(', ')})`, ids);
}

export interface KeyCounts {
  readonly active: number;
  readonly used: number;
  readonly expiring: number;
  readonly revoked: number;
}

/** One pass over the keys, whatever their number of requests; owners are looked up once each, not once per key. */
export async function countKeysForAdmin(
  db: Db,
  { since, now, soon }: Readonly<Record<'since' | 'now' | 'soon', Date>>,
): Promise<KeyCounts> {
  const { from, ownerIsActive } = keyringOf(db).statements;
  const usable = 'revoked_at is null and (expires_at is null or expires_at > $2)';
  const count = (condition: string) => `sum(case when ${condition} then 1 else 0 end)`;
  const byOwner = `(select owner_id, ${count(usable)} as usable, ${count('last_used_at >= $1')} as used,
    ${count(`${usable} and expires_at <= $3`)} as expiring, ${count('revoked_at >= $1')} as revoked from api_keys group by owner_id)`;
  const ofActive = (column: string) => `coalesce(sum(case when ${ownerIsActive} is true then ${column} else 0 end), 0)`;
  const [row] = await db.query<Record<keyof KeyCounts, number | bigint | string>>(
    `select ${ofActive('k.usable')} as active, coalesce(sum(k.used), 0) as used, ${ofActive('k.expiring')} as expiring,
       coalesce(sum(k.revoked), 0) as revoked ${from.replace('from api_keys k', `from ${byOwner} k`)}`,
    [since, now, soon],
  );
  const of = (name: keyof KeyCounts) => Number(row?.[name] ?? 0);
  return { active: of('active'), used: of('used'), expiring: of('expiring'), revoked: of('revoked') };
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
