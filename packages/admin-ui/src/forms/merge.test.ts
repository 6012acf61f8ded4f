import { expect, test } from 'vitest';
import type { AdminField } from '../api/shapes.ts';
import { inputText, merged, mergeRows } from './merge.ts';

const fields: AdminField[] = ['untouched', 'mine', 'theirs', 'both', 'agreed', 'tags'].map((name) => ({ name, label: name, kind: 'text' }));
const before = { untouched: 'a', mine: 'a', theirs: 'a', both: 'a', agreed: 'a', tags: ['a'] };
const yours = { untouched: 'a', mine: 'b', theirs: 'a', both: 'b', agreed: 'b', tags: ['a'] };
const theirs = { untouched: 'a', mine: 'a', theirs: 'c', both: 'c', agreed: 'b', tags: ['a', 'c'] };
const rows = mergeRows(fields, before, yours, theirs);

test('only what somebody else changed to another value is asked about; what both changed is a conflict', () => {
  expect(rows.map(({ field, isConflict }) => [field.name, isConflict])).toEqual([
    ['theirs', false],
    ['both', true],
    ['tags', false],
  ]);
});

test('what only one person changed is kept, and a conflict goes as it was decided', () => {
  const kept = { untouched: 'a', mine: 'b', agreed: 'b', tags: ['a', 'c'] };
  expect(merged(rows, yours, theirs, { both: 'yours' })).toEqual({ ...kept, theirs: 'c', both: 'b' });
  expect(merged(rows, yours, theirs, { both: 'theirs', theirs: 'yours' })).toEqual({ ...kept, theirs: 'a', both: 'c' });
});

test.each([
  [true, 'yes'],
  ['', '(empty)'],
  [['a', 'b'], 'a, b'],
])('%j is read as %s', (value, text) => {
  expect(inputText(value)).toBe(text);
});
