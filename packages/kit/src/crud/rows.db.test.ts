import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { customers, orders, people, shop as shopModule, startShop, type Person, type ShopApp } from '../../test/crud/shop.ts';
import type { Module } from '../app/declare/module.ts';
import { createTable, migration, model, t } from '../db/index.ts';
import { countQueries } from '../db/engine/query-observer.ts';
import { whereSql } from '../db/sql/where/where-sql.ts';
import { responseCache } from '../middleware/index.ts';
import { allowAny, isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController, many, one, resource } from './index.ts';

const UNKNOWN = '01890000-0000-7000-8000-000000000000';

/** Two answers that must not be told apart differ in the request's id alone. */
const anonymised = ({ status, text }: { status: number; text: string }) => [status, text.replace(/"request_id":"[^"]*"/, '')];

describeDatabases('which rows a caller reaches', (database) => {
  let shop: ShopApp;
  const own = {} as Record<Person, string>;
  const customer = {} as Record<Person, string>;
  beforeAll(async () => {
    shop = await startShop({ database: database.db });
    for (const person of ['ann', 'bob', 'cid', 'sue'] as const) {
      customer[person] = (await shop.call(person, 'POST', 'customers', { name: `${person}'s` })).body.id;
      const made = await shop.call(person, 'POST', 'orders', {
        item: `of ${person}`,
        quantity: 1,
        total: '10.00',
        customer_id: customer[person],
      });
      expect(made.status).toBe(201);
      own[person] = made.body.id;
    }
  });
  afterAll(() => shop.close());

  test("1: another's row is the 404 of an unknown and of a malformed id, whatever is done to it", async () => {
    const attempts = [
      ['GET', ''],
      ['PUT', '', { item: 'x', quantity: 1, total: '1.00' }],
      ['PATCH', '', { quantity: 2 }],
      ['DELETE', ''],
      ['POST', '/pay'],
      ['GET', '/transitions'],
      ['GET', '?expand=customer,items'],
    ] as const;
    for (const [method, path, payload] of attempts) {
      const answers = await Promise.all(
        [own.ann, own.cid, UNKNOWN, 'not-a-uuid'].map((id) => shop.call('bob', method, `orders/${id}${path}`, payload)),
      );
      for (const answer of answers) expect([method, path, ...anonymised(answer)]).toEqual([method, path, ...anonymised(answers[2]!)]);
      expect(answers[0]?.status).toBe(404);
    }
    expect((await shop.call('ann', 'GET', `orders/${own.ann}`)).body.quantity).toBe(1);
  });

  test('2: a list, its count and a search show and count own rows only; staff see their tenant', async () => {
    const items = async (person: Person, query = '') => {
      const { body, headers } = await shop.call(person, 'GET', `orders${query}`);
      return [body.items.map(({ item }: { item: string }) => item).sort(), body.count, headers['x-total-count']];
    };
    expect(await items('ann')).toEqual([['of ann'], 1, '1']);
    expect(await items('ann', '?search=of')).toEqual([['of ann'], 1, '1']);
    expect(await items('cid')).toEqual([['of cid'], 1, '1']);
    expect(await items('sue')).toEqual([['of ann', 'of bob', 'of sue'], 3, '3']);
  });

  test('3: a body that sends the owner or tenant is 422; the row gets the caller’s', async () => {
    for (const field of ['owner_id', 'org', 'id', 'version', 'created_at', 'status', 'internal_note']) {
      const { status, body } = await shop.call('ann', 'POST', 'orders', { item: 'x', quantity: 1, total: '1.00', [field]: people.bob.id });
      expect([field, status, body.errors?.[0]]).toMatchObject([field, 422, { location: ['body', field], code: 'unknown_field' }]);
    }
    const { body } = await shop.call('ann', 'GET', `orders/${own.ann}`);
    expect([body.owner_id, body.org, body.created_by]).toEqual([people.ann.id, 'north', people.ann.id]);
  });

  test("5: a reference to another tenant's row is 422 unknown_reference on create and update", async () => {
    const error = { location: ['body', 'customer_id'], code: 'unknown_reference' };
    for (const id of [customer.cid, UNKNOWN]) {
      const made = await shop.call('ann', 'POST', 'orders', { item: 'x', quantity: 1, total: '1.00', customer_id: id });
      expect([made.status, made.body.errors]).toMatchObject([422, [error]]);
      const changed = await shop.call('ann', 'PATCH', `orders/${own.ann}`, { customer_id: id });
      expect([changed.status, changed.body.errors]).toMatchObject([422, [error]]);
    }
    expect((await shop.call('ann', 'GET', `orders/${own.ann}`)).body.customer_id).toBe(customer.ann);
    expect((await shop.call('ann', 'GET', 'orders')).body.count).toBe(1);
  });

  test('6: without a tenant every operation is 403 tenant_required', async () => {
    const attempts = [
      ['GET', 'orders'],
      ['GET', `orders/${own.ann}`],
      ['POST', 'orders', { item: 'x', quantity: 1, total: '1.00' }],
      ['PUT', `orders/${own.ann}`, { item: 'x', quantity: 1, total: '1.00' }],
      ['PATCH', `orders/${own.ann}`, { quantity: 1 }],
      ['DELETE', `orders/${own.ann}`],
      ['POST', `orders/${own.ann}/pay`],
      ['QUERY', 'orders', {}],
    ] as const;
    for (const [method, url, payload] of attempts) {
      const { status, body } = await shop.call('nil', method, url, payload);
      expect([method, status, body.code]).toEqual([method, 403, 'tenant_required']);
    }
  });

  test('7: a customer out of the caller’s reach expands to null, items of such an order are left out', async () => {
    const orphan = await shop.call('ann', 'POST', 'orders', { item: 'moved', quantity: 1, total: '1.00', customer_id: customer.ann });
    await database.db.query(`update customers set org = 'south' where id = $1`, [customer.ann]);
    const { body } = await shop.call('ann', 'GET', `orders/${orphan.body.id}?expand=customer`);
    expect([body.customer_id, body.customer]).toEqual([customer.ann, null]);
    await database.db.query(`update customers set org = 'north' where id = $1`, [customer.ann]);
    expect((await shop.call('ann', 'GET', `orders/${orphan.body.id}?expand=customer`)).body.customer.name).toBe("ann's");
    expect((await shop.call('ann', 'DELETE', `orders/${orphan.body.id}`)).status).toBe(204);
  });

  test('12: a rows rule with a name the model does not have is a 500, and nothing is read or written', async () => {
    // At startup, where it is asked, too, there is nothing wrong with it.
    let rule: object | boolean = true;
    class Misspelt extends CrudController(
      resource(customers, {
        rows: () => rule as never,
        input: ['name'],
        hooks: { create: ({ input }, next) => next({ ...input, org: 'north' }) },
      }),
      { permission: isAuthenticated },
    ) {}
    const misspelt = await startShop({
      database: database.db,
      mount: { '/v1': { '/customers': Misspelt } },
      modules: [{ ...shopModule, resources: [] }],
    });
    rule = { owner: people.ann.id };
    const id = customer.ann;
    const requests = [
      ['GET', 'customers'],
      ['GET', `customers/${id}`],
      ['POST', 'customers', { name: 'new' }],
      ['PATCH', `customers/${id}`, { name: 'new' }],
      ['DELETE', `customers/${id}`],
    ] as const;
    try {
      for (const [method, url, payload] of requests) {
        for (const wrong of [
          { owner: people.ann.id },
          { and: [{ name: 'x' }, { nmae: 'x' }] },
          { name: { equals: 'x' } },
          { name: undefined },
        ]) {
          rule = wrong;
          const { count, result } = await countQueries(() => misspelt.call('ann', method, url, payload));
          expect(result.text).not.toContain('nmae');
          expect([method, result.status, result.body.code, count]).toEqual([method, 500, 'invalid_rule', 0]);
        }
      }
    } finally {
      await misspelt.close();
    }
    expect((await shop.call('ann', 'GET', `customers/${id}`)).body.name).toBe("ann's");
  });

  test('4: rows that SQL of its own decides are read again after a write: one that leaves them is 404, and undone', async () => {
    class BySql extends CrudController(
      resource(orders, {
        tenant: 'org',
        rows: () => whereSql('this.quantity < $1', [5]) as never,
        input: ['item', 'quantity', 'total'],
        hooks: { create: ({ input, user }, next) => next({ ...input, owner_id: user?.id ?? '' }) },
      }),
      { permission: isAuthenticated, bulk: { create: true, update: true } },
    ) {}
    const bySql = await startShop({
      database: database.db,
      migrate: false,
      mount: { '/v1': { '/orders': BySql } },
      modules: [{ ...shopModule, resources: [resource(customers, { tenant: 'org' })] }],
    });
    const stored = () => database.db.query<{ quantity: number }>(`select quantity from orders where item = 'by sql'`);
    const order = (quantity: number) => ({ item: 'by sql', quantity, total: '1.00' });
    try {
      const { id } = (await bySql.call('ann', 'POST', 'orders', order(2))).body;
      const answers = [
        await bySql.call('ann', 'POST', 'orders', order(9)),
        await bySql.call('ann', 'PATCH', `orders/${id}`, { quantity: 9 }),
        await bySql.call('ann', 'POST', 'orders/bulk', { items: [order(1), order(9)] }),
        await bySql.call('ann', 'POST', 'orders/bulk-update', { ids: [id], changes: { quantity: 9 } }),
      ];
      expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404]);
      expect(await stored()).toEqual([{ quantity: 2 }]);
      expect((await bySql.call('ann', 'PATCH', `orders/${id}`, { quantity: 4 })).status).toBe(200);
      await database.db.execute(`update orders set quantity = 9 where item = 'by sql'`);
      expect((await bySql.call('ann', 'GET', `orders/${id}`)).status).toBe(404);
    } finally {
      await database.db.execute(`delete from orders where item = 'by sql'`);
      await bySql.close();
    }
  });

  test('10: rows through a relation: an item is there exactly for those who see its order', async () => {
    const { id } = (await shop.call('ann', 'POST', 'items', { order_id: own.ann, sku: 'a', amount: 1 })).body;
    const statuses = async (path: string) =>
      Promise.all((['ann', 'sue', 'bob', 'cid'] as const).map(async (person) => (await shop.call(person, 'GET', path)).status));
    expect(await statuses(`items/${id}`)).toEqual([200, 200, 404, 404]);
    expect((await shop.call('bob', 'GET', 'items')).body).toEqual({ items: [], count: 0, next: null, previous: null });
    expect((await shop.call('bob', 'POST', 'items', { order_id: own.ann, sku: 'b', amount: 1 })).body.errors).toMatchObject([
      { location: ['body', 'order_id'], code: 'unknown_reference' },
    ]);
    expect((await shop.call('bob', 'PATCH', `items/${id}`, { amount: 2 })).status).toBe(404);
  });

  test('a row whose parent has left the tenant is 404 for a change, and stays as it is', async () => {
    const { id } = (await shop.call('sue', 'POST', 'items', { order_id: own.sue, sku: 'mine', amount: 1 })).body;
    await database.db.query('update orders set owner_id = $1 where id = $2', [people.cid.id, own.sue]);
    await database.db.query(`update orders set org = 'south' where id = $1`, [own.sue]);
    expect((await shop.call('sue', 'PATCH', `items/${id}`, { amount: 5 })).status).toBe(404);
    const [row] = await database.db.query<{ amount: number }>('select amount from order_items where id = $1', [id]);
    expect(row?.amount).toBe(1);
    await database.db.query(`update orders set org = 'north', owner_id = $1 where id = $2`, [people.sue.id, own.sue]);
  });
});

describe('names that reach a prototype', () => {
  test('are refused as fields, filters, orderings and members', async () => {
    const shop = await startShop();
    try {
      for (const name of ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty']) {
        for (const url of [
          `orders?${name}=1`,
          `orders?fields=${name}`,
          `orders?ordering=${name}`,
          `orders?expand=${name}`,
          `orders?${name}__eq=1`,
        ]) {
          const { status } = await shop.call('ann', 'GET', url);
          expect([url, status === 422 || status === 400]).toEqual([url, true]);
        }
        const body = JSON.parse(`{"item":"x","quantity":1,"total":"1.00","${name}":1}`) as object;
        expect([name, (await shop.call('ann', 'POST', 'orders', body)).status]).toEqual([
          name,
          expect.toSatisfy((status: number) => status === 400 || status === 422),
        ]);
        const where = JSON.parse(`{"where":{"${name}":1}}`) as object;
        expect((await shop.call('ann', 'QUERY', 'orders', where)).status).toBeGreaterThanOrEqual(400);
      }
    } finally {
      await shop.close();
    }
  });
});

const shelves = model('shelves', { id: t.uuidv7().pk(), org: t.text(20).readOnly(), name: t.text(40) });
const readers = model('readers', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), name: t.text(40) });
const books = model('books', {
  id: t.uuidv7().pk(),
  title: t.text(40),
  shelf_id: t.ref(() => shelves).nullable(),
  reader_id: t.ref(() => readers).nullable(),
});
const remarks = model('remarks', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), book_id: t.ref(() => books), text: t.text(40) });
class ShelfController extends CrudController(resource(shelves, { tenant: 'org' }), { permission: isAuthenticated }) {}
class ReaderController extends CrudController(resource(readers, { owner: 'owner_id' }), { permission: isAuthenticated }) {}
class RemarkController extends CrudController(resource(remarks, { owner: 'owner_id' }), { permission: isAuthenticated }) {}
class BookController extends CrudController(
  resource(books, {
    unscoped: true,
    relations: {
      shelf: one(() => shelves, 'shelf_id'),
      reader: one(() => readers, 'reader_id'),
      remarks: many(() => remarks, 'book_id', { limit: 5 }),
    },
  }),
  { permission: allowAny, expand: ['shelf', 'reader', 'remarks'] },
) {}
const library: Module = {
  name: 'library',
  models: [shelves, readers, books, remarks],
  migrations: [
    migration('0001_initial', [
      createTable('shelves', shelves.columns),
      createTable('readers', readers.columns),
      createTable('books', { ...books.columns, shelf_id: t.ref('shelves').nullable(), reader_id: t.ref('readers').nullable() }),
      createTable('remarks', { ...remarks.columns, book_id: t.ref('books') }),
    ]),
  ],
};

describeDatabases('relations to rows of a tenant or an owner', (database) => {
  test('7: callers without a tenant or credentials get null and no children, and cannot refer to such rows', async () => {
    const shop = await startShop({
      database: database.db,
      modules: [library],
      middleware: [responseCache({ routes: ({ field }) => field === 'list' && { maxAgeMs: 5000 } })],
      mount: {
        '/v1': { '/shelves': ShelfController, '/readers': ReaderController, '/books': BookController, '/remarks': RemarkController },
      },
    });
    try {
      const shelf_id = (await shop.call('ann', 'POST', 'shelves', { name: 'left' })).body.id;
      const reader_id = (await shop.call('ann', 'POST', 'readers', { name: 'Ann' })).body.id;
      const book_id = (await shop.call('ann', 'POST', 'books', { title: 'x', shelf_id, reader_id })).body.id;
      expect((await shop.call('ann', 'POST', 'remarks', { book_id, text: 'good' })).status).toBe(201);
      const expansions = async (person: Person | null, path: string) => {
        const { status, body } = await shop.call(person, 'GET', `${path}?expand=shelf,reader,remarks`);
        const { shelf, reader, remarks: found } = body.items?.[0] ?? body;
        return [status, shelf?.name ?? null, reader?.name ?? null, found?.length];
      };
      for (const path of ['books', `books/${book_id}`]) {
        expect(await expansions('ann', path)).toEqual([200, 'left', 'Ann', 1]);
        expect(await expansions('nil', path)).toEqual([200, null, null, 0]);
        expect(await expansions(null, path)).toEqual([200, null, null, 0]);
      }
      for (const [person, reference] of [
        ['nil', { shelf_id }],
        [null, { shelf_id }],
        [null, { reader_id }],
      ] as const) {
        const { status, body } = await shop.call(person, 'POST', 'books', { title: 'y', ...reference });
        expect([status, body.errors?.[0]?.code]).toEqual([422, 'unknown_reference']);
      }
    } finally {
      await shop.close();
    }
  });
});
