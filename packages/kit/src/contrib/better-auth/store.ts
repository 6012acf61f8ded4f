// SQL over the tables of better-auth: camelCase names in quotes, timestamps as ISO text on SQLite.
import { isTrue } from '../../auth/people/user-table.ts';
import type { Db } from '../../db/engine/db.ts';

export interface FoundSession {
  readonly session_id: string;
  readonly created_at: string | Date;
  readonly impersonated_by: string | null;
  readonly id: string;
  readonly username: string;
  readonly email: string;
  readonly is_staff: unknown;
  readonly is_superuser: unknown;
  /** Null unless the user is a member. */
  readonly organization: string | null;
  /** A comma list. */
  readonly roles: string | null;
  /** 1: nobody works in the organization for now. */
  readonly suspended: number;
}

export interface FoundMembership {
  readonly organization: string;
  /** A comma list. */
  readonly roles: string;
  readonly isSuspended: boolean;
}

/** By id, else by slug: two lookups by unique index. The id comes first, or a slug could take over the id of another organization. */
const organizationId = (placeholder: string): string =>
  `(select o."id" from "organization" o where o."id" = ${placeholder}), (select o."id" from "organization" o where o."slug" = ${placeholder})`;

const MEMBER = `m."organizationId" as organization, m."role" as roles,
  case when exists (select 1 from better_auth_suspensions x where x.organization_id = m."organizationId") then 1 else 0 end as suspended`;

const FACTS = `s."id" as session_id, s."createdAt" as created_at, s."impersonatedBy" as impersonated_by,
  u.id, u.username, u.email, u.is_staff, u.is_superuser, ${MEMBER}`;

/** Session, user, ban and membership in one statement: whatever ends one of them ends the login with the next request. */
const BY_TOKEN = `select ${FACTS} from "session" s
  join better_auth_users u on u.id = s."userId"
  left join "member" m on m."userId" = u.id
    and m."organizationId" = coalesce(case when cast($3 as text) is null then s."activeOrganizationId" end, ${organizationId('cast($3 as text)')})
  where s."token" = $1 and s."expiresAt" > $2 and u.is_active`;

const BY_IDS = `select ${FACTS} from "session" s
  join better_auth_users u on u.id = s."userId"
  left join "member" m on m."userId" = u.id and m."organizationId" = s."activeOrganizationId"
  where s."expiresAt" > $2 and u.is_active and s."id" `;

const MEMBERSHIP = `select ${MEMBER} from "member" m
  where m."userId" = $1 and m."organizationId" = coalesce(${organizationId('cast($2 as text)')})`;

export async function findSession(db: Db, token: string, organization: string | null): Promise<FoundSession | null> {
  const [found] = await db.query<FoundSession>(BY_TOKEN, [token, stored(db, db.clock.now()), organization]);
  return found !== undefined && (await isByActiveStaff(db, found)) ? found : null;
}

/**
 * A session in which staff act as the user ends with the staff member, whose own sessions were deleted: this one is the user's. A separate statement
 * for these few sessions: in the statement of all sessions it made PostgreSQL plan for 1.2 ms instead of 0.7 ms (busy machine).
 */
async function isByActiveStaff(db: Db, { impersonated_by: staff }: FoundSession): Promise<boolean> {
  return staff === null || (await isActiveUser(db, staff));
}

export async function findSessions(db: Db, ids: readonly string[]): Promise<FoundSession[]> {
  const [condition, list] =
    db.dialect === 'postgres' ? ['= any(cast($1 as text[]))', ids] : ['in (select value from json_each($1))', JSON.stringify(ids)];
  const sessions = await db.query<FoundSession>(`${BY_IDS}${condition}`, [list, stored(db, db.clock.now())]);
  const open: FoundSession[] = [];
  for (const session of sessions) if (await isByActiveStaff(db, session)) open.push(session);
  return open;
}

/** The user's membership in the organization with this id or slug. */
export async function findMembership(db: Db, userId: string, organization: string): Promise<FoundMembership | null> {
  const [found] = await db.query<FoundRow>(MEMBERSHIP, [userId, organization]);
  return found === undefined ? null : membershipOf(found);
}

interface FoundRow {
  readonly organization: string;
  readonly roles: string;
  readonly suspended: number;
}

export function membershipOf({ organization, roles, suspended }: FoundRow): FoundMembership {
  return { organization, roles, isSuspended: suspended === 1 };
}

/** What these users are in these organizations (by id), in the order given; null where the user is not a member. */
export async function findMemberships(
  db: Db,
  asked: readonly { readonly userId: string; readonly tenant: string }[],
): Promise<readonly (FoundMembership | null)[]> {
  const list = db.dialect === 'postgres' ? 'json_array_elements(cast($1 as json)) as a (value)' : 'json_each($1) as a';
  const rows = await db.query<FoundRow & { readonly person: string }>(
    `select m."userId" as person, ${MEMBER}
      from ${list} join "member" m on m."userId" = a.value ->> 0 and m."organizationId" = a.value ->> 1`,
    [JSON.stringify(asked.map(({ userId, tenant }) => [userId, tenant]))],
  );
  const found = new Map(rows.map(({ person, ...row }) => [JSON.stringify([person, row.organization]), membershipOf(row)]));
  return asked.map(({ userId, tenant }) => found.get(JSON.stringify([userId, tenant])) ?? null);
}

/** Ids of the organizations that the user is a member of, so many at most. */
export async function organizationsOf(db: Db, userId: string, limit: number): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>(
    `select m."organizationId" as id from "member" m where m."userId" = $1 order by m."organizationId" limit ${limit}`,
    [userId],
  );
  return rows.map(({ id }) => id);
}

/** Members of these organizations, and whether they have a role. */
export async function membersOf(
  db: Db,
  ids: readonly string[],
  role: string,
): Promise<readonly { readonly tenant: string; readonly userId: string; readonly isOwner: boolean }[]> {
  const [among, list] =
    db.dialect === 'postgres' ? ['= any(cast($1 as text[]))', ids] : ['in (select value from json_each($1))', JSON.stringify(ids)];
  const rows = await db.query<{ tenant: string; user_id: string; roles: string }>(
    `select "organizationId" as tenant, "userId" as user_id, "role" as roles from "member" where "organizationId" ${among} order by "createdAt", "id"`,
    [list],
  );
  return rows.map(({ tenant, user_id: userId, roles }) => ({ tenant, userId, isOwner: roles.split(',').includes(role) }));
}

/** Those of these organizations that nobody works in for now. */
export async function suspendedAmong(db: Db, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const [among, list] =
    db.dialect === 'postgres' ? ['= any(cast($1 as text[]))', ids] : ['in (select value from json_each($1))', JSON.stringify(ids)];
  const rows = await db.query<{ id: string }>(`select organization_id as id from better_auth_suspensions where organization_id ${among}`, [
    list,
  ]);
  return new Set(rows.map(({ id }) => id));
}

/** Locks an organization; false where there is none. */
export async function lockOrganization(tx: Db, id: string): Promise<boolean> {
  const lock = tx.dialect === 'postgres' ? ' for no key update' : '';
  return (await tx.query(`select "id" from "organization" where "id" = $1${lock}`, [id])).length === 1;
}

/** A timestamp as better-auth stores it. */
export function stored(db: Db, at: Date): string | Date {
  return db.dialect === 'sqlite' ? at.toISOString() : at;
}

/** Takes changes that were not passed on yet, so many at most: what takes them passes them on in the same transaction. */
export async function takeUserChanges(tx: Db, limit: number): Promise<readonly string[]> {
  const rows = await tx.query<{ user_id: string }>(
    `delete from better_auth_user_changes where user_id in (select user_id from better_auth_user_changes order by user_id limit ${limit}) returning user_id`,
  );
  return rows.map(({ user_id }) => user_id);
}

/** The same of users who have left organizations. */
export async function takeMemberChanges(tx: Db, limit: number): Promise<readonly { readonly userId: string; readonly tenant: string }[]> {
  const rows = await tx.query<{ user_id: string; organization_id: string }>(
    `delete from better_auth_member_changes where (user_id, organization_id) in
      (select user_id, organization_id from better_auth_member_changes order by user_id, organization_id limit ${limit})
      returning user_id, organization_id`,
  );
  return rows.map(({ user_id, organization_id }) => ({ userId: user_id, tenant: organization_id }));
}

/** Those of these organizations that do not exist any more. */
export async function deletedOrganizations(tx: Db, ids: ReadonlySet<string>): Promise<readonly string[]> {
  const deleted: string[] = [];
  for (const id of ids) if ((await tx.query('select 1 as found from "organization" where "id" = $1', [id])).length === 0) deleted.push(id);
  return deleted;
}

/** Ends the sessions of a user. */
export async function deleteSessions(db: Db, userId: string): Promise<void> {
  await db.query('delete from "session" where "userId" = $1', [userId]);
}

/** Ends the sessions in which these users act as somebody else. */
export async function deleteImpersonations(tx: Db, userIds: readonly string[]): Promise<void> {
  for (const id of userIds) await tx.query('delete from "session" where "impersonatedBy" = $1', [id]);
}

/** False for a user that is banned, or that SCIM has deactivated. */
export async function isActiveUser(db: Db, userId: string): Promise<boolean> {
  const [found] = await db.query('select id from better_auth_users where id = $1 and is_active', [userId]);
  return found !== undefined;
}

/** Of an instance with the plugin `twoFactor()`. */
export async function hasTwoFactors(db: Db, userId: string): Promise<boolean> {
  const [found] = await db.query<{ enabled: unknown }>('select "twoFactorEnabled" as enabled from "user" where "id" = $1', [userId]);
  return isTrue(found?.enabled);
}

/** An invitation that is still open. */
export async function takeOverInvitation(db: Db, id: string, inviterId: string): Promise<void> {
  await db.query(`update "invitation" set "inviterId" = $2 where "id" = $1 and "status" = 'pending'`, [id, inviterId]);
}

/** False when the code was used before. */
export async function insertUsedCode(db: Db, userId: string, digest: string, now: Date): Promise<boolean> {
  const inserted = await db.query(
    'insert into better_auth_used_codes (user_id, code_digest, used_at) values ($1, $2, $3) on conflict do nothing returning user_id',
    [userId, digest, now],
  );
  return inserted.length === 1;
}

export async function deleteUsedCodes(db: Db, before: Date): Promise<void> {
  await db.query('delete from better_auth_used_codes where used_at < $1', [before]);
}
