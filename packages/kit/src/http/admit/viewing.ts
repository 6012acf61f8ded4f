import type { Authentication } from '../../auth/request/authenticate.ts';
import type { Principal } from '../../auth/people/principal.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { isKitError } from '../../errors/kit-error.ts';
import { safeMethods } from '../../permissions/built-ins.ts';
import type { CompiledRoute } from '../exchange/compiled-route.ts';
import type { Exchange } from '../exchange/exchange.ts';

/** The user that a member of staff looks as with this request; null: nobody. Only what a browser sends by itself can be a view, and never in the admin site. */
export function viewedPrincipal(
  exchange: Exchange,
  route: Pick<CompiledRoute, 'metadata'>,
  { principal, authenticator }: Authentication,
): Promise<Principal> | null {
  const { viewing } = exchange.host;
  if (viewing === null || exchange.parent !== null || authenticator.verifyCsrf === undefined || route.metadata['admin'] === true)
    return null;
  return viewing.principalOf(exchange, principal);
}

/** Who looks as a user only looks: nothing is written, and no file, one-time value or link leaves. */
export function refuseWhileViewing({ principal, method }: Exchange, { isRead, kind }: Pick<CompiledRoute, 'isRead' | 'kind'>): void {
  if (principal?.isViewing !== true) return;
  if (!(safeMethods.has(method) || isRead) || kind === 'raw') throw coreErrors.viewing_only();
}

/** For open streams: who the caller is by now. `current` is who the session belongs to; undefined: not known. */
export async function viewedNow(exchange: Exchange, current: Principal | null | undefined): Promise<Principal | null | undefined> {
  if (exchange.principal?.isViewing !== true || current === null || current === undefined) return current;
  try {
    return (await exchange.host.viewing?.principalOf(exchange, current)) ?? null;
  } catch (error) {
    if (isKitError(error) && error.status < 500) return null;
    throw error;
  }
}
