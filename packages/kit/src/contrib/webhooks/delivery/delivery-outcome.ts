// What an attempt means for its delivery and its endpoint: the state tables of the module as one pure function.
// The worker applies the returned decision with one conditional statement.
import { nextAttemptAt, retryAfterSeconds } from '../endpoints/retry-schedule.ts';
import type { RetryOptions } from '../endpoints/retry-schedule.ts';

export type FailureReason =
  | 'http_status'
  | 'timeout'
  | 'connection'
  | 'tls'
  | 'blocked_address'
  | 'audience_changed'
  | 'endpoint_disabled'
  | 'secret_unavailable'
  | 'payload';

/** The result of one attempt. `refused` means that nothing was sent. */
export type AttemptResult =
  | { readonly kind: 'response'; readonly status: number; readonly retryAfter: string | null }
  /** A destination has stored it. */
  | { readonly kind: 'accepted' }
  | {
      readonly kind: 'failure';
      readonly reason: 'timeout' | 'connection' | 'tls' | 'blocked_address' | 'payload';
      readonly error: string;
      /** The status, when the head of the response arrived before the failure. */
      readonly status: number | null;
    }
  | {
      readonly kind: 'refused';
      readonly reason: 'audience_changed' | 'endpoint_disabled' | 'secret_unavailable' | 'payload';
      readonly error: string;
    };

export interface EndpointHealth {
  readonly failingSince: Date | null;
  readonly consecutiveFailures: number;
}

export interface OutcomeOptions extends RetryOptions {
  /** Continuous failure after which an endpoint is disabled, in milliseconds. */
  readonly disableAfterMs: number;
}

export const DEFAULT_DISABLE_AFTER_MS = 5 * 24 * 60 * 60 * 1000;

export interface DeliveryChange {
  readonly status: 'succeeded' | 'pending' | 'failed';
  readonly attempts: number;
  readonly nextAttemptAt: Date | null;
  readonly deliveredAt: Date | null;
  readonly lastStatusCode: number | null;
  readonly lastError: string | null;
  /** Why the last attempt failed; on a pending delivery it explains the retry. */
  readonly failureReason: FailureReason | null;
}

export interface Outcome {
  readonly delivery: DeliveryChange;
  /** Null when the attempt says nothing about the receiver's health. */
  readonly health: EndpointHealth | null;
  /**
   * Set when this attempt is a reason to disable the endpoint. Whether it is disabled is decided on the row as it is then: if so, its pending
   * deliveries fail, this one too; if not (another request has succeeded meanwhile), this one is retried.
   */
  readonly disable: 'gone' | 'continuous_failure' | null;
}

/** Failures that a later attempt cannot mend, or that are ours: final at once, and not held against the endpoint. */
const FINAL_REASONS: ReadonlySet<FailureReason> = new Set([
  'blocked_address',
  'audience_changed',
  'endpoint_disabled',
  'secret_unavailable',
  'payload',
]);

const GONE = 410;

export function decideOutcome(
  attemptsBefore: number,
  result: AttemptResult,
  health: EndpointHealth,
  now: Date,
  options: OutcomeOptions,
): Outcome {
  const attempts = result.kind === 'refused' ? attemptsBefore : attemptsBefore + 1;
  if (result.kind === 'accepted') return succeeded(attempts, null, now);
  const status = result.kind === 'refused' ? null : result.status;
  if (result.kind === 'response' && isSuccess(result.status)) return succeeded(attempts, result.status, now);

  const reason = result.kind === 'response' ? 'http_status' : result.reason;
  const error = result.kind === 'response' ? `The receiver returned ${result.status}.` : result.error;
  const failed = { attempts, deliveredAt: null, lastStatusCode: status, lastError: error, nextAttemptAt: null, status: 'failed' } as const;
  if (FINAL_REASONS.has(reason)) return { delivery: { ...failed, failureReason: reason }, health: null, disable: null };

  const failingSince = health.failingSince ?? now;
  const disable = disableReason(status, failingSince, now, options.disableAfterMs);
  const failing = { failingSince, consecutiveFailures: health.consecutiveFailures + 1 };
  const pause = result.kind === 'response' ? retryAfterSeconds(result.retryAfter, now) : null;
  const next = nextAttemptAt(attempts, now, pause, options);
  if (next === null) return { delivery: { ...failed, failureReason: reason }, health: failing, disable };
  return { delivery: { ...failed, status: 'pending', nextAttemptAt: next, failureReason: reason }, health: failing, disable };
}

function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299;
}

function succeeded(attempts: number, status: number | null, now: Date): Outcome {
  return {
    delivery: {
      status: 'succeeded',
      attempts,
      nextAttemptAt: null,
      deliveredAt: now,
      lastStatusCode: status,
      lastError: null,
      failureReason: null,
    },
    health: { failingSince: null, consecutiveFailures: 0 },
    disable: null,
  };
}

function disableReason(status: number | null, failingSince: Date, now: Date, disableAfterMs: number): Outcome['disable'] {
  if (status === GONE) return 'gone';
  return now.getTime() - failingSince.getTime() >= disableAfterMs ? 'continuous_failure' : null;
}
