import type { Clock } from '../../db/clock.ts';
import type { Db } from '../../db/db.ts';
import { uuidv7 } from '../../db/uuidv7.ts';
import { accountsOf } from './accounts.ts';
import { loginFailed } from './errors.ts';
import { normalizeLogin } from './login-name.ts';
import type { AccountsSettings } from './options.ts';
import { PASSWORD_LENGTH_MAX } from './password-policy.ts';
import { decoyHash, hashPassword, needsRehash, verifyPassword } from './password.ts';
import { newSessionToken, sessionDigest } from './session-token.ts';
import { deleteExpiredSessions, deleteSession, findUserByLogin, lockForLogin, insertSession, type UserRow } from './store.ts';
import { refuseUnknownNames, requireArguments } from '../../options/read-options.ts';
import { filledText, queryable, text } from '../../options/value-rule.ts';

export interface NewSession {
  readonly user: UserRow;
  /** For the cookie; exists nowhere else. */
  readonly token: string;
  readonly expiresAt: Date;
}

export interface LoginAttempt {
  readonly login: string;
  readonly password: string;
  /** The token the request already carries: that session ends, so a login never continues a session it did not start. */
  readonly previousToken: string | null;
  /** Asked once the password was right, in the transaction that opens the session: what it throws refuses the login. */
  readonly admit?: ((tx: Db, user: UserRow) => void | Promise<void>) | undefined;
}

const ATTEMPT: ReadonlySet<string> = new Set(
  Object.keys({ login: true, password: true, previousToken: true, admit: true } satisfies Record<keyof LoginAttempt, true>),
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
  const verifiedHash = user.password_hash ?? '';
  // While the password is at hand: a hash made at an older cost is replaced. Before the transaction, because it is slow.
  const newHash = needsRehash(verifiedHash, settings.passwordCost)
    ? await hashPassword(attempt.password, settings.passwordCost)
    : verifiedHash;
  return db.transaction(async (tx) => {
    if (!(await lockForLogin(tx, user.id, verifiedHash, newHash))) throw loginFailed();
    await attempt.admit?.(tx, user);
    if (attempt.previousToken !== null && attempt.previousToken !== undefined)
      await deleteSession(tx, sessionDigest(attempt.previousToken));
    await deleteExpiredSessions(tx, clock.now());
    return openSession(tx, user, settings, clock);
  });
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

export async function openSession(tx: Db, user: UserRow, settings: SessionSettings, clock: Clock): Promise<NewSession> {
  const now = clock.now();
  const token = newSessionToken();
  const expiresAt = new Date(now.getTime() + settings.sessionLifetimeMs);
  await insertSession(tx, { id: uuidv7(clock), created_at: now, seen_at: now, expires_at: expiresAt }, user.id, sessionDigest(token));
  return { user, token, expiresAt };
}

/** Repeatable. */
export async function logOut(db: Db, token: string): Promise<void> {
  requireArguments('logOut()', { db, token }, { db: queryable, token: filledText });
  await deleteSession(db, sessionDigest(token));
}
