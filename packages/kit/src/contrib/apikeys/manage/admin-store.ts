// SQL of the admin site's lists and counts.
import { AdminConditions, type AdminRows, type SearchNote } from '../../../app/admin/list.ts';
import { modelList } from '../../../app/admin/model-list.ts';
import { bucketSql, type AdminBuckets } from '../../../app/admin/range.ts';
import type { AdminListQuery } from '../../../app/admin/declaration.ts';
import { boundOrder, newestRows, searchRows } from '../../../app/admin/search-rows.ts';
import type { Db } from '../../../db/engine/db.ts';
import { usersNamedLike } from '../../../auth/people/users-named-like.ts';
import type { ApiKey } from '../key/api-key.ts';
import { keyringOf } from '../verify/keyring.ts';
import { apiKeys } from '../models.ts';
import type { KeyState } from '../key/state.ts';
import { stateConditions } from '../rows/store.ts';

export type ListedKey = ApiKey & { readonly owner_username: string | null };

type StoredKey = Omit<ListedKey, 'owner_is_active'> & { readonly owner_is_active: boolean | null };

/** An owner that is gone is not active. */
function listed(row: StoredKey): ListedKey {
  return { ...row, owner_is_active: row.owner_is_active === true };
}

/** Owners whose name contains the text; more than these and the search says too little. */
const OWNERS_MAX = 100;

export const keyList = modelList(apiKeys, 'k', {
  columns: [
    'name',
    { name: 'prefix', kind: 'code' },
    { name: 'owner', kind: 'link' },
    { name: 'scopes', secondary: true },
    { name: 'state', kind: 'state' },
    { name: 'rate_limit', secondary: true, sortNote: 'Cannot be sorted: limits have different units of time.' },
    { name: 'last_used_at', label: 'Last used' },
    { name: 'expires_at', label: 'Expires', secondary: true },
    { name: 'created_at', label: 'Created', sortable: true, secondary: true },
  ],
  orders: { rate_limit: null },
});
const { place, orders } = keyList;

/** Uses are written with every minute of traffic: an index on them would cost more than it finds. States depend on the owner. */
const UNINDEXED_FILTERS = ['used_since', 'used_before'] as const;
const UNINDEXED_STATES: ReadonlySet<string | undefined> = new Set<KeyState>(['active', 'owner_inactive']);
const INDEXED_FILTERS = ['owner', 'expires_before', 'revoked_since', 'revoked_before'] as const;

const TIME_FILTERS: Readonly<Record<string, string>> = {
  used_since: 'last_used_at >=',
  used_before: 'last_used_at <',
  expires_before: 'expires_at <=',
  revoked_since: 'revoked_at >=',
  revoked_before: 'revoked_at <',
};

export async function listKeysForAdmin(db: Db, query: AdminListQuery, now: Date): Promise<AdminRows<ListedKey> & SearchNote> {
  const { statements, users } = keyringOf(db);
  const { lookedUpOwnerIsActive, ownerUsername, from, select } = statements;
  const where = new AdminConditions(db.dialect);
  const { state, owner } = query.filters;
  if (query.search !== null) {
    // Owners first: a join for every key only to look at the name would cost more than the rest of the search.
    const owners = await usersNamedLike(db, users, query.search, OWNERS_MAX);
    const equals = [
      { column: 'owner_id', values: owners },
      { column: 'prefix', values: [query.search] },
    ];
    await searchRows(db, where, { ...place, columns: ['name', 'prefix'], equals }, query.search);
  }
  if (state !== undefined)
    for (const condition of stateConditions(lookedUpOwnerIsActive, state as KeyState, now, (value) => where.parameter(value)))
      where.add(condition);
  if (owner !== undefined) where.add(`k.owner_id = ${where.parameter((await users.findByLogin(db, owner))?.id ?? owner)}`);
  for (const [filter, condition] of Object.entries(TIME_FILTERS)) {
    const time = query.filters[filter];
    if (time !== undefined) where.add(`k.${condition} ${where.parameter(new Date(time))}`);
  }
  const has = (filter: string) => query.filters[filter] !== undefined;
  const isUnindexed = UNINDEXED_STATES.has(state) || UNINDEXED_FILTERS.some(has);
  if (isUnindexed && !INDEXED_FILTERS.some(has) && where.searched === undefined) await newestRows(db, where, place);
  await boundOrder(db, where, query, orders, place);
  const columns = `${select.replace(/^select /, '')}, ${ownerUsername} as owner_username`;
  const { rows, ...page } = await keyList.rows<StoredKey>(db, query, where, { columns, from, countFrom: 'from api_keys k' });
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
  /** Keys that were looked at. */
  readonly all: number;
}

/** Keys that are counted, the newest: more would make the overview as slow as the table is large. */
export const COUNTED_KEYS_MAX = 50_000;
const NEWEST = `(select * from api_keys order by id desc limit ${COUNTED_KEYS_MAX}) newest`;

/** One pass over the newest keys; owners are looked up once each, not once per key. */
export async function countKeysForAdmin(
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
