import type { ThrottleResult } from './enforce.ts';

type Measured = Pick<ThrottleResult, 'policy' | 'rate' | 'decision'>;

/**
 * The headers of an answer governed by these throttles. `RateLimit-Limit`, `-Remaining` and `-Reset` (from earlier
 * drafts, still what most clients read) state the tightest budget; `RateLimit-Policy` and `RateLimit` (draft 11 of
 * draft-ietf-httpapi-ratelimit-headers, structured fields) list all. `-Reset` counts to a whole budget, `t` to the
 * next request the client gains: within it no more than `r` can be used, which is how the draft defines it.
 */
export function rateLimitHeaders(results: readonly Measured[]): Record<string, string> {
  const measured = results.filter(({ decision }) => decision.unmeasured !== true);
  const tightest = measured.reduce<Measured | undefined>((a, b) => (a === undefined || isTighter(b, a) ? b : a), undefined);
  if (tightest === undefined) return {};
  return {
    'ratelimit-limit': String(tightest.decision.limit),
    'ratelimit-remaining': String(tightest.decision.remaining),
    'ratelimit-reset': String(seconds(tightest.decision.resetMs)),
    'ratelimit-policy': measured.map(({ policy, rate }) => `"${policy}";q=${rate.count};w=${seconds(rate.periodMs)}`).join(', '),
    ratelimit: measured.map(({ policy, decision }) => `"${policy}";r=${decision.remaining};t=${seconds(decision.nextMs)}`).join(', '),
  };
}

function isTighter(a: Measured, b: Measured): boolean {
  if (a.decision.allowed !== b.decision.allowed) return !a.decision.allowed;
  if (a.decision.remaining !== b.decision.remaining) return a.decision.remaining < b.decision.remaining;
  return a.decision.resetMs > b.decision.resetMs;
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1000);
}
