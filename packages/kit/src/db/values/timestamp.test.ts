import { expect, test } from 'vitest';
import { dateJson, isTimestampText, timestampText } from './timestamp.ts';

const FIRST = Date.parse('0001-01-01T00:00:00.000Z');
const LAST = Date.parse('9999-12-31T23:59:59.999Z');

test('the text of a moment is that of toISOString, in any order and within a second that is known', () => {
  const starts = [FIRST, LAST - 3000, 0, -1, -1001, -86_400_000, Date.parse('2026-11-17T00:00:00Z')];
  const random = Array.from({ length: 500 }, (_, index) => FIRST + Math.floor((LAST - FIRST - 3000) * ((index * 0.618_033_988_75) % 1)));
  for (const start of [...starts, ...random]) {
    for (const ms of [0, 1, 9, 10, 99, 100, 999, 1000, 60_000 % 3000, 5, 2999]) {
      const date = new Date(Math.min(start + ms, LAST));
      expect([timestampText(date), dateJson(date)]).toEqual([date.toISOString(), date.toISOString()]);
      expect(isTimestampText(timestampText(date))).toBe(true);
    }
  }
});

test('moments outside of the years 1 to 9999, and those that are no date, have no text', () => {
  for (const time of [FIRST - 1, LAST + 1, Number.NaN]) expect(() => timestampText(new Date(time))).toThrow(/A timestamp must/);
});

test('JSON has of any date what toJSON gives', () => {
  for (const time of [FIRST - 1, LAST + 1, Number.NaN]) expect(dateJson(new Date(time))).toBe(new Date(time).toJSON());
});
