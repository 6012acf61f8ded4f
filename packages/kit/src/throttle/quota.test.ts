import fc from 'fast-check';
import { expect, test } from 'vitest';
import { calendarPeriod, parseQuota, QUOTA_PERIODS, quotaFault } from './quota.ts';

test.each([
  ['1/hour', 1, 'hour'],
  ['10000/month', 10_000, 'month'],
  ['999999999999999/year', 999_999_999_999_999, 'year'],
  ['unlimited/day', null, 'day'],
])('%s', (text, count, period) => {
  expect(quotaFault(text)).toBeNull();
  expect(parseQuota(text)).toEqual({ count, period });
});

test.each(['', '0/month', '-1/month', '1.5/month', '1e3/month', '10/week', '10/5day', '10', '/month', '10/Month', ' 10/day', null, 10, {}])(
  '%j is refused with a sentence',
  (text) => {
    expect(quotaFault(text)).toMatch(/ is no quota: a quota is /);
    expect(() => parseQuota(text as string)).toThrow(TypeError);
  },
);

test.each([
  ['hour', '2026-12-31T23:00:00Z', '2027-01-01T00:00:00Z'],
  ['day', '2026-12-31T00:00:00Z', '2027-01-01T00:00:00Z'],
  ['month', '2026-12-01T00:00:00Z', '2027-01-01T00:00:00Z'],
  ['year', '2026-01-01T00:00:00Z', '2027-01-01T00:00:00Z'],
] as const)('the %s that a moment is in', (period, from, until) => {
  expect(calendarPeriod(period, new Date('2026-12-31T23:59:59.999Z'))).toEqual({ from: new Date(from), until: new Date(until) });
});

test('periods follow one another: a moment is in exactly one, and its end is the start of the next', () => {
  const moments = fc.date({ min: new Date('1971-01-01T00:00:00Z'), max: new Date('2199-12-31T00:00:00Z'), noInvalidDate: true });
  fc.assert(
    fc.property(fc.constantFrom(...QUOTA_PERIODS), moments, (period, at) => {
      const { from, until } = calendarPeriod(period, at);
      expect(from <= at && at < until).toBe(true);
      expect(calendarPeriod(period, until).from).toEqual(until);
      expect(calendarPeriod(period, new Date(until.getTime() - 1))).toEqual({ from, until });
    }),
  );
});
