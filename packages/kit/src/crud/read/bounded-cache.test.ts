import { expect, test } from 'vitest';
import { BoundedCache } from './bounded-cache.ts';

test('keeps no more than its maximum, whatever it is asked for', () => {
  const cache = new BoundedCache<number>(1_000);
  for (let index = 0; index < 50_000; index += 1) cache.getOrMake(`shape ${index}`, () => index);
  expect(cache.size).toBe(1_000);
});

test('what is used again stays while others come and go', () => {
  const cache = new BoundedCache<number>(100);
  let made = 0;
  const hot = () => cache.getOrMake('hot', () => (made += 1));
  for (let index = 0; index < 10_000; index += 1) {
    hot();
    cache.getOrMake(`cold ${index}`, () => index);
  }
  expect([made, cache.size]).toEqual([1, 100]);
});
