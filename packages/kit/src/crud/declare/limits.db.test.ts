import { wholeDocument } from '../../../test/whole-document.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startShop, type ShopApp } from '../../../test/crud/shop.ts';
import type { Module } from '../../app/declare/module.ts';
import { createTable, migration, model, t } from '../../db/index.ts';
import { insertMany } from '../../db/rows/repository.ts';
import { openApiDocument } from '../../openapi/document.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { count, CrudController, fullText, many, max, min, one, resource, sum } from '../index.ts';
import { type ControllerLimits, type LimitOptions, usualLimits } from './limits.ts';

const TEXTS = ['a', 'b', 'c', 'd', 'e', 'f'] as const;
const columns = {
  id: t.int().pk(),
  parent_id: t.int().nullable(),
  a: t.text(100),
  b: t.text(100).nullable(),
  c: t.text(100).nullable(),
  d: t.text(50).nullable(),
  e: t.text(50).nullable(),
  f: t.text(50).nullable(),
  n: t.int().dbDefault(0),
  price: t.decimal(12, 2).nullable(),
  wide: t.decimal(38, 10).nullable(),
};
const words = { fullText: [{ columns: ['a', 'b'] }] };
const things = model('things', { ...columns, parent_id: t.ref('things', { type: t.int() }).nullable() }, words);
const thingResource = resource(things, {
  // A condition, so that references are looked up with their places.
  rows: () => ({ id: { gte: 0 } }),
  relations: {
    parent: one(() => things, 'parent_id'),
    children: many(() => things, 'parent_id', { order: ['id'], limit: 2 }),
  },
});

const text = ['eq', 'ne', 'in', 'nin', 'gt', 'gte', 'lt', 'lte', 'contains', 'starts', 'ends', 'isnull'] as const;
const number = ['eq', 'in', 'nin', 'gte', 'lte', 'isnull'] as const;
const options = {
  permission: isAuthenticated,
  filters: { id: number, n: number, price: number, wide: number, a: text, b: text, c: text, d: text, e: text, f: text, 'parent.n': number },
  search: ['a', 'b'],
  ordering: { by: ['a', 'b', 'c', 'd', 'e', 'f', 'n', 'price', 'id'] },
  page: { max: 10_000, count: 'none' },
  import: { formats: ['csv'] },
  stats: {
    by: ['id', 'a', 'b', 'c', 'd', 'e'],
    metrics: Object.fromEntries([
      ['rows', count()],
      ...(['id', 'n', 'price', 'wide'] as const).flatMap((name) => [
        [`${name}_sum`, sum(name)],
        [`${name}_min`, min(name)],
        [`${name}_max`, max(name)],
      ]),
    ]) as Record<string, ReturnType<typeof count>>,
  },
  meta: true,
} as const;
const METRICS = Object.keys(options.stats.metrics);

const PATHS = [
  'parent.parent.parent.parent',
  'children.parent.parent',
  'children.children.parent',
  'parent.children.parent',
  'parent.parent.children',
];
/** Every prefix of them. */
const USABLE = [...new Set(PATHS.flatMap((path) => path.split('.').map((_, index, steps) => steps.slice(0, index + 1).join('.'))))];

const raised: ControllerLimits = {
  offset: 20_000,
  filters: 40,
  listValues: 500,
  whereDepth: 8,
  whereLeaves: 80,
  searchLength: 400,
  searchWords: 20,
  orderingColumns: 5,
  expandDepth: 4,
  expandPaths: 11,
  expandRows: 12_000,
  statsGroups: 5,
  statsMetrics: 12,
  statsRows: 1_100,
  importErrors: 60,
};
const lowered: ControllerLimits = {
  offset: 5,
  filters: 2,
  listValues: 3,
  whereDepth: 2,
  whereLeaves: 3,
  searchLength: 10,
  searchWords: 2,
  orderingColumns: 1,
  expandDepth: 1,
  expandPaths: 1,
  expandRows: 10,
  statsGroups: 1,
  statsMetrics: 2,
  statsRows: 2,
  importErrors: 2,
};
const greatest: LimitOptions = {
  filters: 500,
  listValues: 5_000,
  whereDepth: 8,
  whereLeaves: 500,
  searchLength: 10_000,
  searchWords: 100,
  orderingColumns: 10,
  expandDepth: 10,
};

class RaisedController extends CrudController(thingResource, { ...options, expand: PATHS as never[], limits: raised }) {}
class LoweredController extends CrudController(thingResource, { ...options, expand: ['parent', 'children'], limits: lowered }) {}
class UsualController extends CrudController(thingResource, { ...options, expand: ['parent', 'children'] }) {}
class PartlyController extends CrudController(thingResource, { ...options, limits: { filters: 31, statsRows: undefined as never } }) {}
class GreatestController extends CrudController(thingResource, {
  ...options,
  expand: [Array.from({ length: 10 }, () => 'parent').join('.') as 'parent'],
  limits: greatest,
}) {}
class WordsController extends CrudController(thingResource, {
  ...options,
  search: fullText({ columns: ['a', 'b'] }),
  limits: { searchLength: 10_000, searchWords: 100 },
}) {}
const offsets = { ...options, page: { style: 'offset' } } as const;
class RaisedOffsets extends CrudController(thingResource, { ...offsets, limits: { offset: raised.offset } }) {}
class LoweredOffsets extends CrudController(thingResource, { ...offsets, limits: { offset: lowered.offset } }) {}

const module: Module = {
  name: 'things',
  models: [things],
  migrations: [
    migration('0001_things', [createTable('things', { ...columns, parent_id: t.ref('things', { type: t.int() }).nullable() }, words)]),
  ],
};
const mount = {
  '/v1': {
    '/raised': RaisedController,
    '/lowered': LoweredController,
    '/usual': UsualController,
    '/partly': PartlyController,
    '/greatest': GreatestController,
    '/words': WordsController,
    '/raised-offsets': RaisedOffsets,
    '/lowered-offsets': LoweredOffsets,
  },
};

const numbers = (length: number, first = 1) => Array.from({ length }, (_, index) => index + first);
const nestedOr = (depth: number): object => (depth === 1 ? { n: { gte: 0, lte: 9 } } : { n: { gte: 0 }, or: [nestedOr(depth - 1)] });
const snake = (limits: object) =>
  Object.fromEntries(
    Object.entries(limits).map(([name, value]) => [name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value as number]),
  );

describeDatabases('limits of a controller', (database) => {
  let shop: ShopApp;
  beforeAll(async () => {
    shop = await startShop({ database: database.db, mount, modules: [module] });
    const rows = numbers(1_200).map((id) => ({
      id,
      parent_id: id === 1 ? null : Math.max(1, Math.floor(id / 3)),
      a: `text ${id}`,
      b: id % 2 === 0 ? `b${id % 5}` : null,
      c: `c${id % 3}`,
      d: `d${id % 4}`,
      e: 'e',
      f: null,
      n: id % 10,
      price: `${id}.50`,
      wide: `${id}.25`,
    }));
    for (let start = 0; start < rows.length; start += 300) await insertMany(database.db, things, rows.slice(start, start + 300) as never);
  });
  afterAll(() => shop.close());

  const get = (path: string, query: string) => shop.call('ann', 'GET', `${path}${query}`);
  const query = (path: string, body: object) => shop.call('ann', 'POST', `${path}/query?limit=1`, body);
  const upload = (path: string, lines: readonly string[]) =>
    shop.call('ann', 'POST', `${path}/import?dry_run=true`, lines.join('\n'), { 'content-type': 'text/csv' });

  const filters = TEXTS.flatMap((name) => [
    `${name}__ne=-`,
    `${name}__gt=a`,
    `${name}__gte=a`,
    `${name}__lt=z`,
    `${name}__lte=z`,
    `${name}__contains=e`,
    `${name}__starts=t`,
    `${name}__ends=1`,
    `${name}__isnull=false`,
  ]);

  describe.each([
    ['raised', raised],
    ['lowered', lowered],
  ] as const)('%s', (path, limits) => {
    const cases: Record<
      Exclude<keyof ControllerLimits, 'offset' | 'importErrors' | 'whereDepth' | 'whereLeaves'>,
      (n: number) => string
    > = {
      filters: (n) => `?${filters.slice(0, n).join('&')}`,
      listValues: (n) => `?id__in=${numbers(n).join()}`,
      searchLength: (n) => `?search=${'é'.repeat(n)}`,
      searchWords: (n) => `?search=${numbers(n).join('%20')}`,
      orderingColumns: (n) => `?limit=5&ordering=${options.ordering.by.slice(1, n + 1).join(',-')}`,
      expandDepth: (n) => `?limit=1&expand=${Array.from({ length: n }, () => 'parent').join('.')}`,
      expandPaths: (n) => `?limit=1&expand=${(path === 'lowered' ? ['parent', 'children'] : [...USABLE, 'more']).slice(0, n).join()}`,
      expandRows: (n) => `?limit=${Math.ceil(n / 2)}&expand=children`,
      statsGroups: (n) => `/stats?id__lte=2&metrics=rows&group_by=${options.stats.by.slice(0, n).join()}`,
      statsMetrics: (n) => `/stats?metrics=${METRICS.slice(0, n).join()}`,
      statsRows: (n) => `/stats?group_by=id&metrics=rows&id__lte=${n}`,
    };

    test.each(Object.entries(cases) as [keyof typeof cases, (n: number) => string][])(
      '%s: as many are taken, one more is 422 and names the number',
      async (name, url) => {
        const limit = limits[name];
        const taken = await get(path, url(limit));
        expect([taken.status, taken.body.code, taken.body.errors]).toEqual([200, undefined, undefined]);
        const refused = await get(path, url(limit + 1));
        expect(refused.status).toBe(422);
        expect(JSON.stringify(refused.body)).toMatch(new RegExp(`\\b${limit}\\b`));
      },
    );

    test('listValues, searchLength and orderingColumns also hold in QUERY and in stats', async () => {
      const body = (n: number) => ({ where: { id: { in: numbers(n) } } });
      expect((await query(path, body(limits.listValues))).status).toBe(200);
      expect((await query(path, body(limits.listValues + 1))).body.errors[0].message).toContain(`at most ${limits.listValues} values`);
      expect((await query(path, { search: 'x'.repeat(limits.searchLength) })).status).toBe(200);
      expect((await query(path, { search: 'x'.repeat(limits.searchLength + 1) })).body.errors[0].code).toBe('too_long');
      const ordered = (n: number) => get(path, `/stats?ordering=${METRICS.slice(0, n).join()}&metrics=${METRICS.slice(0, 2).join()}`);
      expect((await ordered(limits.orderingColumns)).body.errors ?? []).not.toContainEqual(expect.objectContaining({ code: 'too_many' }));
      expect((await ordered(limits.orderingColumns + 1)).body.errors).toContainEqual(expect.objectContaining({ code: 'too_many' }));
    });

    test('whereDepth and whereLeaves', async () => {
      const treeOf = (n: number): object => (n === 1 ? { n: 1 } : { or: [treeOf(n - 1)] });
      const depth = (n: number) => query(path, { where: treeOf(n) });
      expect((await depth(limits.whereDepth)).status).toBe(200);
      const deep = await depth(limits.whereDepth + 1);
      expect([deep.status, deep.body.errors[0]]).toMatchObject([
        422,
        { code: 'too_deep', message: `At most ${limits.whereDepth} levels.` },
      ]);
      const leaves = (n: number) => query(path, { where: { or: numbers(n).map((each) => ({ n: each })) } });
      expect((await leaves(limits.whereLeaves)).status).toBe(200);
      const more = await leaves(limits.whereLeaves + 1);
      expect([more.status, more.body.errors[0]]).toMatchObject([
        422,
        { code: 'too_many', message: `At most ${limits.whereLeaves} conditions.` },
      ]);
    });

    test('offset, and the link to the next page stays within it', async () => {
      const list = (offset: number, limit = 1) => get(`${path}-offsets`, `?limit=${limit}&offset=${offset}`);
      expect((await list(limits.offset)).status).toBe(200);
      const refused = await list(limits.offset + 1);
      expect([refused.status, refused.body.errors[0].message]).toEqual([422, expect.stringContaining(`and ${limits.offset}.`)]);
      if (path !== 'lowered') return;
      expect((await list(2, 3)).body.next).toBe('?offset=5&limit=3');
      expect((await list(3, 3)).body.next).toBeNull();
    });

    test('importErrors: an import lists so many faults of values, and of references', async () => {
      const wrong = await upload(path, ['id,a,n', ...numbers(limits.importErrors + 1, 5_000).map((id) => `${id},x,wrong`)]);
      expect([wrong.status, wrong.body.errors.length]).toEqual([422, limits.importErrors]);
      const lost = await upload(path, ['id,a,parent_id', ...numbers(limits.importErrors + 1, 5_000).map((id) => `${id},x,${id + 4_000}`)]);
      expect([lost.status, lost.body.errors.length]).toEqual([422, limits.importErrors]);
      const fewer = await upload(path, ['id,a,n', '5000,x,wrong']);
      expect([fewer.status, fewer.body.errors.length]).toEqual([422, 1]);
    });

    test('/meta and the OpenAPI document say the same numbers', async () => {
      const { body } = await get(path, '/meta');
      expect(body.limits).toEqual({ page: 50, page_max: 10_000, ...snake(limits) });
      expect(body.filters.id__in.maxItems).toBe(limits.listValues);
      // oxlint-disable-next-line typescript/no-explicit-any -- a document of any shape
      const document: any = wholeDocument(openApiDocument(shop.app.routes, { title: 'Things', version: '1' }));
      const parameter = (address: string, name: string) =>
        document.paths[`/v1/${address}`].get.parameters.find((each: { name: string }) => each.name === name).schema;
      expect(parameter(path, 'id__in').maxItems).toBe(limits.listValues);
      expect(parameter(path, 'search').maxLength).toBe(limits.searchLength);
      expect(parameter(path, 'ordering').maxItems).toBe(limits.orderingColumns);
      expect(parameter(`${path}-offsets`, 'offset').maximum).toBe(limits.offset);
      expect(parameter(`${path}/stats`, 'group_by').maxItems).toBe(limits.statsGroups);
      expect(parameter(`${path}/stats`, 'metrics').maxItems).toBe(limits.statsMetrics);
      expect(parameter(`${path}/stats`, 'ordering').maxItems).toBe(limits.orderingColumns);
      const whole = JSON.stringify(document);
      expect(whole).toContain(`at most ${limits.whereDepth} levels and ${limits.whereLeaves} conditions.`);
      expect(whole).toContain(`"maxItems":${limits.statsRows}`);
    });
  });

  test('a limit that is not said keeps its default, and controllers do not change each other', async () => {
    expect((await get('partly', '/meta')).body.limits).toEqual({ page: 50, page_max: 10_000, ...snake({ ...usualLimits, filters: 31 }) });
    expect((await get('usual', '/meta')).body.limits).toEqual({ page: 50, page_max: 10_000, ...snake(usualLimits) });
    expect((await get('partly', `?${filters.slice(0, 31).join('&')}`)).status).toBe(200);
    expect((await get('usual', `?${filters.slice(0, 31).join('&')}`)).status).toBe(422);
  });

  test('an ordering of five columns is walked completely by cursor', async () => {
    const found: number[] = [];
    for (let url: string | null = '?limit=250&ordering=b,-c,d,-n,price&fields=id'; url !== null;) {
      const { status, body } = await get('raised', url);
      expect(status).toBe(200);
      found.push(...(body.items as { id: number }[]).map(({ id }) => id));
      url = body.next;
    }
    expect([found.length, new Set(found).size]).toEqual([1_200, 1_200]);
  });

  describe('what the greatest limits allow, the databases do', () => {
    const one = async (body: object) => {
      const { status, body: answer } = await query('greatest', body);
      return [status, answer.errors ?? answer.items?.length];
    };

    test('500 conditions, side by side and in 8 levels with a relation', async () => {
      expect(await one({ where: { or: numbers(500).map((id) => ({ wide: `${id}.25` })) } })).toEqual([200, 1]);
      expect(await one({ where: { and: numbers(500).map(() => ({ n: { gte: 0 } })) } })).toEqual([200, 1]);
      expect(await one({ where: nestedOr(8) })).toEqual([200, 1]);
      const below = (depth: number): object =>
        depth === 1 ? { parent: { is: { n: { gte: 0, lte: 9 } } } } : { id: { gte: 0, lte: 5_000 }, not: { not: below(depth - 2) } };
      expect(await one({ where: below(7) })).toEqual([200, 1]);
    });

    test.each(['id', 'n', 'price', 'wide'])('5,000 values of %s in one list or in several, and not one more', async (name) => {
      const values = (length: number) => numbers(length).map((each) => (name === 'price' || name === 'wide' ? `${each}.25` : each));
      expect((await one({ where: { [name]: { in: values(5_000) } } }))[0]).toBe(200);
      expect((await one({ where: { [name]: { nin: values(5_000) } } }))[0]).toBe(200);
      const lists = (amount: number, length: number) => ({
        where: { or: numbers(amount).map(() => ({ [name]: { in: values(length) } })) },
      });
      expect((await one(lists(9, 520)))[0]).toBe(200);
      expect(await one(lists(10, 520))).toEqual([
        422,
        [{ location: ['body', 'where'], code: 'too_many', message: 'At most 5000 values in all lists together.' }],
      ]);
    });

    test('a long list of wide decimals finds the rows it names, and nin the others', async () => {
      const wide = numbers(600).map((each) => `${each}.2500`);
      const found = async (operator: string) => {
        const { body } = await shop.call('ann', 'POST', 'greatest/query?limit=10000', { where: { wide: { [operator]: wide } } });
        return (body.items as { id: number }[]).map(({ id }) => id).toSorted((a, b) => a - b);
      };
      expect(await found('in')).toEqual(numbers(600));
      expect(await found('nin')).toEqual(numbers(600, 601));
    });

    test('searches of 100 words, and of one of 10,000 characters', async () => {
      for (const path of ['greatest', 'words'])
        for (const search of [numbers(100).join(' '), 'x'.repeat(10_000), '𝒳'.repeat(10_000), '%'.repeat(10_000)])
          expect([path, search.slice(0, 5), (await query(path, { search })).status]).toEqual([path, search.slice(0, 5), 200]);
    });

    test('an expansion ten relations deep', async () => {
      const { status, body } = await get('greatest', `?id=1200&expand=${Array.from({ length: 10 }, () => 'parent').join('.')}`);
      expect([status, body.items[0].parent.parent.parent.id]).toEqual([200, 44]);
    });
  });
});
