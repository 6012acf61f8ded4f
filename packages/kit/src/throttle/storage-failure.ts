import { coreErrors } from '../errors/core-errors.ts';
import { memoryStorage } from './memory-storage.ts';
import { Outage } from './outage.ts';
import type { Rate } from './rate.ts';
import type { ThrottleDecision, ThrottleStorage, ThrottleStorageContext } from './storage.ts';
import type { OptionRules } from '../options/read-options.ts';
import { milliseconds, oneOf } from '../options/value-rule.ts';

export interface StorageFailureOptions {
  /**
   * What happens to requests while the storage does not answer.
   * `local` (default): each process limits on its own at the full rate, so N processes admit at most N times the rate.
   * `allow`: requests pass unmeasured. `refuse`: requests get 503 `unavailable`.
   */
  readonly onFailure?: 'local' | 'allow' | 'refuse';
  /** An answer later than this counts as a failure (default 500). */
  readonly timeoutMs?: number;
}

export const storageFailureRules: OptionRules<StorageFailureOptions> = {
  onFailure: oneOf('local', 'allow', 'refuse'),
  timeoutMs: milliseconds(1),
};

/** Wraps a storage that can fail. Failures are logged as errors with what is being done instead. */
export function survivingFailure(storage: ThrottleStorage, name: string, options: StorageFailureOptions = {}): ThrottleStorage {
  const { onFailure = 'local', timeoutMs = 500 } = options;
  const local = memoryStorage();
  const outage = new Outage(timeoutMs, {
    storage: name,
    what: 'throttle storage',
    meanwhile: MEANING[onFailure],
    details: { on_failure: onFailure },
  });

  const instead = (key: string, rate: Rate, now: Date, cost?: number): Promise<ThrottleDecision> => {
    if (onFailure === 'local') return local.take(key, rate, now, cost);
    if (onFailure === 'refuse') {
      throw coreErrors.unavailable({
        headers: { 'retry-after': '1' },
        message: `the ${name} throttle storage does not answer and onFailure is "refuse"`,
      });
    }
    return Promise.resolve({
      allowed: true,
      limit: rate.count,
      remaining: rate.count,
      resetMs: 0,
      nextMs: 0,
      retryAfterMs: 0,
      unmeasured: true,
    });
  };

  return {
    async take(key, rate, now, cost) {
      const decision = await outage.attempt(() => storage.take(key, rate, now, cost));
      return decision === undefined ? instead(key, rate, now, cost) : decision.value;
    },
    async giveBack(key, rate, now, cost) {
      if (onFailure === 'local') await local.giveBack(key, rate, now, cost);
      // A budget that stays one request short for an interval is no reason to fail a request that is refused anyway.
      await outage.attempt(() => storage.giveBack(key, rate, now, cost));
    },
    open(context: ThrottleStorageContext) {
      outage.log = context.log;
      storage.open?.(context);
    },
    async close() {
      await storage.close?.();
    },
  };
}

const MEANING = {
  local: 'each process limits on its own until it does.',
  allow: 'requests are NOT limited until it responds.',
  refuse: 'throttled routes answer 503 until it does.',
} as const;
