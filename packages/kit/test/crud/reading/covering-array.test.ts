import { expect, test } from 'vitest';
import { coveringArray } from './covering-array.ts';

const factors = { a: [1, 2, 3], b: ['x', 'y'], c: [true, false], d: [0, 1, 2, 3] } as const;

test('every level of a factor meets every level of every other factor', () => {
  const rows = coveringArray(factors, 7);
  const names = Object.keys(factors) as (keyof typeof factors)[];
  for (const one of names)
    for (const other of names) {
      if (one === other) continue;
      const pairs = new Set(rows.map((row) => JSON.stringify([row[one], row[other]])));
      expect(pairs.size).toBe(factors[one].length * factors[other].length);
    }
  // Each pair of the two largest factors takes a row; the others fit in.
  expect(rows.length).toBeLessThan(18);
});

test('the same seed gives the same combinations, another seed others', () => {
  expect(coveringArray(factors, 7)).toEqual(coveringArray(factors, 7));
  expect(coveringArray(factors, 8)).not.toEqual(coveringArray(factors, 7));
});
