import { expect, test } from 'vitest';
import { BoundedMap } from './bounded-map.ts';

test('a full map starts over with a new key, and keeps its entries when a known key is set', () => {
  const map = new BoundedMap<string, number>(2);
  map.set('a', 1).set('b', 2).set('a', 3);
  expect([...map]).toEqual([
    ['a', 3],
    ['b', 2],
  ]);
  map.set('c', 4);
  expect([...map]).toEqual([['c', 4]]);
});
