import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import { count, CrudController, resource, sum } from '../crud/index.ts';
import { createTable, insert, migration, model, t } from '../db/index.ts';
import { isStaff } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { comparison } from './screen-overview.ts';
import { screen } from './screen.ts';

const clock = fakeClock('2026-03-12T12:00:00.000Z');
const columns = {
  id: t.uuidv7().pk(),
  status: t.enum(['open', 'paid']),
  total: t.decimal(10, 2),
  placed_at: t.timestamp(),
  seller: t.text(20),
};
const sales = model('sales', columns, { indexes: [{ columns: ['placed_at'] }] });
/** Bob sees his own sales alone. */
const saleResource = resource(sales, {
  unscoped: true,
  admin: {
    rows: ({ user }: { user: { username: string } | null }) => (user?.username.startsWith('bob') === true ? { seller: 'bob' } : true),
  },
});
class SaleController extends CrudController(saleResource, {
  permission: isStaff,
  stats: { by: ['status', 'seller', 'placed_at'], metrics: { sales: count(), revenue: sum('total') } },
}) {}
const words = {
  label: 'Sales',
  singular: 'sale',
  overview: {
    time: 'placed_at',
    metrics: ['revenue', 'sales'],
    charts: [
      {
        title: 'Sales',
        kind: 'bars',
        unit: 'count',
        by: 'status',
        series: [
          { name: 'Paid', tone: 'good', metric: 'sales', value: 'paid' },
          { name: 'Open', tone: 'info', metric: 'sales', value: 'open' },
        ],
      },
    ],
    tables: [{ title: 'By seller', by: 'seller' }],
  },
} as const;

test.each([
  [12, 10, '20 % more than in the period before (10).'],
  [5, 10, '50 % less than in the period before (10).'],
  [3, 0, 'None in the period before.'],
  [4, 4, 'As many as in the period before.'],
])('%i after %i: %s', (now, earlier, text) => {
  expect(comparison(now, earlier)).toBe(text);
});

describeDatabases(
  'numbers of an application on the overview',
  (database) => {
    let site: AdminApp;
    let staff: Browser;
    beforeAll(async () => {
      const shop = {
        name: 'shop',
        models: [sales],
        migrations: [migration('0001_initial', [createTable('sales', columns, { indexes: [{ columns: ['placed_at'] }] })])],
        admin: { resources: [screen(saleResource, words)] },
      };
      site = await new AdminApp(database.db, [shop], { clock, mount: { '/v1': { '/sales': SaleController } } }).ready();
      staff = await site.browser();
      const at = (hours: number) => new Date(clock.now().getTime() - hours * 3_600_000);
      for (const [status, total, hours, seller] of [
        ['paid', '10.50', 1, 'ann'],
        ['paid', '20.00', 2, 'bob'],
        ['open', '4.50', 2, 'ann'],
        ['paid', '7.00', 30, 'ann'],
      ] as const)
        await insert(database.db, sales, { status, total, placed_at: at(hours), seller });
    });
    afterAll(() => site.close());
    const own = async (by: Browser) =>
      (await site.get(by, 'overview?range=24h')).body.parts.find(({ title }: { title: string }) => title === 'Sales');

    test('are those of the range and are compared with the period before; charts and tables follow', async () => {
      const { tiles, charts, tables } = await own(staff);
      expect(tiles).toMatchObject([
        { label: 'Revenue', value: 35, hint: '400 % more than in the period before (7).' },
        { label: 'Sales', value: 3, hint: '200 % more than in the period before (1).', link: { resource: 'sales' } },
      ]);
      const total = (values: readonly (number | null)[]) => values.reduce<number>((all, each) => all + (each ?? 0), 0);
      expect(charts[0].series.map(({ name, values }: { name: string; values: number[] }) => [name, total(values)])).toEqual([
        ['Paid', 2],
        ['Open', 1],
      ]);
      expect(tables[0].rows.map(({ values }: { values: object }) => values)).toEqual([
        { seller: 'bob', revenue: 20, sales: 1 },
        { seller: 'ann', revenue: 15, sales: 2 },
      ]);
    });

    test('are of the rows that the member of staff sees', async () => {
      const bob = await site.browser({ username: `bob-${database.db.dialect}`, is_staff: true });
      expect((await own(bob)).tiles).toMatchObject([{ value: 20 }, { value: 1 }]);
    });

    test('of statistics that nobody declares keep the app from starting, with the names that there are', () => {
      const wrong = screen(saleResource, { ...words, overview: { ...words.overview, metrics: ['profit'] } });
      expect(() => wrong.installedIn?.(site.app)).toThrow(
        'overview names profit; the statistics have by: status, seller, placed_at, metrics: sales, revenue.',
      );
    });
  },
  { database: { clock } },
);
