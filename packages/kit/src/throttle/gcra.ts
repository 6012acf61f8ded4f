import type { Rate } from './rate.ts';
import type { ThrottleDecision } from './storage.ts';

// The generic cell rate algorithm. A budget is one number, the theoretical arrival time (TAT): the moment at which
// the budget would be whole again. A request moves it one interval (period / count) into the future and is admitted
// while it stays within one window of now. So an idle caller may use the whole count at once and then regains one
// request per interval; unlike a fixed window, no second burst waits behind an edge. In any span of length t at most
// count + t / interval requests are admitted.
//
// Times are whole microseconds: integers are exact in JavaScript, in Lua's doubles (until the year 2255) and in SQL,
// and all storages must agree on every decision.

/**
 * A TAT further ahead than its window can only have been written under a clock that has since been set back. Up to
 * this much is taken for skew between processes; beyond it the state is void, or a clock that once ran a year ahead
 * would lock its callers out for a year.
 */
export const SKEW_US_MAX = 60_000_000;

/** One rate and cost in the algorithm's own units; SQL and Redis take these numbers as parameters. */
export interface Gcra {
  readonly nowUs: number;
  /** How far one request of this cost moves the TAT. */
  readonly incrementUs: number;
  /** How far ahead of now the TAT may go. */
  readonly windowUs: number;
  /** A TAT beyond this moment is void. */
  readonly horizonUs: number;
}

/** Rounded up: a rate that does not divide its period is never exceeded, at most one microsecond per request slower. */
function intervalUs(rate: Rate): number {
  return Math.ceil((rate.periodMs * 1000) / rate.count);
}

export function gcra(rate: Rate, now: Date, cost = 1): Gcra {
  if (!Number.isInteger(cost) || cost < 1 || cost > rate.count) {
    throw new RangeError(`A request's cost is an integer from 1 to the rate's count ${rate.count}, not ${cost}.`);
  }
  const nowUs = now.getTime() * 1000;
  const windowUs = intervalUs(rate) * rate.count;
  return { nowUs, incrementUs: intervalUs(rate) * cost, windowUs, horizonUs: nowUs + windowUs + SKEW_US_MAX };
}

/** The TAT after admitting the request, or null when it must be refused. */
export function admit(tatUs: number | undefined, { nowUs, incrementUs, windowUs, horizonUs }: Gcra): number | null {
  const base = tatUs === undefined || tatUs <= nowUs || tatUs > horizonUs ? nowUs : tatUs;
  const next = base + incrementUs;
  return next - nowUs <= windowUs ? next : null;
}

/** The answer for a request after which (or, when refused, at which) the TAT stands at `tatUs`. */
export function describe(allowed: boolean, tatUs: number, rate: Rate, { nowUs, incrementUs, windowUs }: Gcra): ThrottleDecision {
  const usedUs = Math.max(0, tatUs - nowUs);
  const interval = intervalUs(rate);
  const remaining = Math.max(0, Math.floor((windowUs - usedUs) / interval));
  return {
    allowed,
    limit: rate.count,
    remaining,
    resetMs: Math.ceil(usedUs / 1000),
    nextMs: Math.ceil(Math.max(0, usedUs + (remaining + 1) * interval - windowUs) / 1000),
    retryAfterMs: allowed ? 0 : Math.ceil(Math.max(1000, usedUs + incrementUs - windowUs) / 1000),
  };
}
