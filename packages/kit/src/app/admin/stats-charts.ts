import type { PortalChart } from './portal-page.ts';
import { adminBuckets, type AdminBuckets } from './range.ts';
import type { AdminChart } from './sections.ts';
import type { AdminRange } from './shapes.ts';

type Item = Readonly<Record<string, unknown>>;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** One question for the statistics of a list. */
export interface ChartPlan {
  readonly query: Readonly<Record<string, string>>;
  /** The member of each row that has the time. */
  readonly time: string;
  readonly buckets: AdminBuckets;
}

/** What to ask for the charts of a range. `isDate`: the column has days, and no time of the day. */
export function chartPlan({ time, since, by, series }: PortalChart, isDate: boolean, range: AdminRange, now: Date): ChartPlan {
  const buckets = adminBuckets(range, now, isDate ? DAY_MS : HOUR_MS);
  // Statistics have groups by the hour and by the day, and at most a thousand of them.
  const group = isDate ? time : `${time}__${buckets.ms % DAY_MS === 0 ? 'day' : 'hour'}`;
  const from = buckets.since.toISOString();
  const metrics = new Set(series.flatMap(({ metric, weight }) => (weight === undefined ? [metric] : [metric, weight])));
  return {
    time: group,
    buckets,
    query: {
      group_by: [group, ...(by === undefined ? [] : [by])].join(','),
      metrics: [...metrics].join(','),
      [since]: isDate ? from.slice(0, 10) : from,
    },
  };
}

/** The chart of the rows that the statistics returned. Sums are 0 where there is no row, a mean of nothing has no value. */
export function drawnChart(
  { title, kind, unit, by, series }: PortalChart,
  { time, buckets }: ChartPlan,
  rows: readonly Item[],
): AdminChart {
  const { since, ms, starts } = buckets;
  const placed = rows.map((row) => ({ row, index: Math.floor((Date.parse(String(row[time])) - since.getTime()) / ms) }));
  const inBucket = Map.groupBy(placed, ({ index }) => index);
  const isAnything = placed.some(({ index }) => index >= 0 && index < starts.length);
  return {
    title,
    kind,
    unit,
    buckets: starts.map((start) => start.toISOString()),
    series: isAnything
      ? series.map(({ name, tone, metric, weight, value }) => ({
          name,
          tone,
          values: starts.map((_, index) => {
            const found = (inBucket.get(index) ?? []).map(({ row }) => row).filter((row) => by === undefined || String(row[by]) === value);
            return weight === undefined ? total(found, metric) : mean(found, metric, weight);
          }),
        }))
      : [],
  };
}

const total = (rows: readonly Item[], metric: string): number => rows.reduce((sum, row) => sum + Number(row[metric] ?? 0), 0);

function mean(rows: readonly Item[], metric: string, weight: string): number | null {
  const weights = total(rows, weight);
  if (weights === 0) return null;
  return rows.reduce((sum, row) => sum + Number(row[metric] ?? 0) * Number(row[weight] ?? 0), 0) / weights;
}
