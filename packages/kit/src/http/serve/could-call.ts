import type { Authenticator } from '../../auth/request/authenticator.ts';
import type { Principal } from '../../auth/people/principal.ts';
import { isKitError } from '../../errors/kit-error.ts';
import type { CompiledRoute } from '../exchange/compiled-route.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { probeRoute, type RouteCall } from './call-route.ts';

/** Who asks, by which credential. */
export interface Caller {
  readonly principal: Principal | null;
  readonly authenticator: Authenticator | null;
}

/** The person of a request as a program of theirs would be, with a credential that has every scope; null where the app has none for programs. */
export function asProgram({ principal }: Caller, routes: readonly CompiledRoute[]): Caller | null {
  const authenticator = routes
    .flatMap(({ authenticators }) => authenticators)
    .find(({ securityScheme }) => securityScheme['in'] !== 'cookie');
  if (authenticator === undefined || principal === null) return null;
  const { recentLogin: _, ...rest } = principal;
  return { authenticator, principal: { ...rest, scheme: authenticator.name, scopes: ['*'] } };
}

/**
 * The exchange of an operation that this caller could call; null where its permission says no. What depends on a row counts as yes. Nothing of the
 * operation runs.
 */
export async function couldCall(
  route: CompiledRoute,
  parent: Exchange,
  headers: RouteCall['headers'],
  { principal, authenticator }: Caller = parent,
): Promise<Exchange | null> {
  const exchange = probeRoute(route, parent, { headers });
  // To a route that does not accept the kind of credential the caller is anonymous, as in a request of it.
  const isKnown = authenticator !== null && route.authenticators.includes(authenticator);
  exchange.principal = isKnown ? principal : null;
  exchange.authenticator = isKnown ? authenticator : null;
  try {
    return (await route.permission.evaluate(exchange)) === false ? null : exchange;
  } catch (error) {
    // A caller who is not a member of the tenant, for example: decided, not failed.
    if (isKitError(error) && error.status < 500) return null;
    throw error;
  }
}
