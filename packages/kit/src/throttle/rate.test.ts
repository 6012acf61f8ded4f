import { expect, test } from 'vitest';
import { formatRate, parseRate, rateFault } from './rate.ts';

test.each([
  ['1/s', 1, 1000],
  ['2/sec', 2, 1000],
  ['3/second', 3, 1000],
  ['4/m', 4, 60_000],
  ['5/min', 5, 60_000],
  ['6/minute', 6, 60_000],
  ['7/h', 7, 3_600_000],
  ['1000/hour', 1000, 3_600_000],
  ['8/d', 8, 86_400_000],
  ['9/day', 9, 86_400_000],
  ['20/5min', 20, 300_000],
  ['1/30s', 1, 30_000],
  ['100/366d', 100, 366 * 86_400_000],
  ['1000000/s', 1_000_000, 1000],
])('%s is %i requests per %i ms', (text, count, periodMs) => {
  expect(parseRate(text)).toEqual({ count, periodMs });
  expect(parseRate(formatRate({ count, periodMs }))).toEqual({ count, periodMs });
});

test.each([
  ['', 'is not of the form <count>/<period>'],
  ['1000', 'is not of the form <count>/<period>'],
  ['1/2/s', 'is not of the form <count>/<period>'],
  ['1/5min5', 'is not of the form <count>/<period>'],
  ['/hour', 'must start with an integer'],
  ['ten/hour', 'must start with an integer'],
  ['-1/hour', 'must start with an integer'],
  ['1.5/hour', 'must start with an integer'],
  [' 1/hour', 'must start with an integer'],
  ['1e3/hour', 'must start with an integer'],
  ['0/hour', 'admits no request'],
  ['10/', 'use one of s, sec, second, m, min, minute, h, hour, d, day'],
  ['10/5', 'use one of s, sec'],
  ['10/week', 'use one of s, sec'],
  ['10/hours', 'Did you mean "hour"?'],
  ['10/Hour', 'Did you mean "hour"?'],
  ['10/constructor', 'use one of s, sec'],
  ['10/0min', 'a period of length zero'],
  ['10/367d', 'longer than 366 days'],
  ['10/9999999999999999999d', 'longer than 366 days'],
  ['1000001/s', 'more than 1000000 a second'],
  ['9'.repeat(41), 'one of 41 characters'],
])('%j is refused with a sentence that says why', (text, why) => {
  expect(rateFault(text)).toContain(why);
  expect(rateFault(text)).toMatch(/^[A-Z].*[.?]$/);
  expect(() => parseRate(text)).toThrow(why);
});

test.each([null, 5, {}, undefined, ['1/s']])('a rate that is no text (%j) is refused', (value) => {
  expect(rateFault(value)).toContain('A rate is a string such as "1000/hour"');
});
