import type { Membership } from '../../auth/people/membership.ts';
import type { Principal } from '../../auth/people/principal.ts';
import { ruleResult } from '../../auth/rights/rule-result.ts';
import { isProbe, noteReads } from '../../http/serve/call-route.ts';
import type { Exchange } from '../../http/exchange/exchange.ts';
import type { TenantSource } from './tenant-source.ts';

interface KnownTenant {
  readonly principal: Principal | null;
  readonly tenant: string | null;
  readonly membership: Membership | null;
  /** Why the caller has none: it is suspended, or of others. */
  readonly refusal?: { readonly error: unknown };
}

/** By the request around the probes. */
const known = new WeakMap<Exchange, KnownTenant>();

/**
 * The tenant that the app's resolver finds for a request. A list of tools asks for each tool, which has a route and no arguments yet: a resolver that looks
 * at nothing of the route is asked once for all of them, and one that looks at arguments cannot know the tenant yet.
 */
export function askedTenant(exchange: Exchange, resolve: NonNullable<TenantSource['tenant']>): string | null | Promise<string | null> {
  if (exchange.parent === null || !isProbe(exchange)) {
    const found = resolve(exchange);
    return typeof found === 'object' && found !== null ? Promise.resolve(found).then(tenantResult) : tenantResult(found);
  }
  return tenantOfProbe(exchange, exchange.parent, resolve);
}

/** A resolver says "none" by null. So does an empty string, which a header of a client may be. */
export function tenantResult(found: unknown): string | null {
  return ruleResult('tenant', 'createApp()', found) || null;
}

async function tenantOfProbe(exchange: Exchange, parent: Exchange, resolve: NonNullable<TenantSource['tenant']>): Promise<string | null> {
  const { principal } = exchange;
  const before = known.get(parent);
  if (before !== undefined && before.principal === principal) {
    if (before.refusal !== undefined) throw before.refusal.error;
    exchange.knownMembership = before.membership;
    return openUnlessNamed(exchange, before.tenant);
  }
  const reads = noteReads(exchange);
  let tenant: string | null = null;
  try {
    tenant = tenantResult(await resolve(exchange));
  } catch (error) {
    if (!reads.hasReadCall) known.set(parent, { principal, tenant: null, membership: null, refusal: { error } });
    if (!reads.hasReadParams && !reads.hasReadUrl) throw error;
  }
  if (!reads.hasReadCall) known.set(parent, { principal, tenant, membership: exchange.knownMembership });
  if (!reads.hasReadParams && !(reads.hasReadUrl && isOfArguments(tenant))) return openUnlessNamed(exchange, tenant);
  exchange.isTenantOpen = true;
  exchange.knownMembership = null;
  return null;
}

/** A call can name the tenant in the header of its route, where the request around it names none. */
function openUnlessNamed(exchange: Exchange, tenant: string | null): string | null {
  if (tenant === null && exchange.principal !== null && exchange.route?.tenantHeader !== undefined)
    exchange.isTenantOpen = exchange.takesTenant = true;
  return tenant;
}

/** A resolver that takes the tenant from the URL finds the name of the parameter there, or nothing. */
function isOfArguments(tenant: string | null): boolean {
  return tenant === null || tenant === '' || tenant.includes(':');
}
