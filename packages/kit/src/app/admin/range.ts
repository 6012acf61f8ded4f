import type { Dialect } from '../../db/dialect.ts';
import type { AdminRange } from './shapes.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** 12 to 30 bars: enough to see a shape, few enough to read. */
const BUCKETS: Readonly<Record<AdminRange, { readonly count: number; readonly ms: number }>> = {
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

export function adminBuckets(range: AdminRange, now: Date): AdminBuckets {
  const { count, ms } = BUCKETS[range];
  const last = Math.floor(now.getTime() / ms) * ms;
  const starts = Array.from({ length: count }, (_, index) => new Date(last - (count - 1 - index) * ms));
  return { since: starts[0] ?? now, until: new Date(last + ms), ms, starts };
}

/** SQL for the number of the bucket a moment falls into, from 0. `column` holds timestamps, and none before `since`. */
export function bucketSql(column: string, dialect: Dialect, { since, ms }: Pick<AdminBuckets, 'since' | 'ms'>): string {
  const first = since.getTime() / 1000;
  const seconds = dialect === 'postgres' ? `extract(epoch from ${column})` : `unixepoch(${column})`;
  const number = `(${seconds} - ${first}) / ${ms / 1000}`;
  return dialect === 'postgres' ? `cast(floor(${number}) as integer)` : `cast(${number} as integer)`;
}
