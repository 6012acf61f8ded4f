/** Round steps for an axis from zero: at most five, and the last one holds the largest value. */
export function niceTicks(max: number, whole: boolean): number[] {
  if (!(max > 0)) return [0, 1];
  const rough = max / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough) ?? 10 * power;
  const size = whole ? Math.max(1, Math.ceil(step)) : step;
  const ticks = [0];
  while ((ticks.at(-1) ?? 0) < max) ticks.push(Number((ticks.length * size).toPrecision(12)));
  return ticks;
}

/** Which of `count` buckets get a label when `room` labels fit: evenly apart, the first one always. */
export function labelledBuckets(count: number, room: number): number[] {
  const every = Math.max(1, Math.ceil(count / Math.max(1, room)));
  return Array.from({ length: Math.ceil(count / every) }, (_, at) => at * every);
}

export interface Stack {
  readonly from: number;
  readonly to: number;
}

/** Bars on top of each other: per series and bucket, where its piece begins and ends. */
export function stack(series: readonly (readonly (number | null)[])[], buckets: number): Stack[][] {
  const heights = Array.from({ length: buckets }, () => 0);
  return series.map((values) =>
    heights.map((from, bucket) => {
      const to = from + (values[bucket] ?? 0);
      heights[bucket] = to;
      return { from, to };
    }),
  );
}

/** A line as pieces of neighbouring points: a bucket without a value is a gap, not a zero. */
export function pieces(values: readonly (number | null)[]): { at: number; value: number }[][] {
  const found: { at: number; value: number }[][] = [];
  let open: { at: number; value: number }[] | null = null;
  for (const [at, value] of values.entries()) {
    if (value === null) {
      open = null;
      continue;
    }
    if (open === null) found.push((open = []));
    open.push({ at, value });
  }
  return found;
}
