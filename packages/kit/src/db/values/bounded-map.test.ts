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

test('where the oldest goes, a use makes an entry the newest once the map is half full', () => {
  const map = new BoundedMap<string, number>(3, 'forget the oldest');
  map.set('a', 1);
  expect(map.use('a')).toBe(1);
  map.set('b', 2).set('c', 3);
  expect([map.use('a'), map.use('unknown')]).toEqual([1, undefined]);
  map.set('d', 4);
  expect([...map.keys()]).toEqual(['c', 'a', 'd']);
  map.renew('c', 5);
  map.set('e', 6);
  expect([...map]).toEqual([
    ['d', 4],
    ['c', 5],
    ['e', 6],
  ]);
});
