import { parseRate, toRate, type Rate } from '../../../throttle/rate.ts';
import { throttleName, type Throttle } from '../../../throttle/throttle.ts';
import type { ThrottleOptions } from '../../../throttle/throttles.ts';
import { currentApiKey } from './current-key.ts';
import { readOptions } from '../../../options/read-options.ts';
import { text } from '../../../options/value-rule.ts';

/**
 * A budget per API key, which survives rotation. The key's own `rate_limit` overrides the default. Requests without a key pass, so
 * combine it with a per-user or anonymous throttle.
 */
export function ApiKeyRateThrottle(rate: Rate | string, options: ThrottleOptions = {}): Throttle {
  const { name = 'api_key' } = readOptions('ApiKeyRateThrottle()', options, { name: text });
  const fallback = toRate(rate);
  return {
    name: throttleName(name),
    phase: 'principal',
    key: ({ principal }) => (principal === null ? null : (currentApiKey({ principal })?.id ?? null)),
    rate: ({ principal }) => {
      const own = principal === null ? null : (currentApiKey({ principal })?.rate_limit ?? null);
      return own === null ? fallback : parseRate(own);
    },
  };
}
