import { BlockingWatch } from '../../http/exchange/blocking-watch.ts';
import type { Exchange } from '../../http/exchange/exchange.ts';
import type { Host } from '../../http/exchange/host.ts';
import { tenantResult } from '../tenants/asked-tenant.ts';
import { tenantWords } from '../tenants/tenant-places.ts';
import type { AppOptions } from '../declare/options.ts';
import type { Registry } from '../declare/registry.ts';
import type { AppPlan } from './plan-app.ts';
import { tenantOfRequest } from './tenant-of-request.ts';

/** What requests use of the app; its databases open later. */
export function createHost(
  plan: AppPlan,
  options: AppOptions,
  { audit, standings, viewing }: Registry,
  life: Pick<Host, 'draining' | 'stopping' | 'track'>,
): Host {
  const { databases, services, clock, log, settings, trustedProxies, throttleStorage, inputLimits } = plan;
  const { tenant, membership, memberships } = plan.tenants;
  const isProved = membership !== undefined || typeof memberships === 'function';
  return {
    get db() {
      return databases.get('default');
    },
    get databases() {
      return databases.all;
    },
    replicas: plan.replicas,
    services,
    audit,
    clock,
    log,
    errorFormat: settings.errorFormat,
    responseChecks: settings.responseChecks,
    errors: options.errors === undefined ? [] : [options.errors],
    rules: options.rules ?? {},
    trustedProxies,
    throttleStorage,
    throttleRates: settings.throttleRates,
    namesTenant: tenantWords([plan.tenants.tenantParameter ?? []].flat()),
    tenantManagers: plan.tenants.directory?.managers,
    tenantOf: tenantOfRequest(plan.tenants),
    tenantNow: tenant === undefined || isProved ? undefined : async (exchange) => tenantResult(await tenant(exchange as Exchange)),
    standings,
    viewing,
    blocking: new BlockingWatch(settings.warnBlockingMs, log),
    inputLimits,
    ...life,
  };
}
