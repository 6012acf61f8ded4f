import { expect, test } from 'vitest';
import { linkedRows } from './linked-rows.ts';

const list = { name: 'invoices', singular: 'invoice' };
const row = {
  id: '1',
  title: 'INV-7',
  values: { at: '2026-03-01T00:00:00Z', number: 'INV-7', customer: { resource: 'c', id: '9', text: 'Ada' } },
};

test('the first column with a name leads to the record and shows its own value; the others keep theirs', () => {
  const at = { name: 'at', label: 'At', kind: 'time' } as const;
  const customer = { name: 'customer', label: 'Customer', kind: 'link' } as const;
  const { columns, rows } = linkedRows(list, [at, customer], [row]);
  expect(columns.map(({ kind }) => kind)).toEqual(['time', 'link']);
  expect(rows[0]?.values).toMatchObject({ at: '2026-03-01T00:00:00Z', customer: { resource: 'invoices', id: '1', text: 'Ada' } });
});

test('where no column has a name, one with the title stands in front', () => {
  const { columns, rows } = linkedRows(list, [{ name: 'at', label: 'At', kind: 'time' }], [row]);
  expect(columns.map(({ label }) => label)).toEqual(['Invoice', 'At']);
  expect(rows[0]?.values['record']).toEqual({ resource: 'invoices', id: '1', text: 'INV-7' });
});
