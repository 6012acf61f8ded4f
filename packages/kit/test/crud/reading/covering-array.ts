/** Factors by name, each with its levels. */
export type Factors = Readonly<Record<string, readonly unknown[]>>;
export type Chosen<F extends Factors> = { readonly [K in keyof F]: F[K][number] };

/** Numbers from 0 to 1, the same for the same seed. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    // mulberry32
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const CANDIDATES = 8;

/**
 * Combinations in which every level of every factor meets every level of every other factor. Each combination begins with a pair that none has yet;
 * the other factors take the level that adds the most new pairs, and the best of several tries stays. The same seed gives the same combinations.
 */
export function coveringArray<F extends Factors>(factors: F, seed: number): Chosen<F>[] {
  const random = seededRandom(seed);
  const names = Object.keys(factors);
  const sizes = names.map((name) => (factors[name] as readonly unknown[]).length);
  const key = (a: number, i: number, b: number, j: number) => (a < b ? `${a}:${i}|${b}:${j}` : `${b}:${j}|${a}:${i}`);
  const open = new Map<string, readonly [number, number, number, number]>();
  for (let a = 0; a < names.length; a += 1)
    for (let b = a + 1; b < names.length; b += 1)
      for (let i = 0; i < (sizes[a] as number); i += 1)
        for (let j = 0; j < (sizes[b] as number); j += 1) open.set(key(a, i, b, j), [a, i, b, j]);
  const shuffled = (length: number) => {
    const order = Array.from({ length }, (_, index) => index);
    for (let at = length - 1; at > 0; at -= 1) {
      const other = Math.floor(random() * (at + 1));
      [order[at], order[other]] = [order[other] as number, order[at] as number];
    }
    return order;
  };
  const candidate = () => {
    const pairs = [...open.values()];
    const [a, i, b, j] = pairs[Math.floor(random() * pairs.length)] as readonly [number, number, number, number];
    const levels = new Map([
      [a, i],
      [b, j],
    ]);
    let covered = 1;
    for (const factor of shuffled(names.length)) {
      if (levels.has(factor)) continue;
      let best = { level: 0, gain: -1 };
      for (const level of shuffled(sizes[factor] as number)) {
        let gain = 0;
        for (const [other, chosen] of levels) if (open.has(key(factor, level, other, chosen))) gain += 1;
        if (gain > best.gain) best = { level, gain };
      }
      levels.set(factor, best.level);
      covered += best.gain;
    }
    return { levels, covered };
  };
  const rows: Chosen<F>[] = [];
  while (open.size > 0) {
    const tried = Array.from({ length: CANDIDATES }, candidate);
    const { levels } = tried.reduce((best, each) => (each.covered > best.covered ? each : best));
    const chosen = [...levels];
    for (const [a, i] of chosen) for (const [b, j] of chosen) if (a < b) open.delete(key(a, i, b, j));
    rows.push(Object.fromEntries(names.map((name, at) => [name, factors[name]?.[levels.get(at) as number]])) as Chosen<F>);
  }
  return rows;
}
