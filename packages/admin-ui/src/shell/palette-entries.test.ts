import { expect, test } from 'vitest';
import type { AdminResourceShape } from '../api/shapes.ts';
import { knownEntries, matching } from './palette-entries.ts';

const base = { group: 'Shop', columns: [], filters: [], editable: false, removable: false, actions: [] } as const;
const orders: AdminResourceShape = {
  ...base,
  name: 'orders',
  label: 'Orders',
  singular: 'Order',
  creation: { fields: [] },
  shortcuts: [{ label: 'Ship paid orders', filters: { status: 'paid' }, action: 'ship' }],
};
const log: AdminResourceShape = { ...base, name: 'log', label: 'Audit log', singular: 'entry', creation: { refused: 'no' } };
const entries = knownEntries([orders, log]);
const found = (text: string) => matching(entries, text).map(({ label, hash }) => [label, hash]);

test('screens and actions are found by their words; what begins with the text comes first', () => {
  expect(found('order')).toEqual([
    ['Orders', '#/orders'],
    ['New order', '#/orders/-/new'],
    ['Ship paid orders', '#/orders?filter.status=paid&run=ship'],
  ]);
  expect(found('new order')).toEqual([['New order', '#/orders/-/new']]);
  expect(found('account')).toEqual([['Your account', '#/-/account']]);
});

test('a list without a form of a new record offers none', () => {
  expect(found('new entry')).toEqual([]);
});
