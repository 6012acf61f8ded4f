import { expect, test } from 'vitest';
import { shortList } from './short-list.ts';

const item = (title: string, count: number | string) => ({
  id: title,
  title,
  values: { count, state: { value: title, tone: 'good' as const } },
});
const items = [item('beta', 20), item('alpha', 3), item('gamma', 100)];
const titles = (query: Parameters<typeof shortList>[1]) => shortList(items, query).items.map(({ title }) => title);

test('numbers are sorted as numbers, states by their word, and titles are searched whatever their case', () => {
  expect(titles({ search: null, sort: { column: 'count', descending: false } })).toEqual(['alpha', 'beta', 'gamma']);
  expect(titles({ search: null, sort: { column: 'state', descending: true } })).toEqual(['gamma', 'beta', 'alpha']);
  expect(titles({ search: 'ALP', sort: null })).toEqual(['alpha']);
});
