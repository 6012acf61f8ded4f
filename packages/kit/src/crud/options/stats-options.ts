import type { Metric } from '../declare/metric.ts';

export interface StatsOptions<N extends string = string, X extends string = never> {
  /** Columns, and derived states, that rows may be grouped by; timestamps and dates by hour, day, week, month or year. */
  readonly by?: readonly (N | X)[];
  /** What is counted, by name: `{ orders: count(), revenue: sum('total') }`. */
  readonly metrics: Readonly<Record<string, Metric<N>>>;
}
