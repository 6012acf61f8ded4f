/** What a metric of `stats` computes of the rows of a group. */
export type MetricKind = 'count' | 'countDistinct' | 'sum' | 'avg' | 'min' | 'max';

export interface Metric<N extends string = string> {
  readonly isMetric: true;
  readonly kind: MetricKind;
  /** Null for `count()`. */
  readonly column: N | null;
}

function metric<const N extends string>(kind: MetricKind, column: N | null): Metric<N> {
  return Object.freeze({ isMetric: true, kind, column });
}

/** How many rows. */
export function count(): Metric<never> {
  return metric<never>('count', null);
}

/** How many different values, NULL not counted. */
export function countDistinct<const N extends string>(column: N): Metric<N> {
  return metric('countDistinct', column);
}

/** The exact sum of a number column: a number for `int` and `float`, text for `bigint` and `decimal`. Null of no values. */
export function sum<const N extends string>(column: N): Metric<N> {
  return metric('sum', column);
}

/** The mean of a number column: text with four more digits for `decimal`, a number otherwise. Null of no values. */
export function avg<const N extends string>(column: N): Metric<N> {
  return metric('avg', column);
}

/** The smallest value of a number, text, date or timestamp column. Null of no values. */
export function min<const N extends string>(column: N): Metric<N> {
  return metric('min', column);
}

/** The largest value of a number, text, date or timestamp column. Null of no values. */
export function max<const N extends string>(column: N): Metric<N> {
  return metric('max', column);
}

export function isMetric(value: unknown): value is Metric {
  return typeof value === 'object' && value !== null && (value as Partial<Metric>).isMetric === true;
}

const NUMBERS: readonly string[] = ['int', 'bigint', 'decimal', 'float'];
const ORDERED: readonly string[] = [...NUMBERS, 'text', 'date', 'timestamp'];

/** Kinds of columns the metric can be computed of. */
export function metricKinds(kind: MetricKind): readonly string[] {
  if (kind === 'sum' || kind === 'avg') return NUMBERS;
  return kind === 'countDistinct' ? [...ORDERED, 'uuid', 'enum', 'bool'] : ORDERED;
}
