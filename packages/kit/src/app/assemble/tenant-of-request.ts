import { ruleResult } from '../../auth/rights/rule-result.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { isKitError } from '../../errors/kit-error.ts';
import type { Exchange } from '../../http/exchange/exchange.ts';
import type { Host } from '../../http/exchange/host.ts';
import { askedTenant } from '../tenants/asked-tenant.ts';
import type { AppOptions } from '../declare/options.ts';
import type { AppPlan } from './plan-app.ts';

/** The tenant of a request: what the app's resolver names, and, where the app knows memberships, only to its members. */
export function tenantOfRequest({ tenant, membership }: AppPlan['tenants']): Host['tenantOf'] {
  return (asked) => {
    const exchange = asked as Exchange;
    // Before the resolver is asked: what it reads of a probe is noted.
    const isBeside = mayBeSuspended(exchange);
    const named = tenant === undefined ? null : askedTenant(exchange, tenant);
    const found = tenant === undefined ? null : withinBinding(exchange, named, membership !== undefined);
    const proved = membership === undefined ? found : provedTenant(exchange, found, membership);
    return knownTenant(exchange, isBeside && proved instanceof Promise ? proved.catch(noneIfSuspended) : proved);
  };
}

/** A person chooses another tenant, leaves a suspended one or resumes it; a credential that is for the tenant alone does none of it. */
function mayBeSuspended({ route, principal }: Exchange): boolean {
  if (route?.isBesideTenants !== true || principal === null || (principal.boundTenant ?? null) !== null) return false;
  return (principal.tenant ?? null) === null || principal.isTenantDefault === true;
}

function noneIfSuspended(error: unknown): null {
  if (isKitError(error, 'tenant_suspended')) return null;
  throw error;
}

/** A credential that is bound to a tenant acts in no other, also where the app's resolver does not look at it. */
function withinBinding(exchange: Exchange, asked: string | null | Promise<string | null>, isProved: boolean): typeof asked {
  const bound = exchange.principal?.boundTenant ?? null;
  if (bound === null || exchange.isTenantOpen) return asked;
  const decide = (found: string | null): string | null => {
    // Where nobody proves the membership, the resolver alone can say that the caller acts for the tenant.
    if (found === null) return bound === '' || !isProved ? null : bound;
    if (bound === '') throw coreErrors.not_a_member();
    if (found !== bound) throw coreErrors.tenant_conflict();
    return found;
  };
  return asked instanceof Promise ? asked.then(decide) : decide(asked);
}

/**
 * The request log shows the tenant only when it was resolved for the request: resolving may cost a query.
 */
function knownTenant(exchange: Exchange, found: string | null | Promise<string | null>): string | null | Promise<string | null> {
  const remember = (tenant: string | null): string | null => (exchange.knownTenant = tenant);
  return found instanceof Promise ? found.then(remember) : remember(found);
}

/** The tenant, once the user is known to be a member: whatever names it (a header, a path, a claim) is only a wish until then. */
async function provedTenant(
  exchange: Exchange,
  asked: string | null | Promise<string | null>,
  membershipOf: NonNullable<AppOptions['membership']>,
): Promise<string | null> {
  const { principal, db } = exchange;
  const tenant = principal === null ? null : await asked;
  if (principal === null || tenant === null) return null;
  const found = await askedOnce(exchange, tenant, () => membershipOf({ user: principal.user, tenant, principal, db }));
  const membership = ruleResult('membership', 'createApp()', found);
  if (membership === null) throw coreErrors.not_a_member();
  if (membership.isSuspended === true) throw coreErrors.tenant_suspended();
  exchange.knownMembership = membership;
  return tenant;
}

type FoundMembership = ReturnType<NonNullable<AppOptions['membership']>>;
const memberships = new WeakMap<Exchange, Map<string, FoundMembership>>();

/** For all that one request asks about a tenant: a list of tools asks for each tool. */
function askedOnce(exchange: Exchange, tenant: string, ask: () => FoundMembership): FoundMembership {
  if (exchange.parent === null) return ask();
  const known = memberships.get(exchange.parent) ?? new Map<string, FoundMembership>();
  memberships.set(exchange.parent, known);
  const found = known.has(tenant) ? (known.get(tenant) as FoundMembership) : ask();
  known.set(tenant, found);
  return found;
}
