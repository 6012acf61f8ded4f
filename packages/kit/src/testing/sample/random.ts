/** A small repeatable source of numbers: the same seed gives the same sample on every machine. */
export interface Random {
  /** An integer in [low, high]. */
  int(low: number, high: number): number;
  pick<T>(values: readonly T[]): T;
  chance(probability: number): boolean;
}

/** mulberry32: 32 bits of state, plenty for test payloads, useless for secrets. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d_2b_79_f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const int = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1));
  return {
    int,
    pick: (values) => {
      if (values.length === 0) throw new Error('There is nothing to pick from.');
      return values[int(0, values.length - 1)]!;
    },
    chance: (probability) => next() < probability,
  };
}
