import { hash } from 'node:crypto';
import { expect, test } from 'vitest';
import { RecentKeys } from './recent-keys.ts';

const hashOf = (index: number): string => hash('sha256', String(index), 'hex');

test('a key that was used lately is known, one that was not is not', () => {
  const keys = new RecentKeys();
  expect(keys.has(hashOf(0))).toBe(false);
  for (let index = 0; index < 1000; index += 1) keys.add(hashOf(index));
  const known = (from: number): number =>
    Array.from({ length: 1000 }, (_, index) => hashOf(from + index)).filter((key) => keys.has(key)).length;
  // Two of a thousand keys in one of 65,536 slots: the later one stays. About eight pairs are expected, 40 have a chance below 1e-15.
  expect(known(0)).toBeGreaterThan(960);
  expect(known(1000)).toBe(0);
});

test('it needs no more memory for more keys: the oldest are forgotten', () => {
  const keys = new RecentKeys();
  for (let index = 0; index < 500_000; index += 1) keys.add(hashOf(index));
  expect(keys.has(hashOf(499_999))).toBe(true);
  const old = Array.from({ length: 1000 }, (_, index) => hashOf(index)).filter((key) => keys.has(key));
  expect(old.length).toBeLessThan(20);
});

test('a hash of zeros is not taken for an empty slot', () => {
  const keys = new RecentKeys();
  keys.add('f'.repeat(64));
  expect([keys.has('0'.repeat(64)), keys.has('f'.repeat(64))]).toEqual([false, true]);
});
