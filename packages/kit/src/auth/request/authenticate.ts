import { coreErrors } from '../../errors/core-errors.ts';
import { isKitError, type KitError } from '../../errors/kit-error.ts';
import type { Authenticator, AuthRequest } from './authenticator.ts';
import type { Principal } from '../people/principal.ts';
import { ruleResult } from '../rights/rule-result.ts';
import { withStaffRights } from '../rights/staff-rights.ts';

/**
 * The order authenticators are asked in: what a client puts into a request itself (a key in a header) before what a browser adds by itself (a
 * cookie, recognized by `verifyCsrf`). So the credential that was meant decides, and CSRF proof is asked of a cookie only when a cookie authenticated.
 */
export function askingOrder(authenticators: readonly Authenticator[]): readonly Authenticator[] {
  const isAmbient = (each: Authenticator) => each.verifyCsrf !== undefined;
  return [...authenticators.filter((each) => !isAmbient(each)), ...authenticators.filter(isAmbient)];
}

export interface Authentication {
  readonly principal: Principal;
  readonly authenticator: Authenticator;
}

/**
 * Asks each authenticator in order; the first success wins. A bad credential does not stop the others (a stale cookie beside a good key is fine),
 * but when no authenticator succeeds its 401 is the answer instead of "anonymous". Any other error is a fault and stops at once.
 * Synchronous when every authenticator asked is: most requests carry one credential, and authenticators that do not see theirs need no I/O.
 */
export function authenticate(
  authenticators: readonly Authenticator[],
  request: AuthRequest,
): Authentication | null | Promise<Authentication | null> {
  return ask(authenticators, request, 0, undefined);
}

function ask(
  authenticators: readonly Authenticator[],
  request: AuthRequest,
  from: number,
  refusal: KitError | undefined,
): Authentication | null | Promise<Authentication | null> {
  let bad = refusal;
  for (let index = from; index < authenticators.length; index += 1) {
    const authenticator = authenticators[index] as Authenticator;
    let answer;
    try {
      answer = authenticator.authenticate(request);
    } catch (error) {
      bad ??= badCredential(error);
      continue;
    }
    if (isNobody(answer)) continue;
    if (!isPromise(answer)) return accepted(answer, authenticator);
    return answer.then(
      (principal) => (isNobody(principal) ? ask(authenticators, request, index + 1, bad) : accepted(principal, authenticator)),
      (error: unknown) => ask(authenticators, request, index + 1, bad ?? badCredential(error)),
    );
  }
  if (bad !== undefined) throw bad;
  return null;
}

function accepted(answer: Principal, authenticator: Authenticator): Authentication {
  const principal = ruleResult('authenticate', `authenticator "${authenticator.name}"`, answer) as Principal;
  return { principal: withStaffRights(principal), authenticator };
}

/** A function that forgets to return answers undefined, whatever its type says; that must never pass for a caller. */
function isNobody(answer: unknown): answer is null {
  return answer === null || answer === undefined;
}

function isPromise(value: Principal | Promise<Principal | null>): value is Promise<Principal | null> {
  return typeof (value as Partial<PromiseLike<unknown>>).then === 'function';
}

function badCredential(error: unknown): KitError {
  if (isKitError(error) && error.status === 401) return error;
  throw error;
}

/**
 * Of routes for sessions alone, and of logins, which begin one. Not a registered scheme, but a 401 must name one (RFC 9110, 15.5.2), and a browser
 * opens no dialog for it.
 */
const SESSION_CHALLENGE = 'Session realm="api"';

/** The `WWW-Authenticate` value of a 401 of a route: the challenges of its authenticators. */
export function challengesOf(authenticators: readonly Authenticator[]): string {
  const challenges = authenticators.flatMap(({ challenge = [] }) => challenge);
  return challenges.length === 0 ? SESSION_CHALLENGE : challenges.join(', ');
}

/** For apps and authenticators: the answer to a presented but bad credential. */
export function invalidCredentials(detail?: string): KitError {
  return coreErrors.invalid_credentials({ detail });
}
