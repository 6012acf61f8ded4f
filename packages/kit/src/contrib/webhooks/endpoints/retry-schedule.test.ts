import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  DEFAULT_SCHEDULE,
  JITTER_RATIO,
  RETRY_AFTER_SECONDS_MAX,
  nextAttemptAt,
  parseSchedule,
  retryAfterSeconds,
} from './retry-schedule.ts';

const now = new Date('2026-03-04T05:06:07.000Z');
const plain = { schedule: DEFAULT_SCHEDULE, random: null };
const secondsUntil = (date: Date | null): number | null => (date === null ? null : (date.getTime() - now.getTime()) / 1000);

test('the default delays are 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 10 h, and then the schedule is exhausted', () => {
  const delays = [1, 2, 3, 4, 5, 6, 7, 8].map((attempts) => secondsUntil(nextAttemptAt(attempts, now, null, plain)));
  expect(delays).toEqual([5, 300, 1800, 7200, 18_000, 36_000, 36_000, null]);
});

test('an empty schedule means one attempt', () => {
  expect(nextAttemptAt(1, now, null, { schedule: [], random: null })).toBeNull();
});

test('jitter only lengthens a delay, by at most a tenth', () => {
  const delay = (random: number): number | null =>
    secondsUntil(nextAttemptAt(2, now, null, { schedule: DEFAULT_SCHEDULE, random: () => random }));
  expect(delay(0)).toBe(300);
  expect(delay(0.5)).toBe(315);
  expect(delay(0.999_999)).toBeCloseTo(330, 2);
  fc.assert(
    fc.property(fc.double({ min: 0, max: 0.999_999_999, noNaN: true }), fc.integer({ min: 1, max: 7 }), (random, attempts) => {
      const base = DEFAULT_SCHEDULE[attempts - 1] ?? 0;
      const seconds = secondsUntil(nextAttemptAt(attempts, now, null, { schedule: DEFAULT_SCHEDULE, random: () => random })) ?? -1;
      expect(seconds).toBeGreaterThanOrEqual(base);
      expect(seconds).toBeLessThanOrEqual(base * (1 + JITTER_RATIO));
    }),
  );
});

test('Retry-After is a floor: it lengthens a pause and never shortens it', () => {
  expect(secondsUntil(nextAttemptAt(1, now, 120, plain))).toBe(120);
  expect(secondsUntil(nextAttemptAt(2, now, 120, plain))).toBe(300);
  expect(nextAttemptAt(8, now, 120, plain)).toBeNull();
});

test.each([
  ['120', 120],
  ['0', 0],
  [' 7 ', 7],
  ['999999999999999999999', RETRY_AFTER_SECONDS_MAX],
  ['86401', 86_400],
  ['Wed, 04 Mar 2026 05:08:07 GMT', 120],
  ['Wednesday, 04-Mar-26 05:08:07 GMT', 120],
  ['Wed Mar  4 05:08:07 2026', 120],
  ['Wed, 04 Mar 2026 05:06:00 GMT', 0],
  ['Fri, 04 Mar 2050 05:06:07 GMT', 86_400],
  ['Sunday, 06-Nov-94 08:49:37 GMT', 0],
])('Retry-After %j asks for %d seconds', (header, seconds) => {
  expect(retryAfterSeconds(header, now)).toBe(seconds);
});

test.each([
  null,
  undefined,
  '',
  'soon',
  '-5',
  '1.5',
  '1e3',
  '0x10',
  'foo 1',
  '2026-03-04T05:08:07Z',
  'Wed, 99 Mar 2026 05:08:07 GMT',
  'Wed, 04 Foo 2026 05:08:07 GMT',
  '5, 6',
  'NaN',
  'Infinity',
])('the Retry-After value %j is ignored', (header) => {
  expect(retryAfterSeconds(header, now)).toBeNull();
});

test('any text a receiver sends as Retry-After gives null or 0 to 24 hours', () => {
  fc.assert(
    fc.property(fc.string(), (header) => {
      const seconds = retryAfterSeconds(header, now) ?? 0;
      expect(seconds >= 0 && seconds <= RETRY_AFTER_SECONDS_MAX).toBe(true);
    }),
  );
});

test('a schedule is a bounded list of non-negative seconds', () => {
  expect(parseSchedule([1, 2.5, 0])).toEqual([1, 2.5, 0]);
  expect(parseSchedule([])).toEqual([]);
  for (const bad of [null, '5', {}, [-1], ['5'], [Number.NaN], [Number.POSITIVE_INFINITY], [1e9], Array.from({ length: 51 }, () => 1)]) {
    expect(() => parseSchedule(bad)).toThrow(TypeError);
  }
});
