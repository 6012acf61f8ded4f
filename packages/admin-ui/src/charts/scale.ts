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

export interface PlacedLabel {
  readonly bucket: number;
  readonly text: string;
  /** Where it begins, from the left end of the plot. */
  readonly x: number;
}

/** About as wide as a character of a label is, in pixels. */
export const CHARACTER_WIDTH = 6.4;
/** Between two labels, in pixels. */
const LABEL_GAP = 12;

/** Labels below their buckets, evenly apart, the first one always: as many as stand side by side. A day is named where it begins. */
export function placedLabels(texts: readonly string[], width: number): PlacedLabel[] {
  const step = width / Math.max(1, texts.length);
  const placed = texts.flatMap((text, bucket): PlacedLabel[] => {
    if (text === texts[bucket - 1]) return [];
    const half = (text.length * CHARACTER_WIDTH) / 2;
    return [{ bucket, text, x: Math.max(0, Math.min(step * (bucket + 0.5) - half, width - half * 2)) }];
  });
  for (let every = 1; every < placed.length; every += 1) {
    const some = placed.filter((_, at) => at % every === 0);
    if (some.every(({ x }, at) => at === 0 || x >= endOf(some[at - 1] as PlacedLabel) + LABEL_GAP)) return some;
  }
  return placed.slice(0, 1);
}

const endOf = ({ x, text }: PlacedLabel): number => x + text.length * CHARACTER_WIDTH;

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
