import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { customers, orders, people, shop as shopModule, startShop, type ShopApp } from '../../test/crud/shop.ts';
import { countQueries, observeQueries } from '../db/engine/query-observer.ts';
import { insertMany } from '../db/rows/repository.ts';
import { any, hasRule, isAuthenticated, isOwner, isStaff, not } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController, one, resource, visibleTo } from './index.ts';

const customerPolicy = resource(customers, { tenant: 'org', fields: { credit: visibleTo(isStaff) } });
const isCheap = (_context: object, row: unknown) =>
  row === undefined ? ('unknown' as const) : (row as { total: string }).total === '1.00';
const orderPolicy = resource(orders, {
  tenant: 'org',
  rows: () => ({ item: { ne: 'gone' } }),
  relations: { customer: one(() => customers, 'customer_id') },
  fields: {
    note: visibleTo(isOwner()),
    code: visibleTo(not(isOwner())),
    margin: visibleTo(isStaff),
    labels: visibleTo(any(isStaff, hasRule(isCheap, { requires: ['total'] }))),
    data: visibleTo(hasRule(isCheap)),
  },
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

class NarrowController extends CrudController(orderPolicy, {
  permission: isAuthenticated,
  output: ['id', 'item', 'terms'],
  expand: ['customer'],
  export: ['csv'],
  meta: true,
  operations: { create: false },
}) {}

describeDatabases('what a caller sees of a row', (database) => {
  let shop: ShopApp;
  beforeAll(async () => {
    shop = await startShop({
      database: database.db,
      mount: { '/v1': { '/orders': OrderController, '/narrow': NarrowController } },
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
      labels: ['x'],
      data: { x: 1 },
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

  test.each([
    ['note', ['id', 'note', 'owner_id']],
    ['code,note', ['code', 'id', 'note', 'owner_id']],
    ['labels', ['id', 'labels', 'total']],
  ])('36: a rule about the row selects what it requires, and nothing else: %s', async (fields, columns) => {
    const texts: string[] = [];
    const { body } = await observeQueries(
      ({ sql }) => void texts.push(sql),
      () => shop.call('ann', 'GET', `orders?fields=${fields}`),
    );
    const [statement = ''] = texts;
    const selected = statement.slice(0, statement.indexOf(' from ')).matchAll(/t0\."?(\w+)"?/g);
    expect([...selected].map(([, name]) => name as string).toSorted()).toEqual([...columns, 'item'].toSorted());
    const [own] = body.items;
    expect([own['note'], own['labels']].filter((value) => value !== undefined)).toHaveLength(1);
  });

  test('36: a rule that does not declare what it reads gets the whole row', async () => {
    expect((await shop.call('ann', 'GET', 'orders?fields=data')).body.items).toMatchObject([{ data: { x: 1 } }, { data: { x: 1 } }]);
  });

  test('output shows computed fields that it names, and no others', async () => {
    const { body } = await shop.call('sue', 'GET', 'narrow');
    expect(Object.keys(body.items[0])).toEqual(['id', 'item', 'terms']);
    expect(Object.keys((await shop.call('sue', 'GET', `narrow/${body.items[0].id}`)).body)).toEqual(['id', 'item', 'terms']);
    for (const name of ['gain', 'rich']) expect((await shop.call('sue', 'GET', `narrow?fields=${name}`)).status).toBe(422);
    const file = await shop.inject({ url: '/v1/narrow/export', headers: { 'x-user': 'sue' } });
    expect(file.body.split('\r\n')[0]).toBe('id,item,terms');
    const meta = (await shop.call('sue', 'GET', 'narrow/meta')).body;
    expect(Object.keys(meta.output.properties)).toEqual(expect.arrayContaining(['id', 'item', 'terms']));
    for (const name of ['gain', 'rich', 'margin']) expect(meta.output.properties).not.toHaveProperty(name);
    const document = (await shop.inject({ url: '/openapi.json' })).json();
    const retrieved = JSON.stringify(document.paths['/v1/narrow/{id}'].get.responses['200']);
    expect(retrieved).not.toContain('gain');
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
