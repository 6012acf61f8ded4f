// When a failed delivery is tried again. Pure: time and randomness are passed in.

const SECOND = 1;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Delays between attempts, in seconds: the first attempt is followed by at most seven retries over about 27.5 hours. */
export const DEFAULT_SCHEDULE: RetrySchedule = Object.freeze([
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  10 * HOUR,
]);

/** A receiver may ask for a longer pause, but not park a delivery forever. */
export const RETRY_AFTER_SECONDS_MAX = 24 * HOUR;

/** Deliveries that failed together would otherwise all return together. Upward only: the schedule stays a promise of "not before". */
export const JITTER_RATIO = 0.1;

const DELAYS_MAX = 50;
const DELAY_SECONDS_MAX = 30 * 24 * HOUR;

export type RetrySchedule = readonly number[];

export interface RetryOptions {
  readonly schedule: RetrySchedule;
  /** Returns a number in [0, 1), as `Math.random`; null switches jitter off. */
  readonly random: (() => number) | null;
}

export function parseSchedule(value: unknown): RetrySchedule {
  if (!Array.isArray(value)) throw new TypeError('A retry schedule is a list of delays in seconds, such as [5, 300, 1800].');
  if (value.length > DELAYS_MAX)
    throw new TypeError(`A retry schedule holds at most ${DELAYS_MAX} delays, this one holds ${value.length}.`);
  for (const delay of value) {
    if (typeof delay !== 'number' || !(delay >= 0 && delay <= DELAY_SECONDS_MAX)) {
      throw new TypeError(`Each delay of a retry schedule is a number of seconds from 0 to ${DELAY_SECONDS_MAX}.`);
    }
  }
  return Object.freeze([...(value as number[])]);
}

/**
 * When to try again after `attempts` failed attempts, or null when the schedule is exhausted.
 * `retryAfterSeconds` (already capped) is a floor, never a reason to come back sooner than scheduled.
 */
export function nextAttemptAt(
  attempts: number,
  now: Date,
  retryAfterSeconds: number | null,
  { schedule, random }: RetryOptions,
): Date | null {
  const delay = schedule[attempts - 1];
  if (delay === undefined) return null;
  const jittered = random === null ? delay : delay * (1 + JITTER_RATIO * random());
  return new Date(now.getTime() + Math.round(Math.max(jittered, retryAfterSeconds ?? 0) * 1000));
}

/** Seconds a `Retry-After` header asks for (RFC 9110: delay in seconds or an HTTP date), capped; null when absent or unusable. */
export function retryAfterSeconds(header: string | null | undefined, now: Date): number | null {
  const text = header?.trim() ?? '';
  if (/^\d+$/.test(text)) return Math.min(Number(text), RETRY_AFTER_SECONDS_MAX);
  const date = parseHttpDate(text, now);
  if (date === null) return null;
  return Math.min(Math.max((date - now.getTime()) / 1000, 0), RETRY_AFTER_SECONDS_MAX);
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const DAY = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const TIME = '(?<time>\\d\\d:\\d\\d:\\d\\d)';
// The three forms of RFC 9110, 5.6.7. `Date.parse` is not used: it takes almost any text for a date ("foo 1" is one).
const HTTP_DATES = [
  new RegExp(`^${DAY}, (?<day>\\d\\d) (?<month>[A-Z][a-z]{2}) (?<year>\\d{4}) ${TIME} GMT$`),
  new RegExp(`^[A-Z][a-z]+day, (?<day>\\d\\d)-(?<month>[A-Z][a-z]{2})-(?<year>\\d\\d) ${TIME} GMT$`),
  new RegExp(`^${DAY} (?<month>[A-Z][a-z]{2}) (?<day>[ \\d]\\d) ${TIME} (?<year>\\d{4})$`),
];

function parseHttpDate(text: string, now: Date): number | null {
  for (const pattern of HTTP_DATES) {
    const { day = '', month = '', year = '', time = '' } = pattern.exec(text)?.groups ?? {};
    if (!MONTHS.includes(month)) continue;
    const monthText = String(MONTHS.indexOf(month) + 1).padStart(2, '0');
    const milliseconds = Date.parse(`${fullYear(year, now)}-${monthText}-${day.trim().padStart(2, '0')}T${time}Z`);
    return Number.isNaN(milliseconds) ? null : milliseconds;
  }
  return null;
}

/** Two-digit years (the obsolete form) more than 50 years ahead mean the past century. */
function fullYear(year: string, now: Date): string {
  if (year.length === 4) return year;
  const century = Math.floor(now.getUTCFullYear() / 100) * 100;
  const candidate = century + Number(year);
  return String(candidate > now.getUTCFullYear() + 50 ? candidate - 100 : candidate);
}
