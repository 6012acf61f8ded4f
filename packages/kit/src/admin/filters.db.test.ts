import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import type { AdminFilter } from '../app/admin/shapes.ts';
import type { Module } from '../app/index.ts';
import { CrudController, resource, visibleTo } from '../crud/index.ts';
import { createTable, insertMany, migration, model, t } from '../db/index.ts';
import { denyAll, isStaff } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { modelResource } from '../screens/screen.ts';

const columns = {
  id: t.uuidv7().pk(),
  name: t.text(40),
  status: t.enum(['open', 'paid', 'odd']),
  paid: t.bool().nullable(),
  amount: t.int(),
  price: t.decimal(10, 2),
  day: t.date().nullable(),
  at: t.timestamp(),
  margin: t.int().nullable(),
};
const indexes = [{ columns: ['at'] }];
const sales = model('sales', columns, { indexes });
const saleResource = resource(sales, { unscoped: true, fields: { margin: visibleTo(denyAll) }, admin: { rows: true } });
class SaleController extends CrudController(saleResource, { permission: isStaff }) {}
const shop: Module = {
  name: 'shop',
  models: [sales],
  migrations: [migration('0001_initial', [createTable('sales', columns, { indexes })])],
  mount: { '/v1/sales': new SaleController() },
  admin: { resources: [modelResource(saleResource, { tones: { status: { odd: 'bad' } } })] },
};

describeDatabases('filters of a model in the admin site', (database) => {
  let site: AdminApp;
  let staff: Browser;
  beforeAll(async () => {
    site = await new AdminApp(database.db, [shop]).ready();
    staff = await site.browser();
    const at = (hour: number) => new Date(Date.UTC(2026, 2, 1, hour));
    await insertMany(database.db, sales, [
      { name: 'Alpha', status: 'open', paid: true, amount: 5, price: '9.50', day: '2026-03-01', at: at(3), margin: 1 },
      { name: 'Beta', status: 'paid', paid: null, amount: 20, price: '10.00', day: '2026-03-02', at: at(1), margin: 2 },
      { name: 'alphabet', status: 'odd', paid: false, amount: 100, price: '100.25', day: null, at: at(2), margin: null },
    ]);
  });
  afterAll(() => site.close());

  const names = async (query: string): Promise<string[]> => {
    const { status, body } = await site.get(staff, `resources/sales?${query}`);
    if (status !== 200) return [String(status), body.errors[0].message];
    return body.items.map(({ title }: { title: string }) => title);
  };

  test.each([
    ['filter.status=open', ['Alpha']],
    ['filter.status.not=open', ['alphabet', 'Beta']],
    ['filter.status.in=open,paid', ['Beta', 'Alpha']],
    ['filter.name.contains=ALPHA', ['alphabet', 'Alpha']],
    ['filter.name=Beta', ['Beta']],
    ['filter.paid=yes', ['Alpha']],
    ['filter.paid.empty=yes', ['Beta']],
    ['filter.day.empty=no', ['Beta', 'Alpha']],
    ['filter.amount.from=20', ['alphabet', 'Beta']],
    ['filter.amount.from=20&filter.amount.to=20', ['Beta']],
    // Decimals are numbers, whatever the database stores them as.
    ['filter.price.from=9.6&filter.price.to=99', ['Beta']],
    ['filter.day.from=2026-03-02', ['Beta']],
    // A range of time ends before its end, and comes in its order.
    ['filter.at.from=2026-03-01T01:00:00Z&filter.at.to=2026-03-01T03:00:00Z', ['alphabet', 'Beta']],
    ['filter.at.from=2026-03-01T00:00:00Z', ['Alpha', 'alphabet', 'Beta']],
    ['filter.at.from=2026-03-01T00:00:00Z&sort=amount', ['Alpha', 'Beta', 'alphabet']],
    ['filter.at.from=2026-03-01T00:00:00Z&filter.status.not=odd', ['Alpha', 'Beta']],
  ])('%s', async (query, expected) => {
    expect(await names(query)).toEqual(expected);
  });

  test('the pages of a range follow one another', async () => {
    const first = (await site.get(staff, 'resources/sales?filter.at.from=2026-03-01T00:00:00Z&limit=2')).body;
    const second = (await site.get(staff, `resources/sales?filter.at.from=2026-03-01T00:00:00Z&limit=2&cursor=${first.next}`)).body;
    expect([...first.items, ...second.items].map(({ title }: { title: string }) => title)).toEqual(['Alpha', 'alphabet', 'Beta']);
  });

  test.each([
    'filter.status.in=open,none',
    'filter.amount.from=many',
    'filter.day.from=2026-02-31',
    'filter.at.from=yesterday',
    'filter.paid.empty=perhaps',
    'filter.amount=5',
    'filter.amount.contains=5',
    'filter.unknown.is=1',
  ])('%s is refused', async (query) => {
    expect((await names(query))[0]).toBe('422');
  });

  test('a column that only some may see is not offered as a filter, and tells nothing when it is asked for', async () => {
    const { resources } = (await site.get(staff, 'session')).body.site;
    const { filters, columns: shown } = resources.find(({ name }: { name: string }) => name === 'sales');
    expect(filters.map(({ name }: AdminFilter) => name)).not.toContain('margin');
    expect((await names('filter.margin.from=1'))[0]).toBe('422');
    expect(filters.find(({ name }: AdminFilter) => name === 'at')).toMatchObject({ kind: 'time', ends: ['at.from', 'at.to'] });
    expect(shown.find(({ name }: { name: string }) => name === 'price').kind).toBe('number');
  });

  test('a state has its color: the declared one, or that of its word', async () => {
    const { items } = (await site.get(staff, 'resources/sales?sort=amount')).body;
    expect(items.map(({ values }: { values: { status: unknown } }) => values.status)).toEqual([
      { value: 'open', tone: 'info' },
      { value: 'paid', tone: 'good' },
      { value: 'odd', tone: 'bad' },
    ]);
  });

  test('what a view was saved with is read back by the list', async () => {
    const query = 'filter.at.from=2026-03-01T00%3A00%3A00Z&filter.status.in=open%2Codd';
    expect((await site.send(staff, 'POST', 'lists/sales/filters', { name: 'Mine', query })).status).toBe(201);
    expect(await names(query)).toEqual(['Alpha', 'alphabet']);
  });
});
