import { coreErrors } from '../errors/core-errors.ts';
import { memoryStorage } from './memory-storage.ts';
import type { Rate } from './rate.ts';
import type { ThrottleDecision, ThrottleLog, ThrottleStorage, ThrottleStorageContext } from './storage.ts';
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

/** After a failure the storage is left alone this long, so that requests do not queue behind its timeout. */
const PAUSE_MS = 1000;
/** One record per failure would drown the log exactly when it is needed. */
const LOG_EVERY_MS = 10_000;

/** Wraps a storage that can fail. Failures are logged as errors with what is being done instead. */
export function survivingFailure(storage: ThrottleStorage, name: string, options: StorageFailureOptions = {}): ThrottleStorage {
  const { onFailure = 'local', timeoutMs = 500 } = options;
  const local = memoryStorage();
  let log: ThrottleLog | undefined;
  // Real time, not the app's clock: these measure the storage, and must pass while a test's clock stands still.
  let pausedUntilMs = 0;
  let loggedAtMs = Number.NEGATIVE_INFINITY;
  let failures = 0;

  const failed = (error: unknown): void => {
    failures += 1;
    const nowMs = performance.now();
    pausedUntilMs = nowMs + PAUSE_MS;
    if (nowMs - loggedAtMs < LOG_EVERY_MS) return;
    loggedAtMs = nowMs;
    log?.error(
      { err: error, storage: name, on_failure: onFailure, failures },
      `The ${name} throttle storage does not answer: ${MEANING[onFailure]}`,
    );
  };

  const recovered = (): void => {
    if (failures === 0) return;
    log?.warn({ storage: name, failures }, `The ${name} throttle storage answers again.`);
    failures = 0;
    loggedAtMs = Number.NEGATIVE_INFINITY;
  };

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
      if (performance.now() < pausedUntilMs) return instead(key, rate, now, cost);
      try {
        const decision = await within(timeoutMs, name, storage.take(key, rate, now, cost));
        recovered();
        return decision;
      } catch (error) {
        failed(error);
        return instead(key, rate, now, cost);
      }
    },
    async giveBack(key, rate, now, cost) {
      if (onFailure === 'local') await local.giveBack(key, rate, now, cost);
      if (performance.now() < pausedUntilMs) return;
      // A budget that stays one request short for an interval is no reason to fail a request that is refused anyway.
      await within(timeoutMs, name, storage.giveBack(key, rate, now, cost)).catch(failed);
    },
    open(context: ThrottleStorageContext) {
      log = context.log;
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

async function within<T>(timeoutMs: number, name: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, fail) => {
    timer = setTimeout(() => fail(new Error(`the ${name} throttle storage did not answer within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
