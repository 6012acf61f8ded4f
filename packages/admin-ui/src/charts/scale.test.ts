import { expect, test } from 'vitest';
import { CHARACTER_WIDTH, niceTicks, pieces, placedLabels, stack } from './scale.ts';

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

const clockTexts = (count: number) => Array.from({ length: count }, (_, at) => `${String(at % 24).padStart(2, '0')}:00 AM`);

test('labels are evenly apart, and none touches another or leaves the plot', () => {
  for (const count of [1, 2, 7, 24, 30, 60, 90, 168])
    for (const width of [200, 286, 330, 640, 1200]) {
      const texts = clockTexts(count);
      const placed = placedLabels(texts, width);
      expect(placed[0]).toMatchObject({ bucket: 0, text: texts[0] });
      for (const [at, { x, text }] of placed.entries()) {
        expect(x, `${count} in ${width}`).toBeGreaterThanOrEqual(0);
        expect(x + text.length * CHARACTER_WIDTH, `${count} in ${width}`).toBeLessThanOrEqual(placed[at + 1]?.x ?? width);
      }
      const [first = 0, second = 0] = placed.map(({ bucket }) => bucket);
      for (const [at, { bucket }] of placed.entries()) expect(bucket).toBe(at * (second - first));
    }
  expect(placedLabels(['a', 'b', 'c'], 300).map(({ bucket }) => bucket)).toEqual([0, 1, 2]);
  expect(placedLabels([], 300)).toEqual([]);
});

test('a day is named where it begins, not at each of its hours', () => {
  const texts = ['Jan 1', 'Jan 1', 'Jan 1', 'Jan 2', 'Jan 2', 'Jan 2'];
  expect(placedLabels(texts, 900).map(({ bucket }) => bucket)).toEqual([0, 3]);
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
