/** A value and how often it occurred. */
export interface Weighted {
  readonly value: number;
  readonly weight: number;
}

/** The smallest value that `share` of all occurrences do not exceed (nearest rank); null when there are none. */
export function percentile(values: readonly Weighted[], share: number): number | null {
  const total = values.reduce((count, { weight }) => count + weight, 0);
  if (total === 0) return null;
  const rank = Math.max(1, Math.ceil(share * total));
  let passed = 0;
  for (const { value, weight } of values.toSorted((a, b) => a.value - b.value)) {
    passed += weight;
    if (passed >= rank) return value;
  }
  return null;
}
