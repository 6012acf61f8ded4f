import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Clock } from '../../../db/clock.ts';
import type { Db } from '../../../db/engine/db.ts';
import { uuidv7 } from '../../../db/values/uuidv7.ts';
import { accountsOf, accountsState } from '../users/accounts.ts';
import { accountErrors, loginFailed } from '../errors.ts';
import { normalizeLogin } from '../users/login-name.ts';
import type { AccountsSettings } from '../options.ts';
import { PASSWORD_LENGTH_MAX } from '../users/password-policy.ts';
import { decoyHash, hashPassword, needsRehash, verifyPassword } from '../users/password.ts';
import { proveSecondFactor, requireSameFactor } from '../factors/second-factor.ts';
import { newSessionToken, sessionDigest } from './session-token.ts';
import { deleteExpiredSessions, deleteSession, findUserByLogin, lockForLogin, insertSession, type UserRow } from '../users/store.ts';
import { refuseUnknownNames, requireArguments } from '../../../options/read-options.ts';
import { filledText, queryable, text } from '../../../options/value-rule.ts';

export interface NewSession {
  readonly user: UserRow;
  /** For the cookie; exists nowhere else. */
  readonly token: string;
  readonly expiresAt: Date;
  readonly secondFactor: boolean;
}

/** Where a session is opened: shown to the user in the list of sessions. */
export interface SessionPlace {
  /** The browser or program, from its `User-Agent`; null when unknown. */
  readonly device: string | null;
  /** The IP address; null when unknown. */
  readonly address: string | null;
}

export interface LoginAttempt {
  /** A user name or an email address. */
  readonly login: string;
  /** As typed by the user. */
  readonly password: string;
  /** The one-time code, or a recovery code, of a user who has a second factor. */
  readonly code?: string | undefined;
  /** The token the request already carries: that session ends, so a login never continues a session it did not start. */
  readonly previousToken: string | null;
  /** Asked once the password was right, in the transaction that opens the session: what it throws refuses the login. */
  readonly admit?: ((tx: Db, user: UserRow) => void | Promise<void>) | undefined;
  /** Shown in the list of sessions. */
  readonly place?: SessionPlace | undefined;
}

const ATTEMPT: ReadonlySet<string> = new Set(
  Object.keys({ login: true, password: true, code: true, previousToken: true, admit: true, place: true } satisfies Record<
    keyof LoginAttempt,
    true
  >),
);

type SessionSettings = Pick<AccountsSettings, 'passwordCost' | 'sessionLifetimeMs'>;

/**
 * Checks a password and opens a session. Unknown, deactivated and password-less users cost the same hash as a wrong
 * password and get the same error.
 */
export async function logIn(
  db: Db,
  attempt: LoginAttempt,
  settings: SessionSettings = accountsOf(db).settings,
  clock: Clock = accountsOf(db).clock,
): Promise<NewSession> {
  refuseUnknownNames('logIn()', attempt, ATTEMPT);
  const { login, password } = attempt;
  requireArguments('logIn()', { db, login, password }, { db: queryable, login: text, password: text });
  const user = await verifiedUser(db, attempt.login, attempt.password, settings);
  const factor = await proveSecondFactor(db, user, attempt.code);
  const verifiedHash = user.password_hash ?? '';
  // While the password is at hand: a hash made at an older cost is replaced. Before the transaction, because it is slow.
  const newHash = needsRehash(verifiedHash, settings.passwordCost)
    ? await hashPassword(attempt.password, settings.passwordCost)
    : verifiedHash;
  return db.transaction(async (tx) => {
    if (!(await lockForLogin(tx, user.id, verifiedHash, newHash))) throw loginFailed();
    await requireSameFactor(tx, user, factor);
    await attempt.admit?.(tx, user);
    if (attempt.previousToken !== null && attempt.previousToken !== undefined)
      await deleteSession(tx, sessionDigest(attempt.previousToken));
    await deleteExpiredSessions(tx, clock.now());
    return insertNewSession(tx, user, settings, clock, { secondFactor: factor !== null, place: attempt.place });
  }, CONFLICT_RETRIES);
}

/** The active user of this login and password; the one failure for everything else, after the same work. */
export async function verifiedUser(
  db: Db,
  login: string,
  password: string,
  { passwordCost }: Pick<SessionSettings, 'passwordCost'>,
): Promise<UserRow> {
  const user = await findUserByLogin(db, normalizeLogin(login));
  const matches = await verifyPassword(password.slice(0, PASSWORD_LENGTH_MAX + 1), user?.password_hash ?? decoyHash(passwordCost));
  if (user === null || user.password_hash === null || !matches || !user.is_active) throw loginFailed();
  return user;
}

export async function insertNewSession(
  tx: Db,
  user: UserRow,
  settings: SessionSettings,
  clock: Clock,
  {
    secondFactor,
    present = true,
    place = NOWHERE,
  }: { readonly secondFactor: boolean; readonly present?: boolean; readonly place?: SessionPlace | undefined },
): Promise<NewSession> {
  if ((await accountsState.find(tx)?.serviceUsersAmong(tx, [user.id]))?.has(user.id) === true) throw accountErrors.service_user();
  const now = clock.now();
  const token = newSessionToken();
  const expiresAt = new Date(now.getTime() + settings.sessionLifetimeMs);
  const times = { created_at: now, seen_at: now, expires_at: expiresAt, present_at: present ? now : NEVER };
  await insertSession(tx, { id: uuidv7(clock), ...times, second_factor: secondFactor, ...place }, user.id, sessionDigest(token));
  return { user, token, expiresAt, secondFactor };
}

/** Of a session whose user has not proved to be there. */
const NEVER = new Date(0);
const NOWHERE: SessionPlace = { device: null, address: null };
const DEVICE_LENGTH_MAX = 200;

export function placeOf(headers: Readonly<Record<string, unknown>>, address: string | undefined): SessionPlace {
  const agent = headers['user-agent'];
  const device = typeof agent === 'string' && agent !== '' ? agent.slice(0, DEVICE_LENGTH_MAX).toWellFormed() : null;
  return { device, address: address === undefined || address === '' ? null : address.slice(0, 64) };
}

/** Repeatable. */
export async function logOut(db: Db, token: string): Promise<void> {
  requireArguments('logOut()', { db, token }, { db: queryable, token: filledText });
  await deleteSession(db, sessionDigest(token));
}
