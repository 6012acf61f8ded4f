import type { User } from '../../../auth/people/principal.ts';
import { flagSql, isTrue, tableSql, userIdSql, type ColumnTypes, type UserTable } from '../../../auth/people/user-table.ts';
import { quoteName } from '../../../db/declare/names.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { Dialect } from '../../../db/dialect.ts';
import type { ApiKey } from '../key/api-key.ts';
import { isUuid } from '../../../db/values/uuid.ts';
import type { KeyState } from '../key/state.ts';

/** A key with what verification compares. The digests never leave this module. */
export interface VerifiableKey {
  /** What is judged. */
  readonly row: ApiKey;
  /** What the caller gets: the row, or what the cache hands out instead. */
  readonly apiKey: ApiKey;
  readonly owner: User;
  readonly digest: string;
  readonly previousDigest: string | null;
}

type KeyRow = Omit<ApiKey, 'owner_is_active'> & { readonly owner_is_active: unknown };

type VerificationRow = KeyRow & {
  readonly digest: string;
  readonly previous_digest: string | null;
  readonly owner_username: string | null;
  readonly owner_email: string | null;
  readonly owner_is_staff: unknown;
  readonly owner_is_superuser: unknown;
};

/** Startup waits for it. */
const UNBOUND_LOOKED_AT = 50_000;

const COLUMNS = [
  'id',
  'owner_id',
  'tenant_id',
  'name',
  'prefix',
  'scopes',
  'rate_limit',
  'quota',
  'created_at',
  'last_used_at',
  'expires_at',
  'revoked_at',
  'revoked_reason',
  'previous_expires_at',
  'previous_last_used_at',
].map((name) => `k.${name}`);

/** SQL that depends on where the users live; made once per database. */
export interface KeyStatements {
  readonly select: string;
  /** A left join: a key whose owner is gone must still be listed. */
  readonly from: string;
  readonly ownerIsActive: string;
  readonly findByPrefix: string;
  /** The parameter is a list of ids. */
  readonly findByIds: string;
  readonly lockOwner: string;
}

export function keyStatements(users: UserTable, types: ColumnTypes | undefined, dialect: Dialect): KeyStatements {
  const table = tableSql(users);
  const column = (name: string) => `u.${quoteName(name)}`;
  const flag = (name: string) => flagSql(column(name), types?.get(name));
  const ownerIsActive = flag(users.isActive);
  const from = `from api_keys k left join ${table} u on ${column(users.id)} = ${userIdSql('k.owner_id', users, dialect)}`;
  const select = `select ${[...COLUMNS, `${ownerIsActive} as owner_is_active`].join(', ')}`;
  const owner = [
    `${column(users.username)} as owner_username`,
    `${column(users.email)} as owner_email`,
    `${flag(users.isStaff)} as owner_is_staff`,
    `${flag(users.isSuperuser)} as owner_is_superuser`,
  ];
  const lock = dialect === 'postgres' ? ' for no key update' : '';
  const verified = [select, 'k.digest', 'k.previous_digest', ...owner].join(', ');
  const inIds = dialect === 'postgres' ? '= any(cast($1 as uuid[]))' : 'in (select value from json_each($1))';
  return Object.freeze({
    select,
    from,
    ownerIsActive,
    // The whole cost of verifying: one read by the unique index on prefix, with the owner by its primary key.
    findByPrefix: `${verified} ${from} where k.prefix = $1`,
    findByIds: `${verified} ${from} where k.id ${inIds}`,
    // Creating keys of one owner goes one by one, so the limit is counted on settled rows. SQLite has one writer anyway.
    lockOwner: `select cast(${column(users.id)} as text) as id, ${ownerIsActive} as is_active from ${table} u where ${column(users.id)} = ${userIdSql('$1', users, dialect)}${lock}`,
  });
}

export async function findForVerification(db: Db, statements: KeyStatements, prefix: string): Promise<VerifiableKey | null> {
  const [row] = await db.query<VerificationRow>(statements.findByPrefix, [prefix], { pipelined: true });
  return row === undefined ? null : verifiable(row);
}

/** Keys with their owners, by id. */
export async function findKeysWithOwners(db: Db, statements: KeyStatements, ids: readonly string[]): Promise<VerifiableKey[]> {
  const rows = await db.query<VerificationRow>(statements.findByIds, [db.dialect === 'postgres' ? ids : JSON.stringify(ids)]);
  return rows.map(verifiable);
}

function verifiable(row: VerificationRow): VerifiableKey {
  const { owner_username, owner_email, owner_is_staff, owner_is_superuser, digest, previous_digest: previousDigest, ...key } = row;
  const owner_is_active = isTrue(key.owner_is_active);
  const owner = {
    id: key.owner_id,
    username: owner_username ?? '',
    email: owner_email,
    is_active: owner_is_active,
    is_staff: isTrue(owner_is_staff),
    is_superuser: isTrue(owner_is_superuser),
  };
  const apiKey = { ...key, owner_is_active };
  return { row: apiKey, apiKey, owner, digest, previousDigest };
}

export async function findKey(db: Db, { select, from }: KeyStatements, by: 'id' | 'prefix', value: string): Promise<ApiKey | null> {
  const [row] = await db.query<KeyRow>(`${select} ${from} where k.${by} = $1`, [value]);
  return row === undefined ? null : toApiKey(row);
}

/** The row as it is until the end of the transaction: what audit entries call "before" is then really what was replaced. */
export async function lockKey(tx: Db, { select, from }: KeyStatements, id: string): Promise<ApiKey | null> {
  const lock = tx.dialect === 'postgres' ? ' for update of k' : '';
  if (!isUuid(id)) return null;
  const [row] = await tx.query<KeyRow>(`${select} ${from} where k.id = $1${lock}`, [id.toLowerCase()]);
  return row === undefined ? null : toApiKey(row);
}

/** Deletes all keys of an owner and returns them as they were. */
export async function deleteKeys(tx: Db, { select, from }: KeyStatements, ownerId: string): Promise<ApiKey[]> {
  const rows = await tx.query<KeyRow>(`${select} ${from} where k.owner_id = $1 order by k.id`, [ownerId]);
  await tx.query('delete from api_keys where owner_id = $1', [ownerId]);
  return rows.map(toApiKey);
}

/** Ids of the keys of an owner that are bound to a tenant and not revoked. */
export async function keysInTenant(tx: Db, ownerId: string, tenant: string): Promise<readonly string[]> {
  const rows = await tx.query<{ id: string }>(
    'select cast(id as text) as id from api_keys where owner_id = $1 and tenant_id = $2 and revoked_at is null order by id',
    [ownerId, tenant],
  );
  return rows.map(({ id }) => id);
}

/** Prefixes of usable keys that are bound to no tenant, of the newest keys. */
export async function unboundKeys(db: Db, now: Date): Promise<readonly string[]> {
  const rows = await db.query<{ prefix: string }>(
    `select prefix from (select * from api_keys order by id desc limit ${UNBOUND_LOOKED_AT}) newest
     where tenant_id is null and revoked_at is null and (expires_at is null or expires_at > $1) order by id limit 1000`,
    [now],
  );
  return rows.map(({ prefix }) => prefix);
}

/** An owner as the users' table knows it. */
export interface LockedOwner {
  /** As it is stored there: a UUID may be given in upper case, a number with leading zeros. */
  readonly id: string;
  readonly is_active: boolean;
}

/** Null when there is no such user. */
export async function lockOwner(tx: Db, statements: KeyStatements, ownerId: string): Promise<LockedOwner | null> {
  const [row] = await tx.query<LockedOwner>(statements.lockOwner, [ownerId]);
  return row === undefined ? null : { id: row.id, is_active: isTrue(row.is_active) };
}

export type NewKey = Pick<
  ApiKey,
  'id' | 'owner_id' | 'tenant_id' | 'name' | 'prefix' | 'scopes' | 'rate_limit' | 'quota' | 'created_at' | 'expires_at'
> & {
  readonly digest: string;
};

export async function insertKey(tx: Db, key: NewKey): Promise<void> {
  await tx.query(
    `insert into api_keys (id, owner_id, tenant_id, name, prefix, digest, scopes, rate_limit, quota, created_at, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    [
      key.id,
      key.owner_id,
      key.tenant_id,
      key.name,
      key.prefix,
      key.digest,
      key.scopes,
      key.rate_limit,
      key.quota,
      key.created_at,
      key.expires_at,
    ],
  );
}

export type KeyChanges = Partial<
  Pick<
    ApiKey,
    | 'tenant_id'
    | 'name'
    | 'scopes'
    | 'rate_limit'
    | 'quota'
    | 'expires_at'
    | 'revoked_at'
    | 'revoked_reason'
    | 'previous_expires_at'
    | 'previous_last_used_at'
  >
> & { readonly digest?: string; readonly previous_digest?: string | null };

/** Check and write are one statement: false when the key is revoked (or gone), and nothing was written. */
export async function changeUnrevokedKey(tx: Db, id: string, changes: KeyChanges): Promise<boolean> {
  const names = Object.keys(changes);
  const sets = names.map((name, index) => `${name} = $${index + 2}`);
  const text = `update api_keys set ${sets.join(', ')} where id = $1 and revoked_at is null returning id`;
  return (await tx.query(text, [id, ...Object.values(changes)])).length === 1;
}

/** A new secret. With a grace, the one it replaces goes on working beside it until `graceUntil`. */
export async function replaceSecret(tx: Db, id: string, digest: string, graceUntil: Date | null, changes: KeyChanges): Promise<boolean> {
  const names = Object.keys(changes);
  const kept = (column: string) => (graceUntil === null ? 'null' : column);
  const sets = [
    `previous_digest = ${kept('digest')}`,
    `previous_last_used_at = ${kept('last_used_at')}`,
    'digest = $2',
    'previous_expires_at = $3',
    ...names.map((name, index) => `${name} = $${index + 4}`),
  ];
  const text = `update api_keys set ${sets.join(', ')} where id = $1 and revoked_at is null returning id`;
  return (await tx.query(text, [id, digest, graceUntil, ...Object.values(changes)])).length === 1;
}

/** The digest of the same secret under another pepper. */
export interface DigestUpgrade {
  readonly id: string;
  readonly from: string;
  readonly to: string;
}

/** Unless the key has another secret by now. */
export async function replaceDigest(db: Db, { id, from, to }: DigestUpgrade): Promise<void> {
  await db.query('update api_keys set digest = $1 where id = $2 and digest = $3', [to, id, from]);
}

export interface KeyFilter {
  readonly ownerId?: string | undefined;
  readonly state?: KeyState | undefined;
}

/** A page, newest first: those older than the last key of the page before. */
export async function listKeys(
  db: Db,
  statements: KeyStatements,
  filter: KeyFilter & { readonly after?: ApiKey | undefined },
  { now, limit }: { readonly now: Date; readonly limit: number },
): Promise<ApiKey[]> {
  const { where, parameters } = conditionsOf(statements, filter, now);
  const rows = await db.query<KeyRow>(
    `${statements.select} ${statements.from}${where} order by k.created_at desc, k.id desc limit $${parameters.length + 1}`,
    [...parameters, limit],
  );
  return rows.map(toApiKey);
}

export async function countKeys(db: Db, statements: KeyStatements, filter: KeyFilter, now: Date): Promise<number> {
  const { where, parameters } = conditionsOf(statements, filter, now);
  const [row] = await db.query<{ count: number | bigint }>(`select count(*) as count ${statements.from}${where}`, parameters);
  return Number(row?.count ?? 0);
}

function conditionsOf(
  { ownerIsActive }: KeyStatements,
  { state, ownerId, after }: KeyFilter & { readonly after?: ApiKey | undefined },
  now: Date,
): { where: string; parameters: unknown[] } {
  const parameters: unknown[] = [];
  const parameter = (value: unknown) => `$${parameters.push(value)}`;
  const conditions: string[] = [];
  if (ownerId !== undefined) conditions.push(`k.owner_id = ${parameter(ownerId)}`);
  if (after !== undefined) conditions.push(`(k.created_at, k.id) < (${parameter(after.created_at)}, ${parameter(after.id)})`);
  if (state !== undefined) conditions.push(...stateConditions(ownerIsActive, state, now, parameter));
  return { where: conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`, parameters };
}

/** The same decisions as `keyState`. */
function stateConditions(ownerIsActive: string, state: KeyState, now: Date, parameter: (value: unknown) => string): string[] {
  if (state === 'revoked') return ['k.revoked_at is not null'];
  if (state === 'expired') return ['k.revoked_at is null', `k.expires_at <= ${parameter(now)}`];
  const unexpired = `(k.expires_at is null or k.expires_at > ${parameter(now)})`;
  return ['k.revoked_at is null', unexpired, `${ownerIsActive} is ${state === 'active' ? '' : 'not '}true`];
}

// Rows that another transaction has locked are skipped (PostgreSQL): a late timestamp must not wait for, or deadlock with, a revoke. The condition on
// the old value keeps it to one write a minute per key whatever the number of processes. A use of the previous secret that waited while a
// rotation ended that secret is dropped.
const WRITE_LAST_USED: Readonly<Record<Dialect, string>> = {
  postgres: `
update api_keys k set
  last_used_at = case when k.last_used_at is null or k.last_used_at <= v.before then coalesce(v.used_at, k.last_used_at) else k.last_used_at end,
  previous_last_used_at = case when k.previous_expires_at is null then null else coalesce(v.previous_used_at, k.previous_last_used_at) end
from (
  select h.id, u.used_at, u.previous_used_at, u.before
  from unnest(cast($1 as uuid[]), cast($2 as timestamptz[]), cast($3 as timestamptz[]), cast($4 as timestamptz[])) as u(id, used_at, previous_used_at, before)
  join api_keys h on h.id = u.id
  where h.last_used_at is null or h.last_used_at <= u.before
    or (u.previous_used_at is not null and (h.previous_last_used_at is null or h.previous_last_used_at <= u.before))
  for update of h skip locked
) v
where k.id = v.id`,
  sqlite: `
update api_keys set
  last_used_at = case when last_used_at is null or last_used_at <= v.before then coalesce(v.used_at, last_used_at) else last_used_at end,
  previous_last_used_at = case when previous_expires_at is null then null else coalesce(v.previous_used_at, previous_last_used_at) end
from (
  select value ->> 0 as id, value ->> 1 as used_at, value ->> 2 as previous_used_at, value ->> 3 as before from json_each($1)
) v
where api_keys.id = v.id and (api_keys.last_used_at is null or api_keys.last_used_at <= v.before
  or (v.previous_used_at is not null and (api_keys.previous_last_used_at is null or api_keys.previous_last_used_at <= v.before)))`,
};

/** When a key, or its previous secret, was used; null: nothing new to write. */
export interface PendingUse {
  usedAt: Date | null;
  previousUsedAt: Date | null;
}

export async function writeLastUsed(db: Db, uses: ReadonlyMap<string, PendingUse>, everyMs: number): Promise<void> {
  const rows = [...uses].map(([id, { usedAt, previousUsedAt }]) => {
    const at = usedAt ?? previousUsedAt ?? new Date(0);
    return { id, usedAt, previousUsedAt, before: new Date(at.getTime() - everyMs) };
  });
  const parameters =
    db.dialect === 'postgres'
      ? [rows.map((row) => row.id), rows.map((row) => row.usedAt), rows.map((row) => row.previousUsedAt), rows.map((row) => row.before)]
      : [JSON.stringify(rows.map((row) => [row.id, row.usedAt, row.previousUsedAt, row.before]))];
  await db.query(WRITE_LAST_USED[db.dialect], parameters);
}

function toApiKey(row: KeyRow): ApiKey {
  return { ...row, owner_is_active: isTrue(row.owner_is_active) };
}
