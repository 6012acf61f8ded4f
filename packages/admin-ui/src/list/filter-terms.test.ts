import { expect, test } from 'vitest';
import type { AdminFilter } from '../api/shapes.ts';
import { dayOf, momentOf, presets, termsOf, without } from './filter-terms.ts';

const status: AdminFilter = {
  name: 'status',
  label: 'Status',
  kind: 'select',
  operators: ['is', 'not', 'in', 'empty'],
  choices: [
    { value: 'open', label: 'Open' },
    { value: 'paid', label: 'Paid' },
  ],
};
const total: AdminFilter = { name: 'total', label: 'Total', kind: 'number', ends: ['total.from', 'total.to'] };
const made: AdminFilter = { name: 'made', label: 'Made', kind: 'time', ends: ['since', 'until'] };

const said = (set: Record<string, string>) => termsOf([status, total, made], set).map(({ verb, value, names }) => [verb, value, names]);

test('a chip says the comparison and the value in words, and knows the names that it removes', () => {
  expect(said({ status: 'open' })).toEqual([['is', 'Open', ['status']]]);
  expect(said({ 'status.in': 'open,paid' })).toEqual([['is one of', 'Open, Paid', ['status.in']]]);
  expect(said({ 'status.empty': 'no' })).toEqual([['is not empty', '', ['status.empty']]]);
  expect(said({ 'total.from': '10' })).toEqual([['from', '10', ['total.from', 'total.to']]]);
  expect(said({ 'total.from': '7', 'total.to': '7' })).toEqual([['is', '7', ['total.from', 'total.to']]]);
});

test('a range of days begins at the local midnight and ends before the next one, and is read back as the same days', () => {
  const [from, to] = [momentOf('2026-03-28', false), momentOf('2026-03-29', true)];
  expect(new Date(to).getTime() - new Date(from).getTime()).toBeGreaterThan(46 * 3_600_000);
  expect([dayOf(from, false), dayOf(to, true)]).toEqual(['2026-03-28', '2026-03-29']);
  expect(said({ since: momentOf('2026-03-28', false), until: momentOf('2026-03-28', true) })[0]?.[0]).toBe('on');
  expect(momentOf('no day', false)).toBe('');
});

test('the usual ranges include today', () => {
  const all = presets(new Date(2026, 2, 1, 15));
  expect(all.find(({ label }) => label === 'Last 7 days')).toEqual({ label: 'Last 7 days', from: '2026-02-23', to: '2026-03-01' });
  expect(all.find(({ label }) => label === 'Yesterday')).toEqual({ label: 'Yesterday', from: '2026-02-28', to: '2026-02-28' });
});

test('removing a term leaves the others', () => {
  expect(without({ since: 'a', until: 'b', status: 'open' }, ['since', 'until'])).toEqual({ status: 'open' });
});
