import type { User } from '../../../auth/people/principal.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import type { HandlerContext } from '../../../http/declare/handler-context.ts';
import { accountsOf, type Accounts } from '../users/accounts.ts';
import { accountErrors, loginFailed } from '../errors.ts';
import { takeLoginAttempt, takeResetAttempt } from './login-throttle.ts';
import { checkedEmail, hashNewPassword, replacePassword } from '../users/manage-users.ts';
import { startEmailChange } from '../mail/send-link.ts';
import { sessionAnswer, type SessionFacts } from './password-login.ts';
import {
  beginSecondFactor,
  confirmSecondFactor,
  proveSecondFactor,
  removeSecondFactor,
  renewRecoveryCodes,
  secondFactorState,
  takeConfirmationAttempt,
} from '../factors/second-factor.ts';
import { needsSecondFactor } from '../sessions/session-authenticator.ts';
import { newSessionToken, sessionDigest } from '../sessions/session-token.ts';
import { insertNewSession, type NewSession, placeOf, verifiedUser } from '../sessions/sessions.ts';
import {
  deleteOtherSessions,
  deleteSessionById,
  findUserById,
  hasSession,
  lockActiveUser,
  lockForLogin,
  openSessionsOf,
  renewSession,
  type UserRow,
} from '../users/store.ts';
import type { ListedSession } from '../schemas.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';

/** What people change on their own account, in the session of a browser. Used by AccountController and the admin site. */
export type OwnContext = HandlerContext<unknown, unknown, unknown, unknown, User>;

/** More than anyone has; the oldest of more are not shown, and "end all others" ends them. */
const SESSIONS_SHOWN = 100;

export async function ownSessions({ db, user, clock, principal }: OwnContext): Promise<readonly ListedSession[]> {
  const { settings } = accountsOf(db);
  const now = clock.now();
  const open = await openSessionsOf(db, user.id, now, new Date(now.getTime() - settings.sessionIdleMs), SESSIONS_SHOWN);
  return open.map(({ id, device, address, second_factor, created_at, seen_at, expires_at }) => ({
    id,
    current: id === principal.credentialId,
    device,
    address,
    second_factor,
    created_at: created_at.toISOString(),
    seen_at: seen_at.toISOString(),
    expires_at: expires_at.toISOString(),
  }));
}

export async function endOwnSession({ db, user }: OwnContext, id: string): Promise<void> {
  if (!(await deleteSessionById(db, user.id, id))) throw accountErrors.session_not_found();
}

export function endOtherSessions({ db, user, principal }: OwnContext): Promise<number> {
  return deleteOtherSessions(db, user.id, sessionId(principal.credentialId));
}

/** Every session ends; the browser gets a new one. */
export async function changeOwnPassword(context: OwnContext, current: string, next: string): Promise<SessionFacts> {
  const { db, clock, principal } = context;
  const accounts = accountsOf(db);
  const user = await provedPassword(context, accounts, current);
  const hash = await hashNewPassword(next, user, accounts.settings.passwordCost);
  const session = await db.transaction(async (tx) => {
    await lockOwnUser(tx, context);
    // It was not changed, nor the user deactivated, since it was verified: else two changes at once would both count.
    if (!(await lockForLogin(tx, user.id, user.password_hash ?? '', user.password_hash ?? ''))) throw loginFailed();
    const changed = await replacePassword(tx, user.id, hash, accounts.management(principal, context.requestId));
    return insertNewSession(tx, changed, accounts.settings, clock, {
      secondFactor: principal.secondFactor === 'proved',
      place: place(context),
    });
  }, CONFLICT_RETRIES);
  return sessionAnswer(context, accounts, session);
}

/** The address changes when the link that is sent to it is used. The same for every address: who has which is nobody's business. */
export async function beginEmailChange(context: OwnContext, given: string): Promise<void> {
  const { db, clock } = context;
  const accounts = accountsOf(db);
  const email = checkedEmail(given);
  await takeResetAttempt(email, accounts, clock.now());
  await db.transaction(async (tx) => startEmailChange(tx, await lockOwnUser(tx, context), email), CONFLICT_RETRIES);
}

/**
 * The person at the browser proves to be there: with the password, and with a code where there is a second factor. The session goes on under
 * a new token.
 */
export async function provePresence(
  context: OwnContext,
  given: { readonly password?: string; readonly code?: string },
): Promise<SessionFacts> {
  const { db, user } = context;
  const accounts = accountsOf(db);
  const row = await findUserById(db, user.id);
  const hasPassword = row !== null && row.password_hash !== null;
  if (hasPassword) await provedPassword(context, accounts, given.password ?? '');
  const secondFactor = (await proveSecondFactor(db, user, given.code)) !== null;
  // Who has neither a password nor codes logs in elsewhere, and has to do that again.
  if (!hasPassword && !secondFactor) throw coreErrors.recent_login_required({ detail: 'Log in again to prove that you are there.' });
  const session = await db.transaction(
    (tx) => renewed(tx, context, secondFactor || context.principal.secondFactor === 'proved'),
    CONFLICT_RETRIES,
  );
  return sessionAnswer(context, accounts, session);
}

export async function ownFactor({
  db,
  user,
}: Pick<OwnContext, 'db' | 'user'>): Promise<{ enabled: boolean; required: boolean; recovery_codes_left: number }> {
  const { confirmedAt, recoveryCodes } = await secondFactorState(db, user.id);
  const row = await findUserById(db, user.id);
  const required = row !== null && needsSecondFactor(row, accountsOf(db).settings);
  return { enabled: confirmedAt !== null, required, recovery_codes_left: recoveryCodes };
}

export function beginOwnFactor({ db, user }: OwnContext): Promise<{ readonly secret: string; readonly uri: string }> {
  return beginSecondFactor(db, user);
}

/** From here on each login of the user asks for a code. Other sessions end: they were opened without one. */
export async function confirmOwnFactor(
  context: OwnContext,
  code: string,
): Promise<SessionFacts & { readonly recovery_codes: readonly string[] }> {
  const { db, user, principal, requestId } = context;
  const accounts = accountsOf(db);
  await takeConfirmationAttempt(db, user);
  const { session, codes } = await db.transaction(async (tx) => {
    // Before the other sessions end, so that a login without a code that is under way ends with them, or is refused.
    await lockOwnUser(tx, context);
    const recovery = await confirmSecondFactor(tx, user, code, { actor: principal, request_id: requestId });
    await deleteOtherSessions(tx, user.id, sessionId(principal.credentialId));
    return { session: await renewed(tx, context, true), codes: recovery };
  }, CONFLICT_RETRIES);
  return { ...sessionAnswer(context, accounts, session), recovery_codes: codes };
}

export async function renewOwnRecoveryCodes(context: OwnContext): Promise<readonly string[]> {
  const { db, user, principal, requestId } = context;
  return db.transaction(async (tx) => {
    await lockOwnUser(tx, context);
    return renewRecoveryCodes(tx, user, { actor: principal, request_id: requestId });
  }, CONFLICT_RETRIES);
}

/** Every session ends; the browser gets a new one, without what the factor gave. */
export async function removeOwnFactor(context: OwnContext): Promise<SessionFacts> {
  const { db, user, principal, requestId, clock } = context;
  const accounts = accountsOf(db);
  const session = await db.transaction(async (tx) => {
    const row = await lockOwnUser(tx, context);
    if (!(await removeSecondFactor(tx, user, { actor: principal, request_id: requestId }))) throw accountErrors.no_second_factor();
    return insertNewSession(tx, row, accounts.settings, clock, { secondFactor: false, place: place(context) });
  }, CONFLICT_RETRIES);
  return sessionAnswer(context, accounts, session);
}

/** With the account's budget of guesses: a session that was left open must not be a way to guess the password. */
async function provedPassword({ db, user, clock }: OwnContext, accounts: Accounts, password: string): Promise<UserRow> {
  const giveBack = await takeLoginAttempt(user.username, accounts.throttleStorage, accounts.throttleRates, clock.now());
  const verified = await verifiedUser(db, user.username, password, accounts.settings);
  await giveBack();
  return verified;
}

/** Locks the user of a session that is still open: whatever ended it since the request was authenticated also ends what the request wants to change. */
async function lockOwnUser(tx: Db, { user, principal }: OwnContext): Promise<UserRow> {
  const row = await lockActiveUser(tx, user.id);
  if (row === null || !(await hasSession(tx, user.id, sessionId(principal.credentialId)))) throw sessionEnded();
  return row;
}

/** What the next request would get. */
function sessionEnded(): Error {
  return coreErrors.not_authenticated({ detail: 'The session has ended. Log in again.' });
}

async function renewed(tx: Db, { user, clock, principal }: OwnContext, secondFactor: boolean): Promise<NewSession> {
  const row = await lockActiveUser(tx, user.id);
  const token = newSessionToken();
  const session =
    row === null ? null : await renewSession(tx, sessionId(principal.credentialId), sessionDigest(token), clock.now(), secondFactor);
  if (row === null || session === null) throw sessionEnded();
  return { user: row, token, expiresAt: session.expires_at, secondFactor };
}

function place({ request, client }: OwnContext) {
  return placeOf(request.headers, client.address);
}

function sessionId(credentialId: string | undefined): string {
  if (credentialId === undefined) throw coreErrors.permission_denied();
  return credentialId;
}
