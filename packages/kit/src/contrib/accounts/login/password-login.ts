import type { Principal, User } from '../../../auth/people/principal.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import { isKitError } from '../../../errors/kit-error.ts';
import type { HandlerContext } from '../../../http/declare/handler-context.ts';
import { accountsOf, type Accounts, type LOGIN_OUTCOMES } from '../users/accounts.ts';
import { clearedSessionCookie, sessionCookie } from '../sessions/cookie.ts';
import { takeLoginAttempt } from './login-throttle.ts';
import { originFault } from '../sessions/request-origin.ts';
import { effectiveUser, needsSecondFactor, sessionTokenOf } from '../sessions/session-authenticator.ts';
import { csrfToken } from '../sessions/session-token.ts';
import { logIn, logOut, placeOf, type LoginAttempt, type NewSession } from '../sessions/sessions.ts';

type LoginContext = Pick<HandlerContext, 'request' | 'reply' | 'db' | 'clock' | 'client'>;

/** What a login route does with its body: own origin, the account's budget, the password, the cookie. The route brings `loginClientThrottle`. */
export async function logInByPassword(
  context: LoginContext,
  { login, password, code }: { readonly login: string; readonly password: string; readonly code?: string | undefined },
  admit?: LoginAttempt['admit'],
): Promise<SessionFacts> {
  const accounts = accountsOf(context.db);
  requireOwnOrigin(context, accounts);
  let giveBack: (() => Promise<void>) | undefined;
  try {
    giveBack = await takeLoginAttempt(login, accounts.throttleStorage, accounts.throttleRates, context.clock.now());
    const previousToken = sessionTokenOf(context.request.headers, accounts.settings);
    const place = placeOf(context.request.headers, context.client.address);
    const session = await logIn(context.db, { login, password, code, previousToken, admit, place }, accounts.settings, context.clock);
    await giveBack();
    accounts.logins?.add({ outcome: 'succeeded' });
    return sessionAnswer(context, accounts, session);
  } catch (error) {
    // The password was right: asking for the code is not a failed guess. Guesses of codes have a limit of their own.
    if (isKitError(error, 'one_time_code_required')) await giveBack?.();
    accounts.logins?.add({ outcome: outcomeOf(error) });
    throw error;
  }
}

function outcomeOf(error: unknown): (typeof LOGIN_OUTCOMES)[number] {
  if (!isKitError(error) || error.status >= 500) return 'failed';
  if (error.code === 'one_time_code_required') return 'code_required';
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

/** What a login answers with. */
export interface SessionFacts {
  readonly user: User;
  readonly csrf_token: string;
  readonly second_factor: SecondFactorState;
}

/** `setup_required`: the user's staff rights are withheld until one-time codes are set up. */
export type SecondFactorState = 'off' | 'verified' | 'setup_required';

export function sessionAnswer(context: Pick<HandlerContext, 'reply'>, { settings }: Accounts, session: NewSession): SessionFacts {
  const maxAge = Math.floor(settings.sessionLifetimeMs / 1000);
  const cookie = sessionCookie(session.token, maxAge, { secure: settings.secureCookies });
  void context.reply.header('set-cookie', cookie).header('cache-control', 'no-store');
  const user = effectiveUser(session.user, session.secondFactor, settings);
  const isMissing = !session.secondFactor && needsSecondFactor(session.user, settings);
  return {
    user,
    csrf_token: csrfToken(session.token),
    second_factor: session.secondFactor ? 'verified' : isMissing ? 'setup_required' : 'off',
  };
}

export function secondFactorOf({ principal }: { readonly principal: Principal | null }): SecondFactorState {
  return principal?.secondFactor === 'proved' ? 'verified' : principal?.secondFactor === 'missing' ? 'setup_required' : 'off';
}

/** The CSRF token of the session that authenticated the request; null when another credential did. */
export function csrfTokenOf({ request, principal }: Pick<HandlerContext, 'request' | 'principal'>, { settings }: Accounts): string | null {
  const token = principal?.scheme === 'session' ? sessionTokenOf(request.headers, settings) : null;
  return token === null ? null : csrfToken(token);
}

/** Another site must not be able to log its visitor in as another user. There is no session yet to bind a token to. */
export function requireOwnOrigin({ request }: Pick<HandlerContext, 'request'>, { settings }: Accounts): void {
  const fault = originFault(request.headers, { trustedOrigins: settings.trustedOrigins, secure: settings.secureCookies });
  if (fault !== null) throw coreErrors.csrf_failed({ message: `login: ${fault}` });
}
