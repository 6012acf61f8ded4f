import { afterAll, beforeAll, expect, test } from 'vitest';
import { people, type ShopApp, startShop } from '../../test/crud/shop.ts';
import { createApp } from '../app/index.ts';
import { countQueries } from '../db/engine/query-observer.ts';
import { createTable, insertMany, migration, model, t } from '../db/index.ts';
import type { ModelIndex } from '../db/declare/table-from-columns.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController, resource, words } from './index.ts';

const indexes: ModelIndex<'owner_id' | 'id'>[] = [{ columns: ['owner_id', '-id'], where: `status <> 'sent' and status <> 'new'` }];
const mails = model(
  'mails',
  { id: t.int().pk(), owner_id: t.uuid().readOnly(), status: t.enum(['new', 'sent', 'failed', 'gone']).nullable() },
  { indexes },
);
const mailResource = resource(mails, { owner: 'owner_id' });
const failed = words("this.status <> 'sent' and this.status <> 'new'", { description: 'Whether it failed.' });
class Mails extends CrudController(mailResource, { permission: isAuthenticated, filters: { failed, status: ['eq', 'isnull'] } }) {}
const module = {
  name: 'mails',
  models: [mails],
  migrations: [migration('0001_initial', [createTable('mails', mails.columns, { indexes })])],
};

describeDatabases("filters in an index's own words", (database) => {
  let shop: ShopApp;
  beforeAll(async () => {
    shop = await startShop({ database: database.db, modules: [module], mount: { '/v1': { '/mails': Mails } } });
    const statusOf = (id: number): 'failed' | 'gone' | 'sent' | null => {
      if (id % 999 === 0) return null;
      return id % 500 === 0 ? 'failed' : id % 700 === 0 ? 'gone' : 'sent';
    };
    const rows = Array.from({ length: 2_000 }, (_, at) => at + 1).map((id) => ({
      id,
      owner_id: id === 1500 ? people.bob.id : people.ann.id,
      status: statusOf(id),
    }));
    await insertMany(database.db, mails, rows);
    await database.db.query('analyze');
  });
  afterAll(() => shop.close());
  const listed = async (query: string) =>
    ((await shop.call('ann', 'GET', `mails?limit=1000&${query}`)).body.items as { id: number }[])
      .map(({ id }) => id)
      .toSorted((a, b) => a - b);

  test('true lists the rows of the index that the caller sees, false all others, NULL among them', async () => {
    expect(await listed('failed=true')).toEqual([500, 700, 1000, 1400, 2000]);
    const others = await listed('failed=false');
    expect(others).not.toContain(500);
    expect(await listed('failed=false&status=gone')).toEqual([]);
    const { body } = await shop.call('ann', 'QUERY', 'mails', { where: { failed: false, status: { isnull: true } }, limit: 1000 });
    const seen = (body.items as { id: number }[]).map(({ id }) => id);
    expect(seen).toEqual([999, 1998]);
  });

  test('the statement is served by the partial index', async () => {
    const { queries } = await countQueries(() => shop.call('ann', 'GET', 'mails?failed=true'));
    const { sql: text = '' } = queries.find(({ sql }) => sql.includes('mails')) ?? {};
    expect(text).toContain(`t0."status" <> 'sent' and t0."status" <> 'new'`);
    const { db } = database;
    const explained = text.replaceAll(/\$(\d+)/g, (_all, place: string) => (place === '1' ? `'${people.ann.id}'` : '51'));
    const plan = JSON.stringify(await db.query(`${db.dialect === 'postgres' ? 'explain' : 'explain query plan'} ${explained}`));
    expect(plan).toMatch(/mails_owner_id_id_index/);
  });

  test('it is documented as a boolean', async () => {
    const document = (await shop.inject({ url: '/openapi.json' })).json();
    expect(document.paths['/v1/mails'].get.parameters).toContainEqual(
      expect.objectContaining({ name: 'failed', in: 'query', schema: expect.objectContaining({ type: 'boolean' }) as unknown }),
    );
  });
});

test('words that no index has as its condition are found at startup', () => {
  class Wrong extends CrudController(mailResource, { permission: isAuthenticated, filters: { late: words("this.status = 'new'") } }) {}
  const common = { database: 'sqlite::memory:', log: { level: 'silent' }, docs: false } as const;
  expect(() => createApp({ ...common, mount: { '/v1': { '/mails': Wrong } } })).toThrow(
    /E012 .*"late" is in words that no index of "mails" has.*Known: status <> 'sent' and status <> 'new'/,
  );
  expect(() => words('')).toThrow(/words\(\)/);
});
