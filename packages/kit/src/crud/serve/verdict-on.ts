import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import type { Exchange } from '../../http/exchange/exchange.ts';
import type { Verdict } from '../../permissions/permission.ts';

/** What the permission of another route decides for the caller of a request, with the method and the scope of that route. */
export function verdictOn(route: CompiledRoute, exchange: Exchange, object?: unknown): Verdict | Promise<Verdict> {
  const { url, headers, principal, user, tenant, db, rules } = exchange;
  const context = {
    method: route.method,
    url,
    headers,
    principal,
    user,
    tenant,
    get membership() {
      return exchange.membership;
    },
    get isTenantOpen() {
      return exchange.isTenantOpen;
    },
    scope: route.scope,
    audience: exchange.audience,
    db,
    rules,
    route,
  };
  return route.permission.evaluate(context, object);
}
