/** What a label may say: one of a closed list, or one of the first `max` values seen. Everything else is counted as `other`. */
export type LabelValues = readonly string[] | { readonly max: number };

export type Labels<L extends string> = Readonly<Record<L, string>>;

export interface MetricOptions<L extends string> {
  /** Lower case with the unit last: `kit_webhooks_send_duration_seconds`. A counter ends in `_total`. */
  readonly name: string;
  readonly help: string;
  /** Every label is bounded, because each combination of values is a time series that is kept forever. */
  readonly labels?: Readonly<Record<L, LabelValues>>;
}

export interface HistogramOptions<L extends string> extends MetricOptions<L> {
  /** Upper bounds, ascending. Default: those for durations in seconds. */
  readonly buckets?: readonly number[];
}

export interface GaugeOptions<L extends string> extends MetricOptions<L> {
  /**
   * Asked at every scrape. A number for a gauge without labels; null for "no value now". It may ask the database: a read that fails or takes
   * too long leaves the gauge out of that scrape.
   */
  read(): GaugeReading<L> | Promise<GaugeReading<L>>;
}

export type GaugeReading<L extends string> = number | null | readonly { readonly labels: Labels<L>; readonly value: number }[];

export interface Counter<L extends string = never> {
  add(labels: Labels<L>, by?: number): void;
}

export interface Histogram<L extends string = never> {
  observe(labels: Labels<L>, value: number): void;
}

/** Where a module declares its metrics. The names are checked and must be unique in the application. */
export interface MetricRegistry {
  counter<L extends string = never>(options: MetricOptions<L>): Counter<L>;
  histogram<L extends string = never>(options: HistogramOptions<L>): Histogram<L>;
  gauge<L extends string = never>(options: GaugeOptions<L>): void;
}
