import { expect, test } from 'vitest';
import { labelledBuckets, niceTicks, pieces, stack } from './scale.ts';

test('an axis begins at zero, has at most six round steps and holds the largest value', () => {
  for (const max of [0.3, 1, 3, 7, 9.99, 10, 42, 99, 100, 101, 2_500, 123_456]) {
    const ticks = niceTicks(max, false);
    expect(ticks[0]).toBe(0);
    expect(ticks.at(-1)).toBeGreaterThanOrEqual(max);
    expect(ticks.length).toBeLessThanOrEqual(6);
  }
  expect(niceTicks(42, true)).toEqual([0, 20, 40, 60]);
});

test('an axis of counts has no halves, and an empty one still has a height', () => {
  expect(niceTicks(1, true)).toEqual([0, 1]);
  expect(niceTicks(3, true)).toEqual([0, 1, 2, 3]);
  expect(niceTicks(0, true)).toEqual([0, 1]);
});

test('labels are evenly apart and fit the room', () => {
  expect(labelledBuckets(24, 6)).toEqual([0, 4, 8, 12, 16, 20]);
  expect(labelledBuckets(3, 10)).toEqual([0, 1, 2]);
  expect(labelledBuckets(60, 1)).toEqual([0]);
});

test('bars stand on each other and a missing value adds nothing', () => {
  expect(
    stack(
      [
        [1, null],
        [2, 3],
      ],
      2,
    ),
  ).toEqual([
    [
      { from: 0, to: 1 },
      { from: 0, to: 0 },
    ],
    [
      { from: 1, to: 3 },
      { from: 0, to: 3 },
    ],
  ]);
});

test('a missing value breaks the line instead of drawing a zero', () => {
  expect(pieces([1, 2, null, 4])).toEqual([
    [
      { at: 0, value: 1 },
      { at: 1, value: 2 },
    ],
    [{ at: 3, value: 4 }],
  ]);
});
