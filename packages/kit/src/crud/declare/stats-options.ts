import type { Metric } from './metric.ts';

export interface StatsOptions<N extends string = string> {
  /** Columns that rows may be grouped by; timestamps and dates by hour, day, week, month or year. */
  readonly by?: readonly N[];
  readonly metrics: Readonly<Record<string, Metric<N>>>;
}
