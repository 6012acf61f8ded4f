import { clientKey } from './client-key.ts';
import { type CheckedRate, toRate, type Rate, type UsualRate } from './rate.ts';
import { throttleName, type Throttle, type ThrottleContext, type ThrottleRates } from './throttle.ts';
import { type OptionRules, readOptions } from '../options/read-options.ts';
import { aFunction, text } from '../options/value-rule.ts';

export interface ThrottleOptions {
  /** The policy's name, when one route carries two throttles of a kind: `burst` and `sustained`. */
  readonly name?: string;
}

const throttleRules: OptionRules<ThrottleOptions> = { name: text };

/**
 * A budget per authenticated user, whatever the credential. Anonymous requests pass.
 *
 * @example
 * ```ts
 * class OrderController extends Controller {
 *   static override readonly throttles = [userThrottle('100/min')];
 * }
 * ```
 */
export function userThrottle<const T extends string = string>(
  rate: Rate | UsualRate | CheckedRate<T>,
  options: ThrottleOptions = {},
): Throttle {
  const { name = 'user' } = readOptions('userThrottle()', options, throttleRules);
  return fixed(name, 'principal', rate, ({ principal }) => principal?.user.id ?? null);
}

/** A budget per client address for requests without a principal. Authenticated requests pass. */
export function anonymousThrottle<const T extends string = string>(
  rate: Rate | UsualRate | CheckedRate<T>,
  options: ThrottleOptions = {},
): Throttle {
  const { name = 'anonymous' } = readOptions('anonymousThrottle()', options, throttleRules);
  return fixed(name, 'principal', rate, ({ principal, clientAddress }) => (principal === null ? clientKey(clientAddress) : null));
}

/**
 * A budget per client address for every request, decided before any credential is looked at.
 *
 * @example
 * ```ts
 * createApp({ throttles: [clientThrottle('600/min')], mount });
 * ```
 */
export function clientThrottle<const T extends string = string>(
  rate: Rate | UsualRate | CheckedRate<T>,
  options: ThrottleOptions = {},
): Throttle {
  const { name = 'client' } = readOptions('clientThrottle()', options, throttleRules);
  return fixed(name, 'client', rate, ({ clientAddress }) => clientKey(clientAddress));
}

export interface TenantThrottleOptions extends ThrottleOptions {
  /** The tenant of a request. Default: the request's own tenant. */
  readonly tenant?: (context: ThrottleContext) => string | null;
}

/** One budget shared by all callers of a tenant. Requests without a tenant pass. */
export function tenantThrottle<const T extends string = string>(
  rate: Rate | UsualRate | CheckedRate<T>,
  options: TenantThrottleOptions = {},
): Throttle {
  const given = readOptions('tenantThrottle()', options, { ...throttleRules, tenant: aFunction });
  return fixed(given.name ?? 'tenant', 'principal', rate, given.tenant ?? (({ tenant }) => tenant));
}

/** A budget whose rate is the entry `name` of THROTTLE_RATES, per user, or per client address when anonymous. */
export function scopedThrottle(name: string): Throttle {
  return {
    name: throttleName(name),
    phase: 'principal',
    key: ({ principal, clientAddress }) => (principal === null ? `client:${clientKey(clientAddress)}` : `user:${principal.user.id}`),
    rate: ({ rates }) => rateNamed(rates, name) ?? null,
    fault: (rates) => (rateNamed(rates, name) === undefined ? missing(name, rates) : null),
  };
}

function fixed(name: string, phase: Throttle['phase'], rate: Rate | string, key: Throttle['key']): Throttle {
  const parsed = toRate(rate);
  return { name: throttleName(name), phase, key, rate: () => parsed };
}

function rateNamed(rates: ThrottleRates, name: string): Rate | undefined {
  return Object.hasOwn(rates, name) ? rates[name] : undefined;
}

function missing(name: string, rates: ThrottleRates): string {
  const known = Object.keys(rates).sort();
  return `THROTTLE_RATES has no rate named "${name}"; ${known.length === 0 ? 'it is empty' : `it has ${known.join(', ')}`}. Add "${name}": "<count>/<period>".`;
}
