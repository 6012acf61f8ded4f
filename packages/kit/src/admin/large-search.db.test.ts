import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import type { AdminPage } from '../app/admin/shapes.ts';
import { BOUNDED_ROWS } from '../crud/read/bounded.ts';
import { createTable, migration, model, t } from '../db/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { modelResource } from '../screens/screen.ts';

// By counter: number 1 is the oldest. Every 25th of the searched rows is a lamp; the code of the oldest row is the name of many others.
const ROWS = BOUNDED_ROWS + 500;
const columns = { id: t.int().pk(), name: t.text(40), code: t.text(40).unique(), weight: t.int() };
const indexes = [{ columns: ['weight', 'id'] }];
const goods = model('goods', columns, { indexes });
const shop = {
  name: 'shop',
  models: [goods],
  migrations: [migration('0001_initial', [createTable('goods', columns, { indexes })])],
  admin: { resources: [modelResource(goods, { singular: 'Good', search: ['name', 'code'] })] },
};

describeDatabases('a search in a table that is too large to be searched whole', (database) => {
  let site: AdminApp;
  let staff: Browser;
  beforeAll(async () => {
    site = await new AdminApp(database.db, [shop]).ready();
    staff = await site.browser();
    await database.db.query(
      `insert into goods (id, name, code, weight)
       with recursive n(i) as (select 1 union all select i + 1 from n where i < ${ROWS})
       select i, case when i % 25 = 0 then 'desk lamp' when i % 5 = 0 then 'shelf' else 'chair' end,
         case when i = 1 then 'shelf' else 'code ' || cast(i as text) end, ${ROWS} - i from n`,
    );
  });
  afterAll(() => site.close());

  const list = async (query: string): Promise<AdminPage> => (await site.get(staff, `resources/goods?${query}`)).body;
  const ids = ({ items }: AdminPage): number[] => items.map(({ id }) => Number(id));
  const lamps = Math.floor(ROWS / 25) - Math.ceil(500 / 25) + 1;

  test('counts all matches among the newest rows, and sorts all of them by any column', async () => {
    const page = await list('search=lamp&limit=3');
    expect(page).toMatchObject({ count: lamps, searched: BOUNDED_ROWS });
    expect(page.atLeast).toBeUndefined();
    expect(ids(page)).toEqual([50_500, 50_475, 50_450]);
    // By an index, by no index, and in the other direction: the database has sorted all matches, not the first that were found.
    expect(ids(await list('search=lamp&limit=2&sort=-weight'))).toEqual([500, 525]);
    expect(ids(await list('search=lamp&limit=2&sort=code'))).toEqual([1000, 10_000]);
    expect(ids(await list('search=lamp&limit=2&sort=weight'))).toEqual([50_500, 50_475]);
  });

  test('pages through all matches without gaps or repeats', async () => {
    const seen: number[] = [];
    for (let cursor = ''; ;) {
      const page = await list(`search=lamp&limit=100&sort=-weight${cursor}`);
      seen.push(...ids(page));
      if (page.next === null) break;
      cursor = `&cursor=${page.next}`;
    }
    expect(seen).toHaveLength(lamps);
    expect(new Set(seen).size).toBe(lamps);
  });

  test('where an index found an older record, too, says that there may be more than it counts', async () => {
    // 10,100 shelves, of which 1,000 are looked up; the oldest record has the text as its code.
    const page = await list('search=shelf&limit=3');
    expect(page.atLeast).toBe(true);
    expect(page.count).toBeGreaterThanOrEqual(1000);
    expect(ids(await list('search=shelf&limit=1&sort=-weight'))).toEqual([1]);
    expect(await list('search=code+50499&limit=1')).not.toHaveProperty('atLeast');
  });

  test('a list that is longer than it is counted has no number', async () => {
    expect((await list('limit=1')).count).toBeNull();
    expect((await list('search=chair&limit=1')).count).toBeNull();
  });
});
