import type { User } from '../../../auth/people/principal.ts';
import type { Db } from '../../../db/engine/db.ts';
import { isEmailLogin } from './login-name.ts';
import { skipLocked } from '../../../work/lock-patience.ts';

export interface UserRow extends User {
  /** null: the user cannot log in with a password. */
  readonly password_hash: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export interface SessionRow {
  readonly id: string;
  readonly created_at: Date;
  readonly seen_at: Date;
  readonly expires_at: Date;
  readonly present_at: Date;
  readonly second_factor: boolean;
  readonly device: string | null;
  readonly address: string | null;
}

const USER = 'id, username, email, is_active, is_staff, is_superuser, password_hash, created_at, updated_at';

export async function findUserById(db: Db, id: string): Promise<UserRow | null> {
  const [row] = await db.query<UserRow>(`select ${USER} from users where id = $1`, [id]);
  return row ?? null;
}

/** The user as it stays until the transaction ends. SQLite has one writer. */
export async function lockUser(tx: Db, id: string): Promise<UserRow | null> {
  const lock = tx.dialect === 'postgres' ? ' for no key update' : '';
  const [row] = await tx.query<UserRow>(`select ${USER} from users where id = $1${lock}`, [id]);
  return row ?? null;
}

/** No other transaction can insert a row that refers to the user until this one ends. */
export async function lockUserToDelete(tx: Db, id: string): Promise<UserRow | null> {
  const lock = tx.dialect === 'postgres' ? ' for update' : '';
  const [row] = await tx.query<UserRow>(`select ${USER} from users where id = $1${lock}`, [id]);
  return row ?? null;
}

/** Sessions and memberships go along by their foreign keys. */
export async function deleteUserRow(tx: Db, id: string): Promise<void> {
  await tx.query('delete from users where id = $1', [id]);
}

/** One statement for either kind of login, so an unknown address takes no other path than an unknown name. */
export async function findUserByLogin(db: Db, login: string): Promise<UserRow | null> {
  const column = isEmailLogin(login) ? 'email' : 'username';
  const [row] = await db.query<UserRow>(`select ${USER} from users where ${column} = $1`, [login]);
  return row ?? null;
}

/** A page by name, after the user with this name. */
export async function listUsers(db: Db, after: string, limit: number): Promise<UserRow[]> {
  return db.query<UserRow>(`select ${USER} from users where username > $1 order by username limit $2`, [after, limit]);
}

/** null when the name or the address is taken; nothing is written then. */
export async function insertUser(db: Db, user: UserRow): Promise<UserRow | null> {
  const [row] = await db.query<UserRow>(
    `insert into users (${USER}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict do nothing returning ${USER}`,
    [
      user.id,
      user.username,
      user.email,
      user.is_active,
      user.is_staff,
      user.is_superuser,
      user.password_hash,
      user.created_at,
      user.updated_at,
    ],
  );
  return row ?? null;
}

export async function setActive(tx: Db, id: string, active: boolean, now: Date): Promise<UserRow | null> {
  const [row] = await tx.query<UserRow>(`update users set is_active = $2, updated_at = $3 where id = $1 returning ${USER}`, [
    id,
    active,
    now,
  ]);
  return row ?? null;
}

export async function setStaff(tx: Db, id: string, staff: boolean, now: Date): Promise<UserRow | null> {
  const [row] = await tx.query<UserRow>(`update users set is_staff = $2, updated_at = $3 where id = $1 returning ${USER}`, [
    id,
    staff,
    now,
  ]);
  return row ?? null;
}

/** Null when another user has the address, or the user is gone. */
export async function setEmail(tx: Db, id: string, email: string, now: Date): Promise<UserRow | null> {
  const [row] = await tx.query<UserRow>(
    `update users set email = $2, updated_at = $3 where id = $1 and not exists (select 1 from users other where other.email = $2 and other.id <> $1) returning ${USER}`,
    [id, email, now],
  );
  return row ?? null;
}

export async function countSessionsOf(db: Db, userId: string, now: Date, seenAfter: Date): Promise<number> {
  const [row] = await db.query<{ count: number | bigint }>(
    'select count(*) as count from sessions where user_id = $1 and expires_at > $2 and seen_at > $3',
    [userId, now, seenAfter],
  );
  return Number(row?.count ?? 0);
}

/** The newest first, without their tokens. */
export function openSessionsOf(db: Db, userId: string, now: Date, seenAfter: Date, limit: number): Promise<SessionRow[]> {
  return db.query<SessionRow>(
    `select id, created_at, seen_at, expires_at, present_at, second_factor, device, address from sessions
     where user_id = $1 and expires_at > $2 and seen_at > $3 order by id desc limit $4`,
    [userId, now, seenAfter, limit],
  );
}

export async function setPasswordHash(tx: Db, id: string, hash: string, now: Date): Promise<UserRow | null> {
  const [row] = await tx.query<UserRow>(`update users set password_hash = $2, updated_at = $3 where id = $1 returning ${USER}`, [
    id,
    hash,
    now,
  ]);
  return row ?? null;
}

/**
 * True when the user may still log in with the hash that was verified, and holds the user's row until the end of the
 * transaction: a deactivation or password change either ran before (false) or waits and then removes the new session.
 */
export async function lockForLogin(tx: Db, id: string, verifiedHash: string, newHash: string): Promise<boolean> {
  const held = await tx.query('update users set password_hash = $3 where id = $1 and is_active = $4 and password_hash = $2 returning id', [
    id,
    verifiedHash,
    newHash,
    true,
  ]);
  return held.length === 1;
}

export async function insertSession(tx: Db, session: SessionRow, userId: string, digest: string): Promise<void> {
  const { id, created_at, seen_at, expires_at, present_at, second_factor, device, address } = session;
  await tx.query(
    `insert into sessions (id, user_id, token_digest, created_at, seen_at, expires_at, present_at, second_factor, device, address)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    [id, userId, digest, created_at, seen_at, expires_at, present_at, second_factor, device, address],
  );
}

/** The session goes on under another token: whoever knows the old one is out. */
export async function renewSession(tx: Db, id: string, digest: string, presentAt: Date, secondFactor: boolean): Promise<SessionRow | null> {
  const [row] = await tx.query<SessionRow>(
    `update sessions set token_digest = $2, present_at = $3, second_factor = $4 where id = $1
     returning id, created_at, seen_at, expires_at, present_at, second_factor, device, address`,
    [id, digest, presentAt, secondFactor],
  );
  return row ?? null;
}

export interface SessionWithUser extends User {
  readonly session_id: string;
  readonly seen_at: Date;
  readonly expires_at: Date;
  readonly present_at: Date;
  readonly second_factor: boolean;
  readonly chosen_tenant: string | null;
}

/** The live session of a token and its active user: one indexed read, the whole cost of authenticating. */
const LIVE_SESSIONS = `select u.id, u.username, u.email, u.is_active, u.is_staff, u.is_superuser,
    s.id as session_id, s.seen_at, s.expires_at, s.present_at, s.second_factor, s.chosen_tenant
  from sessions s join users u on u.id = s.user_id
  where s.expires_at > $2 and s.seen_at > $3 and u.is_active = $4`;

export async function findSession(db: Db, digest: string, now: Date, seenAfter: Date): Promise<SessionWithUser | null> {
  const [row] = await db.query<SessionWithUser>(`${LIVE_SESSIONS} and s.token_digest = $1`, [digest, now, seenAfter, true]);
  return row ?? null;
}

/** Those of the sessions that are still live. */
export function findSessions(db: Db, ids: readonly string[], now: Date, seenAfter: Date): Promise<SessionWithUser[]> {
  const [condition, list] =
    db.dialect === 'postgres' ? ['= any(cast($1 as uuid[]))', ids] : ['in (select value from json_each($1))', JSON.stringify(ids)];
  return db.query<SessionWithUser>(`${LIVE_SESSIONS} and s.id ${condition}`, [list, now, seenAfter, true]);
}

export async function markSeen(db: Db, sessionId: string, now: Date): Promise<void> {
  await db.query('update sessions set seen_at = $2 where id = $1 and seen_at < $2', [sessionId, now]);
}

export async function deleteSession(db: Db, digest: string): Promise<void> {
  await db.query('delete from sessions where token_digest = $1', [digest]);
}

export async function hasSession(db: Db, userId: string, id: string): Promise<boolean> {
  return (await db.query('select 1 as one from sessions where user_id = $1 and id = $2', [userId, id])).length === 1;
}

/** True when the user had the session. */
export async function deleteSessionById(db: Db, userId: string, id: string): Promise<boolean> {
  return (await db.query('delete from sessions where user_id = $1 and id = $2 returning id', [userId, id])).length === 1;
}

/** How many there were. */
export async function deleteOtherSessions(db: Db, userId: string, id: string): Promise<number> {
  return (await db.query('delete from sessions where user_id = $1 and id <> $2 returning id', [userId, id])).length;
}

/** How many there were. */
export async function deleteSessionsOf(tx: Db, userId: string): Promise<number> {
  return (await tx.query('delete from sessions where user_id = $1 returning id', [userId])).length;
}

export async function deleteExpiredSessions(db: Db, now: Date): Promise<void> {
  await db.query(`delete from sessions where id in (select id from sessions where expires_at <= $1${skipLocked(db)})`, [now]);
}

/** The active user, locked until the transaction ends; null when there is none. */
export async function lockActiveUser(tx: Db, id: string): Promise<UserRow | null> {
  const user = await lockUser(tx, id);
  return user !== null && user.is_active ? user : null;
}

/** False when the session has ended. */
export async function setChosenTenant(db: Db, sessionId: string, tenant: string | null): Promise<boolean> {
  return (await db.query('update sessions set chosen_tenant = $2 where id = $1 returning id', [sessionId, tenant])).length === 1;
}

/** Of these users, those who can log in with nothing yet: they have an e-mail address, and neither a password nor an account elsewhere. */
export async function invitedAmong(db: Db, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const places = ids.map((_, index) => `$${index + 1}`).join(', ');
  const rows = await db.query<{ id: string }>(
    `select id from users u where u.id in (${places}) and u.email is not null and u.password_hash is null
       and not exists (select 1 from user_identities i where i.user_id = u.id)`,
    [...ids],
  );
  return new Set(rows.map(({ id }) => id));
}
