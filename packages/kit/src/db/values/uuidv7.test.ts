import { expect, test } from 'vitest';
import { uuidv7, uuidv7LowerBound } from './uuidv7.ts';

test('keys carry the version, the variant and the time of the clock', () => {
  const at = new Date('2026-03-04T05:06:07.089Z');
  const key = uuidv7({ now: () => at });
  expect(key).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(Number.parseInt(key.replaceAll('-', '').slice(0, 12), 16)).toBe(at.getTime());
});

test('fifty thousand keys of one process are distinct and sorted, also within a millisecond', () => {
  const keys = Array.from({ length: 50_000 }, () => uuidv7());
  expect(new Set(keys).size).toBe(keys.length);
  expect(keys.toSorted()).toEqual(keys);
});

test('keys stay sorted when the clock stands still or steps back', () => {
  let time = 1_700_000_000_000;
  const clock = { now: () => new Date(time) };
  const keys = Array.from({ length: 6000 }, (_, index) => {
    if (index === 3000) time -= 60_000;
    return uuidv7(clock);
  });
  expect(keys.toSorted()).toEqual(keys);
  expect(new Set(keys).size).toBe(keys.length);
});

test('the lower bound of a moment is below its keys and above all earlier ones', () => {
  const at = new Date('2026-03-04T05:06:07.089Z');
  const before = new Date(at.getTime() - 1);
  const bound = uuidv7LowerBound(at);
  expect(uuidv7({ now: () => at }) > bound).toBe(true);
  expect(uuidv7({ now: () => before }) < bound).toBe(true);
  expect(uuidv7LowerBound(new Date(-1))).toBe('00000000-0000-0000-0000-000000000000');
});
