import { authenticate, type Authentication } from '../../auth/request/authenticate.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { isKitError } from '../../errors/kit-error.ts';
import { INPUT_LIMITS } from '../../options/input-limits.ts';
import { inSpan } from '../../observe/tracing.ts';
import { safeMethods } from '../../permissions/built-ins.ts';
import type { Verdict } from '../../permissions/permission.ts';
import { enforceThrottles, throttledError } from '../../throttle/enforce.ts';
import type { Throttle, ThrottleContext } from '../../throttle/throttle.ts';
import type { CompiledRoute } from '../exchange/compiled-route.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { idempotencyErrors } from '../errors.ts';
import type { Middleware } from '../exchange/middleware.ts';
import { refuseWhileViewing, viewedPrincipal } from './viewing.ts';

/** One step before the body is read. Synchronous where it can be; throwing refuses the request. */
export type Stage = (exchange: Exchange) => void | undefined | Promise<void>;

/**
 * Who gets as far as the body: middleware → client throttles → authentication → CSRF → principal throttles → permission → middleware (onAdmitted).
 * Only the stages a route needs are in its list.
 */
export function admissionStages(route: CompiledRoute, middleware: readonly Middleware[]): readonly Stage[] {
  const stages: Stage[] = [refuseLongUrl, ...onRequestStages(middleware)];
  const principalThrottles = route.throttles.filter(({ phase }) => phase === 'principal');
  stages.push(...clientThrottleStages(route.throttles));
  if (route.authenticators.length > 0) stages.push((exchange) => identify(exchange, route));
  if (principalThrottles.length > 0) stages.push((exchange) => throttle(exchange, principalThrottles, 'principal'));
  stages.push((exchange) => permit(exchange, route));
  if (route.method === 'GET') stages.push(refuseContent);
  if (ignoresKeys(route)) stages.push(refuseKey);
  for (const each of middleware) if (each.onAdmitted !== undefined) stages.push((exchange) => each.onAdmitted?.(exchange));
  return stages;
}

export function onRequestStages(middleware: readonly Middleware[]): Stage[] {
  return middleware.flatMap((each) => (each.onRequest === undefined ? [] : [(exchange: Exchange) => each.onRequest?.(exchange)]));
}

/** The caller is not known yet: by address only. */
export function clientThrottleStages(throttles: readonly Throttle[]): Stage[] {
  const ofClients = throttles.filter(({ phase }) => phase === 'client');
  return ofClients.length === 0 ? [] : [(exchange) => throttle(exchange, ofClients, 'client')];
}

/** True for a route that writes and would not notice a repetition. Reads can be repeated anyway. */
function ignoresKeys({ idempotency, method, isRead, route }: CompiledRoute): boolean {
  return idempotency === undefined && route.passesKey !== true && !safeMethods.has(method) && !isRead;
}

/** Who sends a key relies on it: a key that is ignored in silence would double the effect of a retry. */
function refuseKey({ headers }: Exchange): void {
  if (headers['idempotency-key'] !== undefined) throw idempotencyErrors.idempotency_not_supported();
}

/** Runs the stages in order, without a promise until a stage makes one. */
export function runStages(stages: readonly Stage[], exchange: Exchange, from = 0): undefined | Promise<void> {
  for (let index = from; index < stages.length; index += 1) {
    const result = (stages[index] as Stage)(exchange);
    if (result !== undefined) return result.then(() => runStages(stages, exchange, index + 1));
  }
  return undefined;
}

async function throttle(exchange: Exchange, throttles: readonly Throttle[], phase: Throttle['phase']): Promise<void> {
  const { host } = exchange;
  const context: ThrottleContext = {
    clientAddress: exchange.clientAddress,
    principal: exchange.principal,
    // Finding the tenant may cost a query: not before the client's own budget allows it, and the caller is not known yet.
    tenant: phase === 'client' ? null : await tenantOfBudget(exchange),
    rates: host.throttleRates,
    request: exchange.request,
  };
  const outcome = await enforceThrottles(throttles, phase, context, host.throttleStorage, host.clock.now(), spentBefore(exchange));
  exchange.throttled = [...exchange.throttled, ...outcome.results];
  if (outcome.refused === null) return;
  exchange.throttledIn = phase;
  if (phase === 'principal' && exchange.route?.route.respondsToThrottles === true) exchange.spentBudget = outcome.refused;
  else throw throttledError(outcome.refused);
}

/** A suspended tenant has no budget. Whatever needs the tenant says that it is suspended; logging out does not. */
async function tenantOfBudget({ tenant }: Exchange): Promise<string | null> {
  try {
    return await tenant;
  } catch (error) {
    if (isKitError(error, 'tenant_suspended')) return null;
    throw error;
  }
}

/** The budgets that the request around a call has spent for it. By key: the same throttle may choose another budget for the call, such as its tenant's. */
function spentBefore({ parent, isCovered }: Exchange): ReadonlySet<string> | undefined {
  return parent === null || !isCovered ? undefined : new Set(parent.throttled.map(({ budget }) => budget));
}

function identify(exchange: Exchange, route: CompiledRoute): void | Promise<void> {
  const budget = exchange.parent?.spentBudget ?? null;
  if (budget !== null) {
    exchange.throttledIn = 'principal';
    throw throttledError(budget);
  }
  let found;
  try {
    found = exchange.parent === null ? authenticate(route.authenticators, exchange) : authenticatedAs(exchange.parent, route);
  } catch (error) {
    return failed(exchange, error);
  }
  if (!(found instanceof Promise)) return remember(exchange, route, found);
  return found.then(
    (settled) => remember(exchange, route, settled),
    (error: unknown) => failed(exchange, error),
  );
}

/** The caller of the request around a call, where the route accepts its kind of credential. */
function authenticatedAs({ principal, authenticator }: Exchange, route: CompiledRoute): Authentication | null {
  if (principal === null || authenticator === null) return null;
  const isAccepted = authenticator.callsRoute?.(route, principal) ?? route.authenticators.includes(authenticator);
  return isAccepted ? { principal, authenticator } : null;
}

function failed(exchange: Exchange, error: unknown): never {
  exchange.authentication = isKitError(error) && error.status === 401 ? 'refused' : 'failed';
  throw error;
}

function remember(exchange: Exchange, route: CompiledRoute, found: Authentication | null): void | Promise<void> {
  exchange.authentication = found === null ? 'anonymous' : 'accepted';
  if (found === null) return undefined;
  const viewed = viewedPrincipal(exchange, route, found);
  return viewed === null ? accept(exchange, route, found) : viewed.then((principal) => accept(exchange, route, { ...found, principal }));
}

function accept(exchange: Exchange, route: CompiledRoute, found: Authentication): void | Promise<void> {
  exchange.principal = found.principal;
  exchange.authenticator = found.authenticator;
  if (found.authenticator.verifyCsrf === undefined || !route.csrf || safeMethods.has(exchange.method)) return proveBinding(exchange);
  const verified = found.authenticator.verifyCsrf(exchange, found.principal);
  return verified instanceof Promise ? verified.then(() => proveBinding(exchange)) : proveBinding(exchange);
}

/** What is bound to a tenant works while its user is a member there, also on routes that need no tenant. */
function proveBinding(exchange: Exchange): void | Promise<void> {
  const { boundTenant } = exchange.principal ?? {};
  if (boundTenant === undefined || boundTenant === null || boundTenant === '' || exchange.parent !== null) return undefined;
  const { tenant } = exchange;
  return tenant instanceof Promise ? tenant.then(() => undefined) : undefined;
}

function permit(exchange: Exchange, route: CompiledRoute): void | Promise<void> {
  refuseWhileViewing(exchange, route);
  const verdict = exchange.isRecorded
    ? inSpan(`permission ${route.permission.name}`, {}, () => route.permission.evaluate(exchange))
    : route.permission.evaluate(exchange);
  return verdict instanceof Promise ? verdict.then((settled) => settle(exchange, route, settled)) : settle(exchange, route, verdict);
}

function settle(exchange: Exchange, route: CompiledRoute, verdict: Verdict): void | Promise<void> {
  exchange.verdict = verdict;
  return verdict === false ? deny(exchange, route, undefined) : undefined;
}

async function deny(exchange: Exchange, route: CompiledRoute, object: unknown): Promise<never> {
  throw await route.permission.denial(exchange, object);
}

/** For handlers: decides the permission again, now with the object it asks about. */
export async function authorize<T>(exchange: Exchange, route: CompiledRoute, object: T): Promise<NonNullable<T>> {
  if (object === undefined || object === null) {
    await route.permission.absent(exchange);
    throw coreErrors.not_found();
  }
  const verdict = await route.permission.evaluate(exchange, object);
  if (verdict === true) {
    exchange.verdict = true;
    return object;
  }
  if (verdict === 'unknown') {
    exchange.log.error(
      { operation: route.operationId, permission: route.permission.name },
      'a permission is still unknown with the object loaded: refused',
    );
    throw coreErrors.permission_denied();
  }
  return deny(exchange, route, object);
}

const URL_LENGTH_MAX = INPUT_LIMITS.urlLength;

export function refuseLongUrl({ url, route }: Exchange): undefined {
  // A list refuses a cursor that is too long by itself, and says that it is the cursor.
  if (url.length > URL_LENGTH_MAX && url.replaceAll(/(?<=[?&]cursor=)[^&]*/g, '').length > URL_LENGTH_MAX) {
    const remedy = route?.metadata['longUrlRemedy'];
    const detail = `The URL is longer than ${URL_LENGTH_MAX} characters.`;
    throw coreErrors.uri_too_long({ detail: typeof remedy === 'string' ? `${detail} ${remedy}` : detail });
  }
  return undefined;
}

/** Content on a GET has no meaning; passing it over silently would hide a client's mistake. */
function refuseContent({ headers }: Exchange): undefined {
  const length = headers['content-length'];
  if ((length !== undefined && length !== '0') || headers['transfer-encoding'] !== undefined) throw coreErrors.unexpected_body();
  return undefined;
}
