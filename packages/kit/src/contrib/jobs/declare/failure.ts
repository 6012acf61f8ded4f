import { isKitError } from '../../../errors/kit-error.ts';
import { jobErrors } from '../errors.ts';
import { CODE_LENGTH_MAX, MESSAGE_LENGTH_MAX } from '../models.ts';
import { isRetryDelay, RETRY_DELAY_SECONDS_MAX } from './retry-policy.ts';

const PERMANENT = Symbol.for('kit.jobs.permanent');
const RETRY_AFTER = Symbol.for('kit.jobs.retryAfter');

/** `throw permanent(error)`: the job fails with this error and is not tried again. */
export function permanent(error: unknown): Error {
  const wrapped = new Error('The job failed permanently.', { cause: error });
  return Object.assign(wrapped, { [PERMANENT]: true });
}

/** `throw retryAfter(30, error)`: the next attempt, if any is left, comes after so many seconds, at most 30 days, instead of the usual delay. */
export function retryAfter(seconds: number, error?: unknown): Error {
  if (!isRetryDelay(seconds))
    throw new TypeError(`retryAfter() takes seconds from 0 to ${RETRY_DELAY_SECONDS_MAX} (30 days), got ${String(seconds)}.`, {
      cause: error,
    });
  return Object.assign(new Error('The job asked for a later attempt.', { cause: error }), { [RETRY_AFTER]: seconds });
}

/** What a failed attempt says, and what follows from it. */
export interface Failure {
  /** Shown to callers who may see the job. */
  readonly code: string;
  readonly message: string;
  readonly isPermanent: boolean;
  /** Instead of the policy's pause. */
  readonly retryAfterSeconds: number | null;
  /** Only for the log; undefined when the message says everything. */
  readonly cause: unknown;
}

/** Only errors of a catalog are shown; everything else says `job_failed` and goes to the log. Handlers may throw anything. */
export function failureOf(thrown: unknown): Failure {
  const isPermanent = marked(thrown, PERMANENT) === true;
  const after = marked(thrown, RETRY_AFTER);
  const error = isPermanent || after !== undefined ? (thrown as Error).cause : thrown;
  const retryAfterSeconds = isRetryDelay(after) ? after : null;
  if (isKitError(error)) {
    const { code, detail } = error;
    const message = storable(detail, MESSAGE_LENGTH_MAX);
    return { code: storable(code, CODE_LENGTH_MAX), message, isPermanent, retryAfterSeconds, cause: error };
  }
  const { code, detail } = jobErrors.job_failed;
  return { code, message: detail, isPermanent, retryAfterSeconds, cause: error };
}

function marked(value: unknown, mark: symbol): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<symbol, unknown>)[mark] : undefined;
}

/** Text that every database stores. */
export function storable(text: string, lengthMax: number): string {
  return text.slice(0, lengthMax).toWellFormed().replaceAll('\0', '\uFFFD');
}
