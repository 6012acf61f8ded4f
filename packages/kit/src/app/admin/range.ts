import type { Dialect } from '../../db/dialect.ts';
import type { AdminRange } from './shapes.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** 12 to 30 bars: enough to see a shape, few enough to read. */
const BUCKETS: Readonly<Record<string, { readonly count: number; readonly ms: number }>> = {
  '1h': { count: 12, ms: 5 * MINUTE_MS },
  '24h': { count: 24, ms: HOUR_MS },
  '7d': { count: 28, ms: 6 * HOUR_MS },
  '30d': { count: 30, ms: DAY_MS },
};

/** A range cut into buckets that begin at round times; the last one is the one that is under way. */
export interface AdminBuckets {
  readonly since: Date;
  readonly until: Date;
  readonly ms: number;
  readonly starts: readonly Date[];
}

/** What a bar may stand for, in a custom range. */
const WIDTHS_MS: readonly number[] = [
  10_000,
  MINUTE_MS,
  5 * MINUTE_MS,
  15 * MINUTE_MS,
  HOUR_MS,
  3 * HOUR_MS,
  6 * HOUR_MS,
  DAY_MS,
  7 * DAY_MS,
  30 * DAY_MS,
];
const BARS_MAX = 36;
/** A shorter one has nothing to show, a longer one is not kept by anything. */
const CHOSEN_MIN_MS = 10_000;
const CHOSEN_MAX_MS = 400 * DAY_MS;

/** The two ends of a custom range; null: it is neither a named range nor a valid custom one. */
export function chosenRange(range: string): { readonly from: Date; readonly to: Date } | null {
  const [from, to, ...rest] = range.split('/').map((text) => new Date(text));
  if (from === undefined || to === undefined || rest.length > 0) return null;
  const ms = to.getTime() - from.getTime();
  return ms >= CHOSEN_MIN_MS && ms <= CHOSEN_MAX_MS ? { from, to } : null;
}

function chosenBuckets(range: string, msMin: number): AdminBuckets {
  const chosen = chosenRange(range);
  if (chosen === null) throw new TypeError(`adminBuckets(): "${range}" is not a time range.`);
  const [from, to] = [chosen.from.getTime(), chosen.to.getTime()];
  const ms = WIDTHS_MS.find((width) => width >= msMin && (to - from) / width <= BARS_MAX) ?? 30 * DAY_MS;
  const first = Math.floor(from / ms) * ms;
  const starts = Array.from({ length: Math.ceil((to - first) / ms) }, (_, index) => new Date(first + index * ms));
  return { since: new Date(first), until: new Date(first + starts.length * ms), ms, starts };
}

/** `msMin`: of what is counted by the hour, a bar stands for an hour or more. */
export function adminBuckets(range: AdminRange, now: Date, msMin = 0): AdminBuckets {
  const usual = BUCKETS[range];
  if (usual === undefined) return chosenBuckets(range, msMin);
  const ms = Math.max(usual.ms, msMin);
  const count = Math.max(1, Math.round((usual.count * usual.ms) / ms));
  const last = Math.floor(now.getTime() / ms) * ms;
  const starts = Array.from({ length: count }, (_, index) => new Date(last - (count - 1 - index) * ms));
  return { since: starts[0] ?? now, until: new Date(last + ms), ms, starts };
}

/** Filters of a list that narrow it to the range. One that goes on until now has no end. */
export function rangeFilters(
  { since, until }: AdminBuckets,
  now: Date,
  [from, to]: readonly [string, string] = ['since', 'until'],
): Readonly<Record<string, string>> {
  return { [from]: since.toISOString(), ...(until <= now ? { [to]: until.toISOString() } : {}) };
}

/** SQL for the number of the bucket a moment falls into, from 0. `column` holds timestamps, and none before `since`. */
export function bucketSql(column: string, dialect: Dialect, { since, ms }: Pick<AdminBuckets, 'since' | 'ms'>): string {
  const first = since.getTime() / 1000;
  const seconds = dialect === 'postgres' ? `extract(epoch from ${column})` : `unixepoch(${column})`;
  const number = `(${seconds} - ${first}) / ${ms / 1000}`;
  return dialect === 'postgres' ? `cast(floor(${number}) as integer)` : `cast(${number} as integer)`;
}
