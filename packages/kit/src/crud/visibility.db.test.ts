import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { customers, orders, people, shop as shopModule, startShop, type ShopApp } from '../../test/crud/shop.ts';
import { countQueries, observeQueries } from '../db/query-observer.ts';
import { insertMany } from '../db/repository.ts';
import { isAuthenticated, isOwner, isStaff, not } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController, one, resource, visibleTo } from './index.ts';

const customerPolicy = resource(customers, { tenant: 'org', fields: { credit: visibleTo(isStaff) } });
const orderPolicy = resource(orders, {
  tenant: 'org',
  rows: () => ({ item: { ne: 'gone' } }),
  relations: { customer: one(() => customers, 'customer_id') },
  fields: { note: visibleTo(isOwner()), code: visibleTo(not(isOwner())), margin: visibleTo(isStaff) },
  computed: {
    terms: {
      requires: ['quantity', 'customer.terms'],
      response: z.int(),
      value: (row: { quantity: number; customer: { terms: number } | null }) => row.quantity * (row.customer?.terms ?? 0),
    },
    rich: {
      requires: ['customer.credit'],
      response: z.boolean(),
      value: (row: { customer: { credit: string | null } | null }) => row.customer?.credit !== null,
    },
    gain: { requires: ['margin'], response: z.string().nullable(), value: (row: { margin: string | null }) => row.margin },
  },
});
class OrderController extends CrudController(orderPolicy, {
  permission: isAuthenticated,
  ordering: { by: ['item'], default: ['item'] },
  expand: ['customer'],
  operations: { create: false },
}) {}

describeDatabases('what a caller sees of a row', (database) => {
  let shop: ShopApp;
  beforeAll(async () => {
    shop = await startShop({
      database: database.db,
      mount: { '/v1': { '/orders': OrderController } },
      modules: [{ ...shopModule, resources: [customerPolicy] }],
    });
    const [customer] = await insertMany(database.db, customers, [{ org: 'north', name: 'Acme', credit: '9.00' }]);
    const row = (owner: string, item: string) => ({
      org: 'north',
      owner_id: owner,
      item,
      quantity: 2,
      total: '1.00',
      margin: '7.00',
      note: 'private',
      code: `c-${item}`,
      customer_id: customer!.id,
    });
    await insertMany(database.db, orders, [row(people.ann.id, 'a'), row(people.bob.id, 'b')]);
  });
  afterAll(() => shop.close());

  test('4: a change that would move a row out of reach is 404 and changes nothing', async () => {
    const { id } = (await shop.call('ann', 'GET', 'orders?limit=1')).body.items[0];
    const before = await database.db.query('select item, version, updated_at from orders where id = $1', [id]);
    expect((await shop.call('ann', 'PATCH', `orders/${id}?fields=id,item`, { item: 'gone' })).status).toBe(404);
    expect(await database.db.query('select item, version, updated_at from orders where id = $1', [id])).toEqual(before);
    expect((await shop.call('ann', 'PATCH', `orders/${id}`, { quantity: 2 })).status).toBe(200);
  });

  test('31: fields select and return only what was asked for', async () => {
    const texts: string[] = [];
    const { body } = await observeQueries(
      ({ sql }) => void texts.push(sql),
      () => shop.call('ann', 'GET', 'orders?fields=id,total'),
    );
    expect(Object.keys(body.items[0])).toEqual(['id', 'total']);
    expect(texts[0]).not.toMatch(/"margin"|"internal_note"|"secret"|"quantity"/);
  });

  test('32, 34: what is hidden is refused like a misspelling, in fields, orderings and filters', async () => {
    for (const [hidden, unknown] of [
      ['fields=margin', 'fields=nopexy'],
      ['fields=gain', 'fields=nope'],
      ['fields=rich', 'fields=nope'],
      ['ordering=margin', 'ordering=nopexy'],
      ['margin=1', 'nopexy=1'],
    ] as const) {
      const answers = await Promise.all([hidden, unknown].map((query) => shop.call('ann', 'GET', `orders?${query}`)));
      const shape = (index: number) =>
        answers[index]?.body.errors.map(({ code, location }: { code: string; location: string[] }) => [code, location[0]]);
      expect([hidden, answers[0]?.status, shape(0)]).toEqual([hidden, 422, shape(1)]);
      expect(answers[1]?.status).toBe(422);
    }
    expect((await shop.call('sue', 'GET', 'orders?fields=margin,gain,rich')).body.items[0]).toMatchObject({
      margin: '7.00',
      gain: '7.00',
      rich: true,
    });
  });

  test('31: no name stands for all fields, also when all fields were asked for before', async () => {
    const { id } = (await shop.call('ann', 'GET', 'orders?limit=1')).body.items[0];
    for (const path of ['orders', `orders/${id}`])
      for (const expand of ['', '&expand=customer']) {
        expect((await shop.call('ann', 'GET', `${path}?${expand.slice(1)}`)).status).toBe(200);
        for (const name of ['*', '|', '**'])
          expect([name, (await shop.call('ann', 'GET', `${path}?fields=${name}${expand}`)).status]).toEqual([name, 422]);
      }
  });

  test('36: a rule about the row is decided on each row of a list; unknown hides', async () => {
    const { body } = await shop.call('ann', 'GET', 'orders');
    expect(body.items.map(({ item, note, code }: { item: string; note?: string; code?: string }) => [item, note, code])).toEqual([
      ['a', 'private', undefined],
      ['b', undefined, 'c-b'],
    ]);
  });

  test('41: a computed field gets what it requires without a statement of its own, and is hidden with any of it', async () => {
    const { result, count } = await countQueries(() => shop.call('ann', 'GET', 'orders'));
    expect(count).toBe(1);
    expect(result.body.items.map(({ terms }: { terms: number }) => terms)).toEqual([60, 60]);
    for (const item of result.body.items) for (const name of ['rich', 'gain', 'margin']) expect(name in item).toBe(false);
    const expanded = await shop.call('ann', 'GET', 'orders?expand=customer');
    expect('credit' in expanded.body.items[0].customer).toBe(false);
  });
});
