// When a failed job is tried again. Pure: time and randomness are passed in.
import type { OptionRules } from '../../../options/read-options.ts';
import { oneOf, rule, wholeNumber } from '../../../options/value-rule.ts';

export interface RetryOptions {
  /** Attempts in all. Default: 5. */
  readonly attempts?: number;
  /** Each pause twice as long as the one before, or all the same. Default: `exponential`. */
  readonly backoff?: 'exponential' | 'fixed';
  /** Before the second attempt. Default: 5. */
  readonly firstDelaySeconds?: number;
  /** No pause is longer. Default: an hour. */
  readonly delaySecondsMax?: number;
}

export type RetryPolicy = Required<RetryOptions>;

const DEFAULT_RETRY: RetryPolicy = Object.freeze({
  attempts: 5,
  backoff: 'exponential',
  firstDelaySeconds: 5,
  delaySecondsMax: 3600,
});

/** Complete and frozen. */
export function retryPolicy(options: RetryOptions): RetryPolicy {
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  return Object.freeze({ ...DEFAULT_RETRY, ...given });
}

/** Jobs that failed together would otherwise all return together. Upward only: the policy stays a promise of "not before". */
const JITTER_RATIO = 0.1;

/** Milliseconds before the next attempt, after so many failed ones. */
export function retryDelayMs(policy: RetryPolicy, attempts: number, random: () => number): number {
  const { backoff, firstDelaySeconds, delaySecondsMax } = policy;
  const factor = backoff === 'exponential' ? 2 ** Math.min(attempts - 1, 40) : 1;
  const seconds = Math.min(firstDelaySeconds * factor, delaySecondsMax);
  return Math.round(seconds * (1 + JITTER_RATIO * random()) * 1000);
}

/** 30 days. No delay is longer: a timestamp in milliseconds that was meant as seconds would never come. */
export const RETRY_DELAY_SECONDS_MAX = 30 * 86_400;

export function isRetryDelay(seconds: unknown): seconds is number {
  return typeof seconds === 'number' && seconds >= 0 && seconds <= RETRY_DELAY_SECONDS_MAX;
}

const aDelay = rule(`a number of seconds from 0 to ${RETRY_DELAY_SECONDS_MAX}`, isRetryDelay);

export const retryRules: OptionRules<RetryOptions> = {
  attempts: wholeNumber(1, 1000),
  backoff: oneOf('exponential', 'fixed'),
  firstDelaySeconds: aDelay,
  delaySecondsMax: aDelay,
};
