import fc from 'fast-check';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { z } from 'zod';
import {
  CustomerController,
  customers,
  ItemController,
  OrderController,
  orderItems,
  orderResource,
  orders,
  people,
  products,
  shop,
  startShop,
  type Person,
  type ShopApp,
} from '../../test/crud/shop.ts';
import type { Database } from '../db/engine/db.ts';
import { createTable, migration, model, t } from '../db/index.ts';
import { insertMany } from '../db/rows/repository.ts';
import { isAuthenticated, isOwner, isStaff } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { createPostgresDatabase, createSqliteDatabase } from '../testing/test-database.ts';
import { count, CrudController, max, one, resource, sum, visibleTo } from './index.ts';
import { scaled } from '../../../../test/provision/scale.ts';

const CURSOR_KEYS = 'A'.repeat(43);
const RUNS = scaled(500, 20_000);

/** Everything else that reads or writes rows. */
class WideController extends CrudController(orderResource, {
  permission: isAuthenticated,
  filters: { status: ['eq'], margin: ['gte'], 'customer.credit': ['gte'] },
  ordering: { by: ['created_at', 'margin'] },
  expand: ['customer'],
  export: ['csv', 'jsonl'],
  stats: { by: ['status', 'created_at', 'margin', 'item'], metrics: { orders: count(), revenue: sum('total'), best: max('margin') } },
  meta: true,
  bulk: { update: true, destroy: true },
}) {}
/**
 * Memos about customers. `name` and `credit` are hidden here and filters of the customer: a name without its relation is another column. A rule
 * about the row decides on `note`, and computed fields require it.
 */
const memos = model('memos', {
  id: t.uuidv7().pk(),
  org: t.text(20).readOnly(),
  owner_id: t.uuid().readOnly(),
  customer_id: t.ref(() => customers).nullable(),
  name: t.text(40).nullable(),
  credit: t.decimal(12, 2).nullable(),
  note: t.text(40).nullable(),
  title: t.text(40),
});
const memoResource = resource(memos, {
  tenant: 'org',
  relations: { customer: one(() => customers, 'customer_id') },
  hidden: ['name'],
  fields: { note: visibleTo(isOwner()), credit: visibleTo(isStaff) },
  computed: {
    shout: { requires: ['note'], response: z.string(), value: ({ note }) => `${note}!` },
    label: { requires: ['title', 'note', 'customer.name'], response: z.string(), value: (row: object) => JSON.stringify(row) },
    worth: { requires: ['customer.credit', 'credit'], response: z.string(), value: (row: object) => JSON.stringify(row) },
  },
});
const memoOptions = {
  permission: isAuthenticated,
  filters: { title: ['eq'], 'customer.name': ['eq', 'starts'], 'customer.credit': ['gte'], 'customer.terms': ['eq'] },
  expand: ['customer'],
  export: ['csv', 'jsonl'],
  meta: true,
  operations: { create: false },
} as const;
class MemoController extends CrudController(memoResource, memoOptions) {}
/** Shows neither the ruled column nor those that computed fields require. */
class BriefController extends CrudController(memoResource, { ...memoOptions, output: ['id', 'owner_id'] }) {}
const memoTables = migration('0001_memos', [createTable('memos', { ...memos.columns, customer_id: t.ref('customers').nullable() })]);

const id = (group: number, index: number) =>
  `01890000-0000-7000-8${group.toString().padStart(3, '0')}-${index.toString().padStart(12, '0')}`;

/**
 * Two databases that differ only in what `ann` may not see: rows of others and of another tenant, how many there are, and the columns that
 * are hidden from her.
 */
async function fill(db: Database, world: 1 | 2): Promise<void> {
  const other = world === 1 ? 'x' : 'secret';
  const at = (index: number) => new Date(Date.UTC(2026, 0, 1 + index));
  await insertMany(db, products, [{ id: id(1, 1), title: 'Lamp', price: '9.99' }]);
  await insertMany(db, customers, [
    { id: id(2, 1), org: 'north', name: 'Acme', credit: world === 1 ? '1.00' : '999.00' },
    { id: id(2, 2), org: 'north', name: 'Beta', credit: world === 1 ? null : '5.00' },
    { id: id(2, world + 10), org: 'south', name: `foreign ${other}` },
  ]);
  const order = (index: number, changes: object = {}) => ({
    id: id(3, index),
    org: 'north',
    owner_id: people.ann.id as string,
    item: `thing ${index % 4}`,
    quantity: 1 + (index % 3),
    total: `${index}.50`,
    customer_id: index % 3 === 0 ? null : id(2, 1 + (index % 2)),
    due_at: index % 5 === 0 ? null : at(index % 6),
    created_at: at(index),
    updated_at: at(index),
    status: (['open', 'paid', 'cancelled'] as const)[index % 3]!,
    margin: world === 1 ? '1.00' : `${index}.99`,
    internal_note: other,
    secret: other,
    ...changes,
  });
  await insertMany(
    db,
    orders,
    Array.from({ length: 30 }, (_, index) => order(index)),
  );
  // Rows of others between hers, in another number.
  await insertMany(
    db,
    orders,
    Array.from({ length: world === 1 ? 3 : 40 }, (_, index) =>
      order(100 * world + index, { owner_id: people.bob.id, item: `thing ${other}`, created_at: at(index) }),
    ),
  );
  await insertMany(
    db,
    orders,
    Array.from({ length: world === 1 ? 5 : 2 }, (_, index) => order(1000 * world + index, { org: 'south', owner_id: people.ann.id })),
  );
  await insertMany(
    db,
    orderItems,
    Array.from({ length: 12 }, (_, index) => ({
      id: id(4, index),
      order_id: id(3, index % 4),
      sku: `s${index}`,
      amount: index,
      product_id: id(1, 1),
    })),
  );
  await insertMany(
    db,
    orderItems,
    Array.from({ length: world }, (_, index) => ({ id: id(5, 10 * world + index), order_id: id(3, 100 * world), sku: other, amount: 1 })),
  );
  await insertMany(
    db,
    memos,
    Array.from({ length: 9 }, (_, index) => {
      const isHers = index % 2 === 0;
      return {
        id: id(6, index),
        org: 'north',
        owner_id: isHers ? people.ann.id : people.bob.id,
        customer_id: index % 4 === 3 ? null : id(2, 1 + (index % 2)),
        name: (index + world) % 2 === 0 ? 'Acme' : 'Beta',
        credit: world === 1 ? '1.00' : `${index}.00`,
        note: isHers ? `mine ${index}` : `${other} ${index}`,
        title: `memo ${index % 3}`,
      };
    }),
  );
}

/** What of an answer a caller can see. */
const visible = ({ statusCode, body, headers }: { statusCode: number; body: string; headers: object }) => ({
  status: statusCode,
  body: body.replaceAll(/"request_id":"[^"]*"/g, ''),
  headers: Object.fromEntries(Object.entries(headers).filter(([name]) => name !== 'x-request-id' && name !== 'date')),
});

const columns = [
  'id',
  'total',
  'margin',
  'internal_note',
  'secret',
  'item',
  'owner_id',
  'customer',
  'customer.credit',
  'customer.name',
  'overdue',
  'nope',
  'note',
  'org',
];
const values = [
  'open',
  'paid',
  '1',
  '5.50',
  '',
  'true',
  'false',
  'null',
  'thing',
  'secret',
  'Acme',
  '2026-01-05T00:00:00Z',
  people.ann.id,
  id(3, 1),
  '%',
  "'",
  '*',
  '-1',
  'x'.repeat(30),
];
const parameter = fc.oneof(
  fc.record({
    name: fc.constantFrom(
      'status',
      'total',
      'margin',
      'margin__gte',
      'internal_note',
      'internal_note__contains',
      'secret',
      'secret__starts',
      'item__contains',
      'customer__name',
      'customer__credit__gte',
      'customer__credit',
      'created_at__gte',
      'due_at__isnull',
      'total__gte',
      'total__lt',
      'status__in',
      'mine',
      'owner_id',
      'org',
      'nope',
      'search',
      'deleted',
      'where',
      'filters',
      'total__regex',
    ),
    value: fc.constantFrom(...values),
  }),
  fc.record({
    name: fc.constantFrom('ordering'),
    value: fc.constantFrom(
      'created_at',
      '-created_at',
      'total',
      '-total',
      'margin',
      '-margin',
      'due_at',
      '-due_at,item',
      'secret',
      'internal_note',
      'nope',
    ),
  }),
  fc.record({
    name: fc.constantFrom('fields'),
    value: fc.array(fc.constantFrom(...columns), { minLength: 1, maxLength: 3 }).map((names) => names.join()),
  }),
  fc.record({
    name: fc.constantFrom('expand'),
    value: fc.constantFrom('customer', 'items', 'items.product', 'customer,items', 'owner', 'customer.orders', 'a.b.c.d'),
  }),
  fc.record({ name: fc.constantFrom('limit'), value: fc.constantFrom('1', '3', '7', '100', '0', '101') }),
);
const query = fc
  .array(parameter, { maxLength: 5 })
  .map((pairs) => (pairs.length === 0 ? '' : `?${pairs.map(({ name, value }) => `${name}=${encodeURIComponent(value)}`).join('&')}`));
const anyId = fc.constantFrom(
  id(3, 1),
  id(3, 4),
  id(3, 29),
  id(3, 100),
  id(3, 200),
  id(3, 1000),
  id(3, 2000),
  id(2, 11),
  'not-an-id',
  id(9, 9),
);
const leaf = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom<object>(
      { status: 'open' },
      { status: { in: ['paid', 'open'] } },
      { total: { gte: '5.00' } },
      { item: { contains: 'thing' } },
      { item: { starts: 'secret' } },
      { customer: { is: { name: 'Acme' } } },
      { due_at: { isnull: true } },
    ),
  },
  fc
    .record({
      name: fc.constantFrom('status', 'total', 'margin', 'secret', 'customer', 'item', 'nope', 'owner_id'),
      value: fc.oneof(
        fc.constantFrom<unknown>(...values, null, 1, true),
        fc.record({ gte: fc.constantFrom('1', '5.00') }),
        fc.record({ contains: fc.constantFrom('thing', 'secret') }),
        fc.record({ is: fc.constantFrom<unknown>({ name: 'Acme' }, { credit: { gte: '1' } }, {}) }),
      ),
    })
    .map(({ name, value }) => ({ [name]: value })),
);
const tree = fc.letrec<{ tree: object }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3 },
    leaf,
    fc.record({ or: fc.array(tie('tree'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ and: fc.array(tie('tree'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ not: tie('tree') }),
  ),
})).tree;

interface Request {
  readonly method: string;
  readonly url: string;
  readonly payload?: object;
  readonly headers?: Record<string, string>;
}

const memoPath = fc.constantFrom('memos', 'brief');
const memoFields = fc
  .subarray(['shout', 'label', 'worth', 'note', 'name', 'title', 'credit', 'customer.name'], { maxLength: 2 })
  .map((names) => (names.length === 0 ? '' : `&fields=${names.join()}`));
const memoName = fc.constantFrom('customer.name', 'customer.credit', 'customer.terms', 'name', 'credit', 'note', 'shout', 'title');
const memoLeaf = fc.oneof(
  fc.constantFrom<object>(
    { 'customer.name': 'Acme' },
    { 'customer.name': { starts: 'A' } },
    { 'customer.credit': { gte: '2.00' } },
    { name: 'Acme' },
    { credit: { gte: '2.00' } },
  ),
  fc
    .tuple(memoName, fc.constantFrom<unknown>('Acme', { starts: 'secret' }, { gte: '2.00' }, { eq: 30 }, { isnull: true }))
    .map(([name, value]) => ({ [name]: value })),
);
const memoRequest: fc.Arbitrary<Request> = fc.oneof(
  fc
    .tuple(
      memoPath,
      fc.constantFrom('', `/${id(6, 1)}`, `/${id(6, 2)}`, '/export', '/meta'),
      fc.constantFrom('', '&expand=customer'),
      memoFields,
    )
    .map(([path, below, expand, fields]) => ({
      method: 'GET',
      url: `${path}${below}?${below === '/export' ? 'format=jsonl' : ''}${expand}${fields}`,
    })),
  fc.tuple(memoPath, memoLeaf, fc.constantFrom('plain', 'not', 'is')).map(([path, leafOf, kind]) => ({
    method: 'QUERY',
    url: path,
    payload: { where: kind === 'plain' ? leafOf : kind === 'not' ? { not: leafOf } : { customer: { is: leafOf } } },
  })),
  fc
    .tuple(memoPath, memoName, fc.constantFrom('', '__eq', '__starts', '__gte'), fc.constantFrom('Acme', 'A', 'secret', '2.00'))
    .map(([path, name, operator, value]) => ({ method: 'GET', url: `${path}?${name.replace('.', '__')}${operator}=${value}` })),
);

const request: fc.Arbitrary<Request> = fc.oneof(
  { weight: 5, arbitrary: query.map((text) => ({ method: 'GET', url: `orders${text}` })) },
  { weight: 2, arbitrary: fc.tuple(anyId, query).map(([key, text]) => ({ method: 'GET', url: `orders/${key}${text}` })) },
  { weight: 2, arbitrary: fc.tuple(tree, query).map(([where]) => ({ method: 'QUERY', url: 'orders', payload: { where } })) },
  { weight: 1, arbitrary: query.map((text) => ({ method: 'GET', url: `customers${text}` })) },
  { weight: 1, arbitrary: query.map((text) => ({ method: 'GET', url: `items${text}` })) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(anyId, fc.constantFrom('"1"', '"2"', '*', 'W/"1"'))
      .map(([key, tag]) => ({ method: 'GET', url: `orders/${key}`, headers: { 'if-none-match': tag } })),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(
        anyId,
        fc.constantFrom<object>(
          { quantity: 2 },
          { margin: '1.00' },
          { secret: 'mine' },
          { internal_note: 'x' },
          { customer_id: id(2, 11) },
          { customer_id: id(2, 12) },
          { customer_id: id(9, 9) },
          { owner_id: people.bob.id },
          {},
        ),
        fc.boolean(),
      )
      .map(([key, payload, isConditional]) => ({
        method: 'PATCH',
        url: `orders/${key}`,
        payload,
        headers: isConditional ? { 'if-match': '"77"' } : {},
      })),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(anyId, fc.constantFrom('', '/pay', '/cancel', '/restore'), fc.constantFrom('"77"', '"1"', '"2"', '*'))
      .map(([key, path, tag]) => ({ method: path === '' ? 'DELETE' : 'POST', url: `orders/${key}${path}`, headers: { 'if-match': tag } })),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom('csv', 'jsonl', 'xml'), query)
      .map(([format, text]) => ({ method: 'GET', url: `wide/export?format=${format}${text.replace('?', '&')}` })),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(
        fc.constantFrom('', 'status', 'created_at__month', 'margin', 'status,item', 'secret', 'owner_id'),
        fc.constantFrom('orders', 'revenue', 'best', 'orders,revenue', 'secret'),
        fc.constantFrom('', '&margin__gte=1', '&status=open', '&customer__credit__gte=1', '&ordering=-best', '&ordering=-orders'),
      )
      .map(([by, metrics, more]) => ({ method: 'GET', url: `wide/stats?${by === '' ? '' : `group_by=${by}&`}metrics=${metrics}${more}` })),
  },
  { weight: 1, arbitrary: fc.constant({ method: 'GET', url: 'wide/meta' }) },
  { weight: 6, arbitrary: memoRequest },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.array(anyId, { minLength: 1, maxLength: 3 }), fc.constantFrom<object>({ quantity: 3 }, { margin: '2.00' }, { nope: 1 }))
      .map(([ids, changes]) => ({ method: 'POST', url: 'wide/bulk-update', payload: { ids, changes } })),
  },
  {
    weight: 1,
    arbitrary: fc
      .array(anyId, { minLength: 2, maxLength: 3 })
      .map((ids) => ({ method: 'POST', url: 'wide/bulk-delete', payload: { ids: [...ids, id(3, 100)] } })),
  },
);

describeDatabases('two databases that differ only in what a caller may not see', (database) => {
  const worlds: ShopApp[] = [];
  let second: { readonly url: string; remove(): Promise<unknown> } | undefined;
  beforeAll(async () => {
    const server = (inject as (key: string) => unknown)('postgresUrl');
    second = database.dialect === 'sqlite' ? await createSqliteDatabase() : await createPostgresDatabase(server as string);
    for (const world of [1, 2] as const)
      worlds.push(
        await startShop({
          database: world === 1 ? database.url : second.url,
          settings: { cursorKeys: CURSOR_KEYS },
          clock: fakeClock(new Date(Date.UTC(2026, 0, 20))),
          mount: {
            '/v1': {
              '/orders': OrderController,
              '/customers': CustomerController,
              '/items': ItemController,
              '/wide': WideController,
              '/memos': MemoController,
              '/brief': BriefController,
            },
          },
          modules: [shop, { name: 'memos', models: [memos], migrations: [memoTables] }],
          prepare: async ({ db }) => fill(db, world),
        }),
      );
  });
  afterAll(async () => {
    for (const world of worlds) await world.close();
    await second?.remove();
  });

  const both = async (person: Person, { method, url, payload, headers = {} }: Request) => {
    const answers = worlds.map((world) =>
      world.inject({
        method: method as 'GET',
        url: url.startsWith('/') ? url : `/v1/${url}`,
        headers: { 'x-user': person, ...headers },
        ...(payload === undefined ? {} : { payload }),
      }),
    );
    const [one, two] = await Promise.all(answers);
    return [visible(one!), visible(two!)] as const;
  };

  test('answer her with the same bytes, whatever she asks', async () => {
    await fc.assert(
      fc.asyncProperty(request, async (given) => {
        const [one, two] = await both('ann', given);
        expect(two).toEqual(one);
        expect(one.status).toBeLessThan(500);
      }),
      { numRuns: RUNS },
    );
  });

  test('and the same pages, walked to their end', async () => {
    for (const start of [
      '?limit=4',
      '?limit=4&ordering=-total',
      '?limit=3&ordering=due_at&search=thing',
      '?limit=5&expand=customer,items.product',
    ]) {
      for (let next: string | null = start; next !== null;) {
        const [one, two]: readonly [ReturnType<typeof visible>, ReturnType<typeof visible>] = await both('ann', {
          method: 'GET',
          url: `orders${next}`,
        });
        expect(two).toEqual(one);
        next = (JSON.parse(one.body) as { next: string | null }).next;
      }
    }
  });

  test('while staff, who may see it, get the difference', async () => {
    const [one, two] = await both('sue', { method: 'GET', url: 'orders?ordering=margin' });
    expect(two.body).not.toEqual(one.body);
  });

  test('and the document and its hidden names are the same for everyone', async () => {
    const [one, two] = await both('ann', { method: 'GET', url: '/openapi.json' });
    expect(two).toEqual(one);
    expect(one.body).not.toMatch(/internal_note/);
  });
});
