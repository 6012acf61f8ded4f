import { expect, test } from 'vitest';
import type { AdminRow } from '../api/shapes.ts';
import { leading, newsText, rowNews } from './row-news.ts';

const rows = (text: string, values: Readonly<Record<string, string>> = {}): AdminRow[] =>
  text.split('').map((id) => ({ id, title: id, values: { state: values[id] ?? 'open' } }));

test.each([
  ['the same rows', 'abc', 'abc', {}, 0, 0],
  ['a changed value', 'abc', 'abc', { b: 'paid' }, 0, 1],
  ['new rows on top', 'abc', 'xyabc', {}, 2, 0],
  ['a new row that pushed the last one to the next page', 'abc', 'xab', {}, 1, 0],
  ['a row that is gone, and the next page’s first in its place', 'abc', 'acd', {}, 0, 1],
  ['a row that is gone from the end of the page', 'abc', 'ab', {}, 0, 0],
  ['another page altogether', 'abc', 'xyz', {}, 0, 3],
] as const)('%s', (_, shown, now, values, added, changed) => {
  expect(rowNews(rows(shown), rows(now, values))).toEqual({ added, changed });
});

test('what is new on top is counted, unless all of it is', () => {
  expect(leading(rows('abc'), rows('xyab'))).toBe(2);
  expect(leading(rows('abc'), rows('xyz'))).toBe(0);
});

test('the offer says what changed', () => {
  expect([newsText({ added: 0, changed: 3 }), newsText({ added: 1, changed: 2 }), newsText({ added: 0, changed: 0 })]).toEqual([
    '3 changed: show',
    '2 changed, 1 new: show',
    '',
  ]);
});
