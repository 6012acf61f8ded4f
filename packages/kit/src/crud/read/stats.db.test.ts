import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  CustomerController,
  customers,
  ItemController,
  orderResource,
  orders,
  people,
  shop as shopModule,
  startShop,
  type Person,
  type ShopApp,
} from '../../../test/crud/shop.ts';
import type { StartUpError } from '../../app/check/start-up-error.ts';
import { createTable, migration, model, t } from '../../db/index.ts';
import { countQueries } from '../../db/engine/query-observer.ts';
import { insertMany } from '../../db/rows/repository.ts';
import { openApiDocument } from '../../openapi/document.ts';
import { isAuthenticated, isStaff } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { avg, count, countDistinct, CrudController, max, min, resource, sum, visibleTo, writableBy } from '../index.ts';

class OrderController extends CrudController(orderResource, {
  permission: isAuthenticated,
  filters: { status: ['eq'], item: ['eq'] },
  search: ['item'],
  stats: {
    by: ['status', 'created_at', 'margin', 'item'],
    metrics: { orders: count(), revenue: sum('total'), gain: sum('margin') },
  },
}) {}

const numbers = model('numbers', {
  id: t.int().pk(),
  name: t.text(20).nullable(),
  day: t.date(),
  at: t.timestamp(),
  small: t.int().nullable(),
  large: t.bigint(),
  price: t.decimal(12, 2).nullable(),
  huge: t.decimal(30, 10),
  ratio: t.float(),
  yes: t.bool(),
});
const numberTable = migration('0001_numbers', [createTable('numbers', numbers.columns)]);
const numberResource = resource(numbers, { unscoped: true });
class NumberController extends CrudController(numberResource, {
  permission: isAuthenticated,
  filters: { id: ['lte', 'gt'] },
  stats: {
    by: ['name', 'day', 'at', 'yes', 'id'],
    metrics: {
      rows: count(),
      names: countDistinct('name'),
      small: sum('small'),
      large: sum('large'),
      price: sum('price'),
      huge: sum('huge'),
      ratio: sum('ratio'),
      price_avg: avg('price'),
      small_avg: avg('small'),
      price_min: min('price'),
    },
  },
}) {}
class ExtremeController extends CrudController(numberResource, {
  permission: isAuthenticated,
  filters: { id: ['lte', 'gt'] },
  stats: {
    metrics: {
      price_min: min('price'),
      price_max: max('price'),
      huge_min: min('huge'),
      huge_max: max('huge'),
      at_min: min('at'),
      day_max: max('day'),
      name_min: min('name'),
      large_max: max('large'),
      small_max: max('small'),
    },
  },
}) {}

const eleven = Object.fromEntries(Array.from({ length: 11 }, (_, index) => [`m${index + 1}`, sum('small')]));
class ManyController extends CrudController(numberResource, { permission: isAuthenticated, stats: { metrics: eleven } }) {}

const rows = [
  {
    id: 1,
    name: 'b',
    day: '2026-01-31',
    at: new Date('2026-01-31T23:30:00Z'),
    small: 2147483647,
    large: 9007199254740993n,
    price: '0.10',
    huge: '12345678901234567890.1234567891',
    ratio: 0.1,
    yes: true,
  },
  {
    id: 2,
    name: 'a',
    day: '2026-02-01',
    at: new Date('2026-02-01T00:30:00Z'),
    small: 2147483647,
    large: 9007199254740993n,
    price: '0.20',
    huge: '-0.0000000001',
    ratio: 0.2,
    yes: false,
  },
  {
    id: 3,
    name: 'b',
    day: '2026-02-03',
    at: new Date('2026-02-02T12:00:00Z'),
    small: null,
    large: -1n,
    price: '-9999999999.99',
    huge: '99999999999999999999.9999999999',
    ratio: 0.7,
    yes: true,
  },
  {
    id: 4,
    name: null,
    day: '2027-03-01',
    at: new Date('2027-03-01T00:00:00Z'),
    small: 1,
    large: 0n,
    price: null,
    huge: '1.0000000000',
    ratio: 0,
    yes: true,
  },
];

describeDatabases('stats', (database) => {
  let shop: ShopApp;
  const stats = async (person: Person, url: string) => {
    const { status, body } = await shop.call(person, 'GET', url);
    return { status, body, items: body.items as Record<string, unknown>[] };
  };

  beforeAll(async () => {
    shop = await startShop({
      database: database.db,
      mount: {
        '/v1': {
          '/orders': OrderController,
          '/numbers': NumberController,
          '/extremes': ExtremeController,
          '/many': ManyController,
          '/customers': CustomerController,
          '/items': ItemController,
        },
      },
      modules: [shopModule, { name: 'numbers', models: [numbers], migrations: [numberTable] }],
    });
    const row = (owner: Person, item: string, total: string, status: 'open' | 'paid' = 'open') => ({
      org: people[owner].tenant as string,
      owner_id: people[owner].id,
      item,
      quantity: 1,
      total,
      margin: '0.10',
      status,
    });
    await insertMany(database.db, orders, [
      row('ann', 'lamp', '0.10'),
      row('ann', 'lamp', '0.20', 'paid'),
      row('ann', 'vase', '1.00', 'paid'),
      row('bob', 'bobs', '500.00'),
      row('cid', 'cids', '9000.00'),
    ]);
    await insertMany(database.db, numbers, rows);
    await insertMany(database.db, customers, [{ org: 'north', name: 'x' }]);
  });
  afterAll(() => shop.close());

  test('80: decimal, bigint and int sums are exact on both databases', async () => {
    const { items, body } = await stats('ann', 'numbers/stats');
    expect(items).toEqual([
      {
        rows: 4,
        names: 2,
        small: 4294967295,
        large: '18014398509481985',
        price: '-9999999999.69',
        huge: '112345678901234567891.1234567889',
        ratio: 1,
        price_avg: '-3333333333.230000',
        small_avg: 1431655765,
        price_min: '-9999999999.99',
      },
    ]);
    expect(body).toMatchObject({ count: 1, next: null, previous: null });
  });

  test('a sum of floats that no JSON number holds is 422, also where infinities would cancel out', async () => {
    const [plain] = rows;
    const far = (id: number, ratio: number) => ({ ...plain!, id, ratio });
    const biggest = Number.MAX_VALUE;
    await insertMany(database.db, numbers, [far(101, biggest), far(102, biggest), far(103, -biggest), far(104, -biggest)]);
    try {
      for (const [filter, metrics] of [
        ['id__gt=100&id__lte=102', 'ratio'],
        ['id__gt=102', 'ratio,rows'],
        ['id__gt=100', 'ratio'],
      ]) {
        const { status, body } = await stats('ann', `numbers/stats?${filter}&metrics=${metrics}`);
        expect([filter, status, body.errors?.[0]]).toEqual([
          filter,
          422,
          expect.objectContaining({
            location: ['query', 'metrics'],
            code: 'too_large',
            message: expect.stringContaining('"ratio"') as string,
          }),
        ]);
      }
      expect((await stats('ann', 'numbers/stats?id__gt=100&id__lte=101&metrics=ratio')).items).toEqual([{ ratio: biggest }]);
      expect((await stats('ann', 'numbers/stats?id__gt=200&metrics=ratio')).items).toEqual([{ ratio: null }]);
    } finally {
      await database.db.query('delete from numbers where id > 100');
    }
  });

  test('min and max compare by value', async () => {
    const { items } = await stats('ann', 'extremes/stats');
    expect(items).toEqual([
      {
        price_min: '-9999999999.99',
        price_max: '0.20',
        huge_min: '-0.0000000001',
        huge_max: '99999999999999999999.9999999999',
        at_min: '2026-01-31T23:30:00.000Z',
        day_max: '2027-03-01',
        name_min: 'a',
        large_max: '9007199254740993',
        small_max: 2147483647,
      },
    ]);
    expect((await stats('ann', 'extremes/stats?id__gt=100')).items).toEqual([
      {
        price_min: null,
        price_max: null,
        huge_min: null,
        huge_max: null,
        at_min: null,
        day_max: null,
        name_min: null,
        large_max: null,
        small_max: null,
      },
    ]);
  });

  test('groups are buckets of UTC, ordered by group with NULL last, or by a metric', async () => {
    const grouped = async (query: string) => (await stats('ann', `numbers/stats?metrics=rows&${query}`)).items;
    expect(await grouped('group_by=at__month')).toEqual([
      { at__month: '2026-01-01T00:00:00.000Z', rows: 1 },
      { at__month: '2026-02-01T00:00:00.000Z', rows: 2 },
      { at__month: '2027-03-01T00:00:00.000Z', rows: 1 },
    ]);
    expect((await grouped('group_by=at__week')).map(({ at__week: week }) => week)).toEqual([
      '2026-01-26T00:00:00.000Z',
      '2026-02-02T00:00:00.000Z',
      '2027-03-01T00:00:00.000Z',
    ]);
    expect((await grouped('group_by=at__hour')).map(({ at__hour: hour }) => hour)).toEqual([
      '2026-01-31T23:00:00.000Z',
      '2026-02-01T00:00:00.000Z',
      '2026-02-02T12:00:00.000Z',
      '2027-03-01T00:00:00.000Z',
    ]);
    expect((await grouped('group_by=day__year')).map(({ day__year: year, rows: n }) => [year, n])).toEqual([
      ['2026-01-01', 3],
      ['2027-01-01', 1],
    ]);
    expect((await grouped('group_by=day')).length).toBe(4);
    expect(await grouped('group_by=name,yes')).toEqual([
      { name: 'a', yes: false, rows: 1 },
      { name: 'b', yes: true, rows: 2 },
      { name: null, yes: true, rows: 1 },
    ]);
    expect((await grouped('group_by=name&ordering=-rows')).map(({ name }) => name)).toEqual(['b', 'a', null]);
    expect((await stats('ann', 'numbers/stats?metrics=price&group_by=id&ordering=-price')).items.map(({ id }) => id)).toEqual([2, 1, 3, 4]);
  });

  test('2: stats never count a row of another owner or tenant; filters and search apply', async () => {
    expect((await stats('ann', 'orders/stats?group_by=status')).items).toEqual([
      { status: 'open', orders: 1, revenue: '0.10' },
      { status: 'paid', orders: 2, revenue: '1.20' },
    ]);
    expect((await stats('sue', 'orders/stats')).items).toEqual([{ orders: 4, revenue: '501.30', gain: '0.40' }]);
    expect((await stats('ann', 'orders/stats?search=lamp&metrics=revenue')).items).toEqual([{ revenue: '0.30' }]);
    expect((await stats('ann', 'orders/stats?item=nothing')).items).toEqual([{ orders: 0, revenue: null }]);
    expect((await stats('nil', 'orders/stats')).status).toBe(403);
  });

  test('34, 80: a hidden column is unknown as a group and in a metric; staff may', async () => {
    for (const query of ['group_by=margin', 'metrics=gain', 'ordering=gain']) {
      const hidden = await stats('ann', `orders/stats?${query}`);
      const misspelt = await stats('ann', `orders/stats?${query.replace(/margin|gain/, 'nope')}`);
      expect([query, hidden.status, misspelt.status]).toEqual([query, 422, 422]);
      expect(hidden.body.errors[0].message.replace(/margin|gain/, 'nope')).toBe(misspelt.body.errors[0].message);
      expect([query, (await stats('sue', `orders/stats?${query}`)).status]).toEqual([query, 200]);
    }
  });

  test('80: more than 1,000 groups are 422, and so are undeclared fields', async () => {
    const many = Array.from({ length: 1001 }, (_, index) => ({ ...rows[3]!, id: 1000 + index }));
    await insertMany(database.db, numbers, many);
    const refused = await stats('ann', 'numbers/stats?group_by=id');
    expect([refused.status, refused.body.code, refused.body.groups_max]).toEqual([422, 'too_many_groups', 1000]);
    expect((await stats('ann', 'numbers/stats?group_by=id&id__lte=10')).items.length).toBe(4);
    for (const query of [
      'group_by=at',
      'group_by=day__hour',
      'group_by=',
      'group_by=name,yes,day,at__day',
      'metrics=nope',
      'ordering=nope',
      'limit=3',
      'fields=id',
      'nope=1',
    ])
      expect([query, (await stats('ann', `numbers/stats?${query}`)).status]).toEqual([query, 422]);
  });

  test('with more than 10 metrics declared a caller chooses: none are left out silently', async () => {
    const names = Object.keys(eleven);
    const everything = await stats('ann', 'many/stats?ordering=-m11');
    const message = `At most 10 names, and 11 are offered: choose. Known: ${names.join(', ')}.`;
    expect([everything.status, everything.body.errors]).toEqual([422, [{ location: ['query', 'metrics'], code: 'too_many', message }]]);
    expect((await stats('ann', `many/stats?metrics=${names.join()}`)).status).toBe(422);
    const chosen = await stats('ann', `many/stats?metrics=${names.slice(1).join()}&ordering=-m11`);
    expect([chosen.status, Object.keys(chosen.items[0] ?? {})]).toEqual([200, names.slice(1)]);
  });

  test('81: /meta of two roles differs in fields, writability, filters, operations and transitions; its second request is 304, without a statement', async () => {
    const notes = resource(customers, { name: 'note', tenant: 'org', fields: { credit: visibleTo(isStaff), terms: writableBy(isStaff) } });
    class NoteController extends CrudController(notes, {
      permission: isAuthenticated,
      filters: { credit: ['gte'], name: ['eq'] },
      ordering: { by: ['name', 'credit'] },
      meta: true,
      operations: { destroy: { permission: isStaff } },
    }) {}
    class FullController extends CrudController(orderResource, {
      permission: isAuthenticated,
      meta: true,
      expand: ['customer', 'items'],
      operations: { update: false },
    }) {}
    const app = await startShop({
      database: database.db,
      mount: { '/v1': { '/orders': FullController, '/notes': NoteController, '/items': ItemController } },
    });
    try {
      const meta = async (person: Person, headers = {}) => app.call(person, 'GET', 'notes/meta', undefined, headers);
      const [ann, sue] = [await meta('ann'), await meta('sue')];
      expect(ann.body).toMatchObject({
        name: 'note',
        key: 'id',
        operations: ['list', 'query', 'retrieve', 'create', 'update', 'partialUpdate', 'meta'],
        fields: ['id', 'org', 'name', 'terms'],
        ordering: { by: ['name'], default: ['-id'] },
        search: null,
        transitions: [],
        limits: { page: 50, page_max: 1000 },
        ui: { columns: { name: { label: 'Name', control: 'text' }, terms: { label: 'Terms', control: 'number' } } },
      });
      expect(Object.keys(ann.body.input.properties)).toEqual(['name']);
      expect(Object.keys(ann.body.filters)).toEqual(['name']);
      expect(ann.text).not.toContain('credit');
      expect(Object.keys(sue.body.input.properties)).toEqual(['name', 'terms', 'credit']);
      expect(Object.keys(sue.body.output.properties)).toEqual(['id', 'org', 'name', 'terms', 'credit']);
      expect(Object.keys(sue.body.filters)).toEqual(['credit__gte', 'name']);
      expect(sue.body.operations).toContain('destroy');
      const { count: statements, result: again } = await countQueries(() => meta('ann', { 'if-none-match': String(ann.headers['etag']) }));
      expect([again.status, again.text, statements]).toEqual([304, '', 0]);
      expect((await meta('sue', { 'if-none-match': String(ann.headers['etag']) })).status).toBe(200);
      const orderMeta = await app.call('ann', 'GET', 'orders/meta');
      expect(orderMeta.body).toMatchObject({ expand: ['customer', 'items'], transitions: [{ name: 'pay', from: ['open'], to: 'paid' }] });
      expect((await app.call('sue', 'GET', 'orders/meta')).body.transitions.map(({ name }: { name: string }) => name)).toEqual([
        'pay',
        'cancel',
      ]);
      expect((await app.inject('/v1/notes/meta')).statusCode).toBe(401);
    } finally {
      await app.close();
    }
  });

  test('83: E007 for groups and metrics that cannot be', async () => {
    const declare = (more: object) => {
      class Wrong extends CrudController(numberResource, { permission: isAuthenticated, ...more }) {}
      return startShop({
        database: database.db,
        mount: { '/v1': { '/numbers': Wrong } },
        modules: [{ name: 'numbers', models: [numbers], migrations: [numberTable] }],
      });
    };
    const faults = async (more: object) => {
      try {
        await (await declare(more)).close();
        return [];
      } catch (error) {
        return (error as StartUpError).faults.map(({ id, message }) => `${id} ${message}`);
      }
    };
    expect(await faults({ stats: { by: ['nme', 'ratio'], metrics: { a: sum('name'), b: avg('smal'), day: count() } } })).toEqual([
      'E007 Wrong: stats.by refers to a column "nme" that does not exist or that callers cannot see.',
      'E007 Wrong: stats.by has "ratio", and a float column cannot be grouped by.',
      'E007 Wrong: the metric "a" has "name", and a text column cannot be summed.',
      'E007 Wrong: the metric "b" refers to a column "smal" that does not exist or that callers cannot see.',
    ]);
    expect(await faults({ stats: { by: ['day'], metrics: { day: count() } } })).toEqual([
      'E007 Wrong: the metric "day" has the name of a group.',
    ]);
    expect(await faults({ stats: { metrics: {} } })).toEqual(['E007 Wrong: stats has no metrics.']);
  });

  test('the document has the groups and metrics', () => {
    const text = JSON.stringify(openApiDocument(shop.app.routes, { title: 'x', version: '1' }));
    expect(text).toContain('"/v1/numbers/stats"');
    expect(text).toContain('"at__month"');
    expect(text).toContain('"NumberStats"');
    expect(text).toContain('"small_avg"');
  });
});
