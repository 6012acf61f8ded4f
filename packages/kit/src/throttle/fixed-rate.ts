import type { Rate } from './rate.ts';
import type { Throttle, ThrottleRates } from './throttle.ts';

/** The rate of a throttle that has one for everybody; null where it depends on the request. */
export function fixedRate(throttle: Throttle, rates: ThrottleRates = {}): Rate | null {
  try {
    return throttle.rate({ clientAddress: '', principal: null, tenant: null, rates });
  } catch {
    return null;
  }
}
