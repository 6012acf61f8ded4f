import type { Random } from './random.ts';

export interface NumberConstraints {
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly multipleOf?: number;
}

/** How far from the lowest allowed value samples are drawn: small numbers read better in a failing test. */
const SPREAD = 1000;

const decimals = (value: number): number => {
  const [, fraction = '', exponent = '0'] = /^-?\d+(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value)) ?? [];
  return Math.max(0, fraction.length - Number(exponent));
};

/** A number on the grid of `multipleOf` (or of hundredths) inside the bounds. */
export function sampleNumber(constraints: NumberConstraints, integer: boolean, random: Random): number {
  const { minimum = -Infinity, maximum = Infinity, exclusiveMinimum = -Infinity, exclusiveMaximum = Infinity } = constraints;
  const step = constraints.multipleOf ?? (integer ? 1 : 0.01);
  const grid = integer && !Number.isInteger(step) ? 10 ** decimals(step) * step : step;
  const low = Math.max(minimum, exclusiveMinimum);
  const high = Math.min(maximum, exclusiveMaximum);
  const inside = (value: number): boolean => value >= minimum && value <= maximum && value > exclusiveMinimum && value < exclusiveMaximum;
  const start = low === -Infinity ? (high === Infinity || high >= 1 ? grid : high - SPREAD * grid) : low;
  const first = Math.ceil(start / grid);
  const last = Math.min(Math.floor(high / grid), first + SPREAD);
  for (let attempt = 0; attempt < 20; attempt += 1) {
    if (last < first) break;
    const value = Number((random.int(first, last) * grid).toFixed(Math.min(100, decimals(grid))));
    if (inside(value)) return value;
  }
  // Between two neighbours of the grid there may still be room when nothing prescribes the grid.
  const middle = low === -Infinity ? high - 1 : high === Infinity ? low + 1 : (low + high) / 2;
  const fallback = [low, high, middle].find((value) => Number.isFinite(value) && inside(value) && (!integer || Number.isInteger(value)));
  if (constraints.multipleOf === undefined && fallback !== undefined) return fallback;
  throw new Error(
    `No ${integer ? 'integer' : 'number'} lies between ${low} and ${high}${constraints.multipleOf === undefined ? '' : ` that is a multiple of ${step}`}.`,
  );
}
