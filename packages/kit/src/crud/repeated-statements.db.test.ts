import { expect, test } from 'vitest';
import { CustomerController, ItemController, orderResource, shop as shopModule, startShop } from '../../test/crud/shop.ts';
import { createTable, migration, model, softDelete, t } from '../db/index.ts';
import { nPlusOne } from '../middleware/index.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController, many, resource } from './index.ts';

const bulk = { create: true, update: true, destroy: true } as const;
class OrderController extends CrudController(orderResource, { permission: isAuthenticated, bulk, import: { formats: ['csv'] } }) {}
class PartialController extends CrudController(orderResource, { permission: isAuthenticated, bulk: { ...bulk, mode: 'partial' } }) {}

const trees = model('trees', { id: t.uuidv7().pk(), name: t.text(20) });
const leaves = model('leaves', { id: t.uuidv7().pk(), tree_id: t.ref(() => trees), name: t.text(20), ...softDelete() });
const treeResource = resource(trees, {
  unscoped: true,
  relations: { leaves: many(() => leaves, 'tree_id', { limit: 50 }) },
  nested: { leaves: { input: ['name'], missing: 'delete', max: 50 } },
});
/** Asks the database again for every row of every bulk operation, twice. */
const askingResource = resource(leaves, {
  unscoped: true,
  hooks: {
    async create({ tx, input }, next) {
      if (input.name.startsWith('ask')) for (let time = 0; time < 2; time += 1) await tx.query('select 1 as asked');
      return next(input);
    },
  },
});
class TreeController extends CrudController(treeResource, { permission: isAuthenticated, expand: ['leaves'] }) {}
class LeafController extends CrudController(askingResource, { permission: isAuthenticated, bulk }) {}
const forest = {
  name: 'forest',
  models: [trees, leaves],
  migrations: [
    migration('0001_forest', [createTable('trees', trees.columns), createTable('leaves', { ...leaves.columns, tree_id: t.ref('trees') })]),
  ],
};

describeDatabases('nPlusOne() and rows that are sent together', (database) => {
  const numbers = Array.from({ length: 10 }, (_, index) => index);
  const start = () =>
    startShop({
      database: database.db,
      modules: [shopModule, forest],
      mount: {
        '/v1': {
          '/orders': OrderController,
          '/partial': PartialController,
          '/customers': CustomerController,
          '/items': ItemController,
          '/trees': TreeController,
          '/leaves': LeafController,
        },
      },
      middleware: [nPlusOne({ mode: 'throw' })],
    });

  test('87: bulk, import and nested writes of many rows are no mistake', async () => {
    await using shop = await start();
    const items = numbers.map((number) => ({ item: `Lamp ${number}`, quantity: 1, total: '5.00' }));
    const made = await shop.call('ann', 'POST', 'orders/bulk', { items });
    const ids = (made.body.items as { id: string }[]).map(({ id }) => id);
    const changed = ids.map((id, index) => ({ id, item: `Desk ${index}` }));
    expect((await shop.call('ann', 'POST', 'orders/bulk-update', { items: changed })).status).toBe(200);
    const partial = await shop.call('ann', 'POST', 'partial/bulk', { items });
    expect([partial.status, partial.headers['x-bulk-failed']]).toEqual([207, '0']);
    expect((await shop.call('ann', 'POST', 'partial/bulk-update', { items: changed })).status).toBe(207);
    expect((await shop.call('ann', 'POST', 'partial/bulk-delete', { ids })).status).toBe(207);
    const file = ['item,quantity,total', ...Array.from({ length: 1000 }, (_, index) => `i${index},1,2.00`), ''].join('\n');
    const request = {
      method: 'POST',
      url: '/v1/orders/import?format=csv',
      headers: { 'x-user': 'ann', 'content-type': 'text/csv' },
    } as const;
    expect((await shop.inject({ ...request, payload: file })).statusCode).toBe(201);
    const tree = await shop.call('ann', 'POST', 'trees', { name: 'a', leaves: numbers.map((number) => ({ name: `l${number}` })) });
    const url = `trees/${tree.body.id}`;
    const { body } = await shop.call('ann', 'GET', `${url}?expand=leaves`);
    const sent = (body.leaves as { id: string }[]).map(({ id }, index) => ({ id, name: `k${index}` }));
    expect((await shop.call('ann', 'PATCH', url, { leaves: sent })).status).toBe(200);
    expect((await shop.call('ann', 'PATCH', url, { leaves: [] })).status).toBe(200);
  });

  test('87: a hook that asks more than once for each of them is', async () => {
    await using shop = await start();
    const tree = await shop.call('ann', 'POST', 'trees', { name: 'a' });
    const bulkOf = (name: string) =>
      shop.call('ann', 'POST', 'leaves/bulk', { items: numbers.map((number) => ({ tree_id: tree.body.id, name: `${name}${number}` })) });
    expect([(await bulkOf('l')).status, (await bulkOf('ask')).status]).toEqual([201, 500]);
    expect(shop.records.some(({ msg }) => msg.startsWith('LeafController.bulkCreate (POST /v1/leaves/bulk) ran the same'))).toBe(true);
  });
});
