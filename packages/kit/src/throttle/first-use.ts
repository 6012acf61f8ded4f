import { coreErrors } from '../errors/core-errors.ts';
import type { ThrottleStorage } from './storage.ts';

/** True for the first call with this key within the time. What a storage that does not answer lets pass unmeasured may be a second one: 503. */
export async function firstUse(storage: ThrottleStorage, key: string, forMs: number, now: Date): Promise<boolean> {
  const { allowed, unmeasured } = await storage.take(key, { count: 1, periodMs: forMs }, now);
  if (unmeasured === true)
    throw coreErrors.unavailable({
      headers: { 'retry-after': '1' },
      message: 'the throttle storage does not answer: nobody knows whether this was used before',
    });
  return allowed;
}
