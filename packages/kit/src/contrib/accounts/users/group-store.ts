import type { Db } from '../../../db/engine/db.ts';
import { isUuid } from '../../../db/values/uuid.ts';

export interface GroupRow {
  readonly id: string;
  /** Empty: of no tenant. */
  readonly tenant_key: string;
  readonly name: string;
  /** The issuer whose tokens decide who is a member; empty: nobody else. */
  readonly managed_by: string;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export interface MemberRow {
  readonly user_id: string;
  readonly username: string;
  readonly created_at: Date;
}

const GROUP = 'id, tenant_key, name, managed_by, created_at, updated_at';

export async function findGroupById(db: Db, id: string): Promise<GroupRow | null> {
  const [row] = await db.query<GroupRow>(`select ${GROUP} from groups where id = $1`, [id]);
  return row ?? null;
}

/** A tenant's own group comes before one of no tenant. */
export async function findGroupByName(db: Db, name: string, tenantKey: string | null): Promise<GroupRow | null> {
  const [row] = await db.query<GroupRow>(
    `select ${GROUP} from groups where name = $1 and tenant_key in ($2, '') order by tenant_key desc limit 1`,
    [name, tenantKey ?? ''],
  );
  return row ?? null;
}

export async function lockGroup(tx: Db, id: string): Promise<GroupRow | null> {
  const lock = tx.dialect === 'postgres' ? ' for update' : '';
  const [row] = await tx.query<GroupRow>(`select ${GROUP} from groups where id = $1${lock}`, [id]);
  return row ?? null;
}

/** Null when the tenant has a group of this name. */
export async function insertGroup(tx: Db, group: GroupRow): Promise<GroupRow | null> {
  const { id, tenant_key, name, managed_by, created_at, updated_at } = group;
  const [row] = await tx.query<GroupRow>(
    `insert into groups (${GROUP}) values ($1, $2, $3, $4, $5, $6) on conflict do nothing returning ${GROUP}`,
    [id, tenant_key, name, managed_by, created_at, updated_at],
  );
  return row ?? null;
}

export async function renameGroupRow(tx: Db, id: string, name: string, now: Date): Promise<GroupRow> {
  const [row] = await tx.query<GroupRow>(`update groups set name = $2, updated_at = $3 where id = $1 returning ${GROUP}`, [id, name, now]);
  return row as GroupRow;
}

export async function deleteGroupRow(tx: Db, id: string): Promise<void> {
  await tx.query('delete from groups where id = $1', [id]);
}

/** A page by tenant and name, after this group. */
export async function listGroups(
  db: Db,
  after: Pick<GroupRow, 'tenant_key' | 'name'>,
  limit: number,
): Promise<(GroupRow & { readonly members: number })[]> {
  const rows = await db.query<GroupRow & { members: number | bigint }>(
    `select ${GROUP}, (select count(*) from group_members m where m.group_id = g.id) as members
     from groups g where (tenant_key, name) > ($1, $2) order by tenant_key, name limit $3`,
    [after.tenant_key, after.name, limit],
  );
  return rows.map((row) => Object.assign(row, { members: Number(row.members) }));
}

export async function insertMember(tx: Db, groupId: string, userId: string, now: Date): Promise<boolean> {
  const rows = await tx.query(
    'insert into group_members (group_id, user_id, created_at) values ($1, $2, $3) on conflict do nothing returning user_id',
    [groupId, userId, now],
  );
  return rows.length === 1;
}

export async function deleteMember(tx: Db, groupId: string, userId: string): Promise<boolean> {
  return (
    (await tx.query('delete from group_members where group_id = $1 and user_id = $2 returning user_id', [groupId, userId])).length === 1
  );
}

export async function membersOf(db: Db, groupId: string, limit: number): Promise<MemberRow[]> {
  return db.query<MemberRow>(
    `select m.user_id, u.username, m.created_at from group_members m join users u on u.id = m.user_id
     where m.group_id = $1 order by u.username limit $2`,
    [groupId, limit],
  );
}

/** Groups of the tenant and groups of no tenant. */
export async function groupIdsOf(db: Db, userId: string, tenantKey: string | null): Promise<readonly string[]> {
  const rows = await db.query<{ group_id: string }>(
    `select m.group_id from group_members m join groups g on g.id = m.group_id
     where m.user_id = $1 and g.tenant_key in ($2, '') order by m.group_id`,
    [userId, tenantKey ?? ''],
  );
  return rows.map(({ group_id }) => group_id);
}

/** Of each in a tenant, with one statement. */
export async function groupIdsOfMany(
  db: Db,
  asked: readonly { readonly userId: string; readonly tenantKey: string | null }[],
): Promise<readonly (readonly string[])[]> {
  const ids = [...new Set(asked.map(({ userId }) => userId).filter(isUuid))];
  const [among, list] =
    db.dialect === 'postgres' ? ['= any(cast($1 as uuid[]))', ids] : ['in (select value from json_each($1))', JSON.stringify(ids)];
  const rows = await db.query<{ user_id: string; group_id: string; tenant_key: string }>(
    `select m.user_id, m.group_id, g.tenant_key from group_members m join groups g on g.id = m.group_id where m.user_id ${among} order by m.group_id`,
    [list],
  );
  const ofUser = Map.groupBy(rows, ({ user_id }) => user_id);
  return asked.map(({ userId, tenantKey }) => {
    const found = ofUser.get(userId) ?? [];
    return found.filter(({ tenant_key }) => tenant_key === '' || tenant_key === tenantKey).map(({ group_id }) => group_id);
  });
}

export async function hasActiveMember(db: Db, groupId: string): Promise<boolean> {
  const rows = await db.query(
    'select 1 as found from group_members m join users u on u.id = m.user_id where m.group_id = $1 and u.is_active = $2 limit 1',
    [groupId, true],
  );
  return rows.length > 0;
}

export async function allGroupIdsOf(db: Db, userId: string): Promise<readonly string[]> {
  const rows = await db.query<{ group_id: string }>('select group_id from group_members where user_id = $1 order by group_id', [userId]);
  return rows.map(({ group_id }) => group_id);
}

export async function groupsOfUser(db: Db, userId: string, limit: number): Promise<Pick<GroupRow, 'id' | 'name'>[]> {
  return db.query<Pick<GroupRow, 'id' | 'name'>>(
    'select g.id, g.name from group_members m join groups g on g.id = m.group_id where m.user_id = $1 order by g.name limit $2',
    [userId, limit],
  );
}

type NamedGroup = Pick<GroupRow, 'id' | 'name'>;

/** The user's groups among those that the issuer manages. */
export function memberships(db: Db, userId: string, issuer: string): Promise<NamedGroup[]> {
  return db.query<NamedGroup>(
    'select g.id, g.name from group_members m join groups g on g.id = m.group_id where m.user_id = $1 and g.managed_by = $2',
    [userId, issuer],
  );
}

/** Makes the user a member of exactly these groups, of those that the issuer manages; returns the memberships. Names of other groups have no effect. */
export async function setMemberships(tx: Db, userId: string, issuer: string, names: readonly string[], now: Date): Promise<NamedGroup[]> {
  const managed = await tx.query<NamedGroup>('select id, name from groups where managed_by = $1', [issuer]);
  const wanted = managed.filter(({ name }) => names.includes(name));
  const kept = new Set(wanted.map(({ id }) => id));
  const before = await memberships(tx, userId, issuer);
  for (const { id } of before) if (!kept.has(id)) await deleteMember(tx, id, userId);
  for (const { id } of wanted) await insertMember(tx, id, userId, now);
  return wanted;
}

/** By the id of a group; a group without members is not in it. */
export async function countMembers(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
  if (ids.length === 0) return new Map();
  const listed = ids.map((_, index) => `$${index + 1}`).join(', ');
  const rows = await db.query<{ group_id: string; members: number | bigint }>(
    `select group_id, count(*) as members from group_members where group_id in (${listed}) group by group_id`,
    ids,
  );
  return new Map(rows.map(({ group_id, members }) => [group_id, Number(members)]));
}
