import type { User } from '../../auth/principal.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { isKitError } from '../../errors/kit-error.ts';
import type { HandlerContext } from '../../http/handler-context.ts';
import { accountsOf, type Accounts, type LOGIN_OUTCOMES } from './accounts.ts';
import { clearedSessionCookie, sessionCookie } from './cookie.ts';
import { takeLoginAttempt } from './login-throttle.ts';
import { publicUser } from './manage-users.ts';
import { originFault } from './request-origin.ts';
import { sessionTokenOf } from './session-authenticator.ts';
import { csrfToken } from './session-token.ts';
import { logIn, logOut, type LoginAttempt, type NewSession } from './sessions.ts';

type LoginContext = Pick<HandlerContext, 'request' | 'reply' | 'db' | 'clock'>;

/** What a login route does with its body: own origin, the account's budget, the password, the cookie. The route brings `loginClientThrottle`. */
export async function logInByPassword(
  context: LoginContext,
  { login, password }: { readonly login: string; readonly password: string },
  admit?: LoginAttempt['admit'],
): Promise<{ user: User; csrf_token: string }> {
  const accounts = accountsOf(context.db);
  requireOwnOrigin(context, accounts);
  try {
    const giveBack = await takeLoginAttempt(context.db, login, accounts.throttleStorage, accounts.throttleRates, context.clock.now());
    const previousToken = sessionTokenOf(context.request.headers, accounts.settings);
    const session = await logIn(context.db, { login, password, previousToken, admit }, accounts.settings, context.clock);
    await giveBack();
    accounts.logins?.add({ outcome: 'succeeded' });
    return sessionAnswer(context, accounts, session);
  } catch (error) {
    accounts.logins?.add({ outcome: outcomeOf(error) });
    throw error;
  }
}

function outcomeOf(error: unknown): (typeof LOGIN_OUTCOMES)[number] {
  if (!isKitError(error) || error.status >= 500) return 'failed';
  return error.status === 429 ? 'throttled' : 'refused';
}

/** Ends the session whose CSRF token the request proved, and clears the cookie in any case. */
export async function endSession(context: LoginContext & Pick<HandlerContext, 'principal'>): Promise<void> {
  const accounts = accountsOf(context.db);
  const token = sessionTokenOf(context.request.headers, accounts.settings);
  // Only a principal of kind `session` has proved its CSRF token; anyone else has no live session to end.
  if (token !== null && context.principal?.scheme === 'session') await logOut(context.db, token);
  void context.reply
    .header('set-cookie', clearedSessionCookie({ secure: accounts.settings.secureCookies }))
    .header('cache-control', 'no-store');
}

export function sessionAnswer(
  context: Pick<HandlerContext, 'reply'>,
  { settings }: Accounts,
  session: NewSession,
): { user: User; csrf_token: string } {
  const cookie = sessionCookie(session.token, Math.floor(settings.sessionLifetimeMs / 1000), { secure: settings.secureCookies });
  void context.reply.header('set-cookie', cookie).header('cache-control', 'no-store');
  return { user: publicUser(session.user), csrf_token: csrfToken(session.token) };
}

/** The CSRF token of the session that authenticated the request; null when another credential did. */
export function csrfTokenOf({ request, principal }: Pick<HandlerContext, 'request' | 'principal'>, { settings }: Accounts): string | null {
  const token = principal?.scheme === 'session' ? sessionTokenOf(request.headers, settings) : null;
  return token === null ? null : csrfToken(token);
}

/** Another site must not be able to log its visitor in as another user. There is no session yet to bind a token to. */
function requireOwnOrigin({ request }: Pick<HandlerContext, 'request'>, { settings }: Accounts): void {
  const fault = originFault(request.headers, { trustedOrigins: settings.trustedOrigins, secure: settings.secureCookies });
  if (fault !== null) throw coreErrors.csrf_failed({ message: `login: ${fault}` });
}
