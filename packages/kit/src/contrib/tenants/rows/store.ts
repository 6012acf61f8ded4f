import type { TenantUser } from '../../../app/tenants/tenant-source.ts';
import type { Db } from '../../../db/engine/db.ts';
import { findBy, insert, list, remove, update } from '../../../db/rows/repository.ts';
import type { Row } from '../../../db/declare/rows.ts';
import { isUuid } from '../../../db/values/uuid.ts';
import { tenantInvitations, tenantMembers, tenants } from '../models.ts';

export type TenantRow = Row<typeof tenants>;
export type MemberRow = Row<typeof tenantMembers>;
export type InvitationRow = Row<typeof tenantInvitations>;

/** Many in one statement, or what stands for a list in `in`. */
const listSql = (db: Db, place: string): string =>
  db.dialect === 'postgres' ? `json_array_elements(cast(${place} as json)) as a (value)` : `json_each(${place}) as a`;

/**
 * Holds the row until the end of the transaction. Every change of members and invitations begins with it, so that owners and seats are counted one after
 * the other.
 */
export async function lockTenant(tx: Db, id: string): Promise<TenantRow | null> {
  if (!isUuid(id)) return null;
  const lock = tx.dialect === 'postgres' ? ' for no key update' : '';
  const rows = await tx.query(`select id from tenants where id = $1${lock}`, [id]);
  return rows.length === 0 ? null : ((await findBy(tx, tenants, { id })) ?? null);
}

export const insertTenant = (tx: Db, tenant: TenantRow): Promise<TenantRow> => insert(tx, tenants, tenant);

export async function updateTenantRow(tx: Db, id: string, changes: Partial<TenantRow>): Promise<TenantRow> {
  return (await update(tx, tenants, id, changes)) as TenantRow;
}

/** Tenants whose grace is over, by id: the caller locks each. */
export async function dueTenants(db: Db, now: Date, limit: number): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>(
    `select id from tenants where deletes_at is not null and deletes_at <= $1 order by deletes_at limit ${limit}`,
    [now],
  );
  return rows.map(({ id }) => id);
}

export async function findMember(db: Db, tenantId: string, userId: string): Promise<MemberRow | null> {
  return (await findBy(db, tenantMembers, { tenant_id: tenantId, user_id: userId })) ?? null;
}

export const insertMember = (tx: Db, member: MemberRow): Promise<MemberRow> => insert(tx, tenantMembers, member);

export async function setRoles(tx: Db, id: string, roles: readonly string[]): Promise<MemberRow> {
  return (await update(tx, tenantMembers, id, { roles: [...roles] })) as MemberRow;
}

export const deleteMember = (tx: Db, id: string): Promise<boolean> => remove(tx, tenantMembers, id);

export async function memberIdsOf(db: Db, tenantId: string): Promise<readonly string[]> {
  const rows = await db.query<{ user_id: string }>('select user_id from tenant_members where tenant_id = $1', [tenantId]);
  return rows.map(({ user_id }) => user_id);
}

export async function membershipsOf(db: Db, userId: string): Promise<readonly MemberRow[]> {
  return list(db, tenantMembers, { where: { user_id: userId } });
}

export async function countMembers(db: Db, tenantId: string): Promise<number> {
  const [row] = await db.query<{ members: number | bigint }>('select count(*) as members from tenant_members where tenant_id = $1', [
    tenantId,
  ]);
  return Number(row?.members);
}

/** Invitations that can still be accepted. */
export async function countInvitations(db: Db, tenantId: string, now: Date): Promise<number> {
  const [row] = await db.query<{ open: number | bigint }>(
    'select count(*) as open from tenant_invitations where tenant_id = $1 and expires_at > $2',
    [tenantId, now],
  );
  return Number(row?.open);
}

/** SQL: the roles of a member, a row each. */
const rolesSql = (db: Db, alias: string): string =>
  db.dialect === 'postgres' ? `unnest(${alias}.roles) as r (value)` : `json_each(${alias}.roles) as r`;

/** Members of these tenants, and whether they have a role. */
export async function membersOfTenants(
  db: Db,
  tenantIds: readonly string[],
  role: string,
): Promise<readonly { readonly tenant: string; readonly userId: string; readonly isOwner: boolean }[]> {
  const rows = await db.query<{ tenant: string; user_id: string; has: number }>(
    `select cast(m.tenant_id as text) as tenant, m.user_id, case when exists (select 1 from ${rolesSql(db, 'm')} where r.value = $2) then 1 else 0 end as has
     from ${listSql(db, '$1')} join tenant_members m on m.tenant_id = ${db.dialect === 'postgres' ? "cast(a.value #>> '{}' as uuid)" : 'a.value'}
     order by m.id`,
    [JSON.stringify(tenantIds), role],
  );
  return rows.map(({ tenant, user_id: userId, has }) => ({ tenant, userId, isOwner: has === 1 }));
}

/** Users with the role in the tenant, except one. */
export async function usersWithRole(db: Db, tenantId: string, role: string, except: string): Promise<readonly string[]> {
  const rows = await db.query<{ user_id: string }>(
    `select m.user_id from tenant_members m where m.tenant_id = $1 and m.user_id <> $3 and exists (select 1 from ${rolesSql(db, 'm')} where r.value = $2)`,
    [tenantId, role, except],
  );
  return rows.map(({ user_id }) => user_id);
}

/** How many tenants the user has the role in, those that are being deleted excepted. */
export async function countTenantsWithRole(db: Db, userId: string, role: string): Promise<number> {
  const [row] = await db.query<{ owned: number | bigint }>(
    `select count(*) as owned from tenant_members m join tenants t on t.id = m.tenant_id
     where m.user_id = $1 and t.state = 'active' and exists (select 1 from ${rolesSql(db, 'm')} where r.value = $2)`,
    [userId, role],
  );
  return Number(row?.owned);
}

/** Ids of the active tenants that the user is a member of, so many at most. */
export async function activeTenantsOf(db: Db, userId: string, limit: number): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>(
    `select cast(t.id as text) as id from tenant_members m join tenants t on t.id = m.tenant_id
     where m.user_id = $1 and t.state = 'active' order by t.id limit ${limit}`,
    [userId],
  );
  return rows.map(({ id }) => id);
}

/** Those of these tenants that nobody works in for now, by id. */
export async function suspendedAmong(db: Db, tenantIds: readonly string[]): Promise<ReadonlySet<string>> {
  const ids = tenantIds.filter((id) => isUuid(id));
  if (ids.length === 0) return new Set();
  const [among, list] =
    db.dialect === 'postgres' ? ['= any(cast($1 as uuid[]))', ids] : ['in (select value from json_each($1))', JSON.stringify(ids)];
  const rows = await db.query<{ id: string }>(
    `select cast(id as text) as id from tenants where (suspended_at is not null or state = 'deleting') and id ${among}`,
    [list],
  );
  return new Set(rows.map(({ id }) => id));
}

/** What a user is in a tenant. */
interface FoundMember {
  readonly roles: readonly string[];
  readonly isSuspended: boolean;
}

interface FoundRow {
  readonly name: string;
  readonly tenant: string;
  readonly roles: string;
  readonly suspended: number;
}

const ROLES_JSON = { postgres: 'cast(to_json(m.roles) as text)', sqlite: 'm.roles' } as const;

/** The user's memberships in the active tenants with these ids or slugs: two lookups by unique index for each name. */
export async function findNamed(
  db: Db,
  userId: string,
  names: readonly string[],
): Promise<ReadonlyMap<string, FoundMember & { readonly tenant: string }>> {
  const wanted = names.map((name) => ({ name, stored: name.toLowerCase() }));
  const asked = JSON.stringify(wanted.map(({ name, stored }) => [name, stored, isUuid(stored) ? stored : null]));
  const id = db.dialect === 'postgres' ? 'cast(a.value ->> 2 as uuid)' : 'a.value ->> 2';
  const rows = await db.query<FoundRow>(
    `select a.value ->> 0 as name, cast(t.id as text) as tenant, ${ROLES_JSON[db.dialect]} as roles, ${SUSPENDED} from ${listSql(db, '$1')}
     join tenants t on t.id = ${id} or t.slug = a.value ->> 1
     join tenant_members m on m.tenant_id = t.id and m.user_id = $2 where t.state = 'active'`,
    [asked, userId],
  );
  return new Map(rows.map(({ name, tenant, ...row }) => [name, { tenant, ...memberOf(row) }]));
}

/** What these users are in these tenants, in the order given; null where the user is not a member, or the tenant is not active. */
export async function findRoles(db: Db, asked: readonly TenantUser[]): Promise<readonly (FoundMember | null)[]> {
  const list = asked.filter(({ tenant }) => isUuid(tenant));
  if (list.length === 0) return asked.map(() => null);
  const id = db.dialect === 'postgres' ? 'cast(a.value ->> 1 as uuid)' : 'a.value ->> 1';
  const rows = await db.query<{ user_id: string; tenant: string; roles: string; suspended: number }>(
    `select m.user_id, cast(t.id as text) as tenant, ${ROLES_JSON[db.dialect]} as roles, ${SUSPENDED} from ${listSql(db, '$1')}
     join tenant_members m on m.user_id = a.value ->> 0 and m.tenant_id = ${id}
     join tenants t on t.id = m.tenant_id where t.state = 'active'`,
    [JSON.stringify(list.map(({ userId, tenant }) => [userId, tenant.toLowerCase()]))],
  );
  const found = new Map(rows.map(({ user_id, tenant, ...row }) => [`${tenant} ${user_id}`, memberOf(row)]));
  return asked.map(({ userId, tenant }) => found.get(`${tenant.toLowerCase()} ${userId}`) ?? null);
}

const SUSPENDED = 'case when t.suspended_at is null then 0 else 1 end as suspended';

function memberOf({ roles, suspended }: Pick<FoundRow, 'roles' | 'suspended'>): FoundMember {
  return { roles: parsedRoles(roles), isSuspended: suspended === 1 };
}

/** SQLite knows the type of the column and reads it as a list. */
function parsedRoles(roles: string | readonly string[]): readonly string[] {
  return typeof roles === 'string' ? (JSON.parse(roles) as readonly string[]) : roles;
}

export const insertInvitation = (tx: Db, invitation: InvitationRow): Promise<InvitationRow> => insert(tx, tenantInvitations, invitation);

export async function findInvitation(db: Db, id: string): Promise<InvitationRow | null> {
  return isUuid(id) ? ((await findBy(db, tenantInvitations, { id })) ?? null) : null;
}

export async function findInvitationByDigest(db: Db, digest: string): Promise<InvitationRow | null> {
  return (await findBy(db, tenantInvitations, { token_digest: digest })) ?? null;
}

export async function findInvitationTo(db: Db, tenantId: string, email: string): Promise<InvitationRow | null> {
  return (await findBy(db, tenantInvitations, { tenant_id: tenantId, email })) ?? null;
}

export async function updateInvitation(tx: Db, id: string, changes: Partial<InvitationRow>): Promise<InvitationRow | null> {
  return (await update(tx, tenantInvitations, id, changes)) ?? null;
}

export const deleteInvitation = (tx: Db, id: string): Promise<boolean> => remove(tx, tenantInvitations, id);

/** Those that a user sent: in one tenant, or in all. */
export async function invitationsBy(db: Db, userId: string, tenantId?: string): Promise<readonly InvitationRow[]> {
  return list(db, tenantInvitations, { where: { invited_by: userId, ...(tenantId === undefined ? {} : { tenant_id: tenantId }) } });
}

export async function deleteExpiredInvitations(tx: Db, tenantId: string, now: Date): Promise<void> {
  await tx.query('delete from tenant_invitations where tenant_id = $1 and expires_at <= $2', [tenantId, now]);
}
