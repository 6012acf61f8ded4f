import { expect, test } from 'vitest';
import { adminBuckets, chosenRange, rangeFilters } from './range.ts';

const now = new Date('2026-03-12T14:32:10.000Z');

test('a chosen range has 8 to 37 bars that begin at round times and hold both its ends', () => {
  for (const [from, to] of [
    ['2026-03-12T10:00:03.000Z', '2026-03-12T10:04:40.000Z'],
    ['2026-03-12T10:00:00.000Z', '2026-03-12T11:10:00.000Z'],
    ['2026-03-01T00:00:00.000Z', '2026-03-03T12:00:00.000Z'],
    ['2026-01-01T00:00:00.000Z', '2026-03-01T00:00:00.000Z'],
    ['2025-03-01T00:00:00.000Z', '2026-03-01T00:00:00.000Z'],
  ] as const) {
    const { starts, since, until, ms } = adminBuckets(`${from}/${to}`, now);
    expect(starts.length).toBeGreaterThanOrEqual(8);
    expect(starts.length).toBeLessThanOrEqual(37);
    expect(since.getTime() % Math.min(ms, 86_400_000)).toBe(0);
    expect(since.getTime()).toBeLessThanOrEqual(Date.parse(from));
    expect(until.getTime()).toBeGreaterThanOrEqual(Date.parse(to));
  }
});

test('an invalid range of time is refused: backwards, too short, too long, or not two times', () => {
  for (const range of [
    '2026-03-12T10:00:00Z/2026-03-12T09:00:00Z',
    '2026-03-12T10:00:00Z/2026-03-12T10:00:05Z',
    '2020-03-12T10:00:00Z/2026-03-12T10:00:00Z',
    '2026-03-12T10:00:00Z',
    'a/b',
    '24h/24h',
    '',
  ])
    expect(chosenRange(range)).toBeNull();
});

test('the filters of a range that is over have an end, those of one that goes on have none', () => {
  expect(rangeFilters(adminBuckets('24h', now), now)).toEqual({ since: '2026-03-11T15:00:00.000Z' });
  expect(rangeFilters(adminBuckets('2026-03-01T00:00:00Z/2026-03-02T00:00:00Z', now), now)).toEqual({
    since: '2026-03-01T00:00:00.000Z',
    until: '2026-03-02T00:00:00.000Z',
  });
});
