import { ruleResult } from '../auth/rights/rule-result.ts';
import { coreErrors } from '../errors/core-errors.ts';
import type { KitError } from '../errors/kit-error.ts';
import type { Rate } from './rate.ts';
import type { ThrottleDecision, ThrottleStorage } from './storage.ts';
import { budgetKey, type Throttle, type ThrottleContext } from './throttle.ts';

/** One throttle's answer to one request; the RateLimit headers are made of these. */
export interface ThrottleResult {
  readonly policy: string;
  /** The storage key of the budget. */
  readonly budget: string;
  readonly rate: Rate;
  readonly decision: ThrottleDecision;
}

export interface ThrottleOutcome {
  readonly results: readonly ThrottleResult[];
  readonly refused: ThrottleResult | null;
  /** Returns what was taken, for callers that learn later that the request should not count. Nothing is left to return after a refusal. */
  giveBack(): Promise<void>;
}

const NOTHING_TAKEN = (): Promise<void> => Promise.resolve();
const NOTHING_MEASURED: ThrottleOutcome = Object.freeze({ results: Object.freeze([]), refused: null, giveBack: NOTHING_TAKEN });

/**
 * Takes one request from every budget of a phase, in order, until one refuses. What the earlier ones took is then
 * given back: a refused request costs nothing. Budgets of the client phase stay charged when a later phase refuses,
 * because they shield authentication itself, whose work was done. Nothing is taken from the budgets in `spent`.
 */
export async function enforceThrottles(
  throttles: readonly Throttle[],
  phase: Throttle['phase'],
  context: ThrottleContext,
  storage: ThrottleStorage,
  now: Date,
  spent?: ReadonlySet<string>,
): Promise<ThrottleOutcome> {
  const results: ThrottleResult[] = [];
  const taken: { readonly key: string; readonly rate: Rate }[] = [];
  const giveBack = async (): Promise<void> => {
    await Promise.all(taken.map((budget) => storage.giveBack(budget.key, budget.rate, now)));
  };
  for (const throttle of throttles) {
    if (throttle.phase !== phase) continue;
    const owner = `throttle "${throttle.name}"`;
    const subject = ruleResult('throttle key', owner, throttle.key(context));
    const rate = subject === null ? null : (ruleResult('throttle rate', owner, throttle.rate(context)) as Rate | null);
    if (subject === null || rate === null) continue;
    const key = budgetKey(throttle.name, subject, rate);
    if (spent?.has(key) === true) continue;
    const result = { policy: throttle.name, budget: key, rate, decision: await storage.take(key, rate, now) };
    results.push(result);
    if (!result.decision.allowed) {
      await giveBack();
      return {
        results: results.map((earlier) => (earlier === result ? earlier : restored(earlier))),
        refused: result,
        giveBack: NOTHING_TAKEN,
      };
    }
    taken.push({ key, rate });
  }
  return results.length === 0 ? NOTHING_MEASURED : { results, refused: null, giveBack };
}

/** What an admitted result looks like after its request was given back, for the headers of the refusal. */
function restored({ decision, ...result }: ThrottleResult): ThrottleResult {
  const intervalMs = result.rate.periodMs / result.rate.count;
  const remaining = Math.min(decision.limit, decision.remaining + 1);
  return { ...result, decision: { ...decision, remaining, resetMs: Math.max(0, decision.resetMs - intervalMs) } };
}

/** The 429 for a refused request. */
export function throttledError(refused: ThrottleResult): KitError {
  const seconds = Math.max(1, Math.ceil(refused.decision.retryAfterMs / 1000));
  return coreErrors.throttled({
    detail: `Too many requests. Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`,
    extensions: { policy: refused.policy },
    headers: { 'retry-after': String(seconds) },
  });
}
