import { createHash } from 'node:crypto';
import type { Principal } from '../auth/people/principal.ts';
import type { Rate } from './rate.ts';

/** Rates by name, from the setting THROTTLE_RATES. */
export type ThrottleRates = Readonly<Record<string, Rate>>;

/** What a throttle may look at to choose a budget. In the client phase the caller is not authenticated yet. */
export interface ThrottleContext {
  readonly clientAddress: string;
  readonly principal: Principal | null;
  readonly tenant: string | null;
  readonly rates: ThrottleRates;
  /** The request as the server knows it, for throttles of modules that remember something about it. */
  readonly request?: object;
}

/** Shown by the compiler where a rate stands in place of a throttle: `[userThrottle('100/min')]`. No value has this type. */
export interface UseClientThrottleOrUserThrottle {
  readonly functionIsMissing: never;
}

/** One kind of budget. `client` runs before authentication and shields it; `principal` runs after. */
export interface Throttle {
  /** Names the policy in the RateLimit headers and the budgets in the storage: throttles of one name share budgets. */
  readonly name: string;
  /** `client` is decided before authentication, `principal` after it. */
  readonly phase: 'client' | 'principal';
  /** Whose budget the request uses; null passes unmeasured. */
  key(context: ThrottleContext): string | null;
  /** How large that budget is; null passes unmeasured. */
  rate(context: ThrottleContext): Rate | null;
  /** What is wrong with this throttle under the app's settings, as one sentence. Asked at start-up. */
  fault?(rates: ThrottleRates): string | null;
}

const NAME = /^[a-z][a-z0-9_.-]{0,63}$/;
/** Longer subjects are stored as a digest: keys stay short in every storage, whatever a caller sends. */
const SUBJECT_LENGTH_MAX = 128;

/** The policy name of a throttle; it appears in headers and storage keys, so its alphabet is small. */
export function throttleName(name: string): string {
  if (!NAME.test(name))
    throw new TypeError(`A throttle's name is 1 to 64 of a-z, 0-9, "_", "." and "-", starting with a letter, not ${JSON.stringify(name)}.`);
  return name;
}

/**
 * The storage key of one budget. The rate is part of it: after a rate was changed the old state, counted in other
 * intervals, must not decide about the new one.
 */
export function budgetKey(throttle: string, subject: string, rate: Rate): string {
  const bounded = subject.length > SUBJECT_LENGTH_MAX ? `sha256:${createHash('sha256').update(subject).digest('base64url')}` : subject;
  return `${throttle}:${rate.count}/${rate.periodMs}:${bounded}`;
}

/** Every fault of a route's throttles, each as one sentence. */
export function throttleFaults(throttles: readonly Throttle[], rates: ThrottleRates): string[] {
  const faults: string[] = [];
  const names = new Set<string>();
  for (const throttle of throttles) {
    if (names.has(throttle.name)) {
      faults.push(
        `Two throttles are named "${throttle.name}", so their RateLimit headers and budgets would mix: give one of them another \`name\`.`,
      );
    }
    names.add(throttle.name);
    const fault = throttle.fault?.(rates) ?? null;
    if (fault !== null) faults.push(fault);
  }
  return faults;
}
