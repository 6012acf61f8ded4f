import { wholeDocument } from '../../test/whole-document.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { CustomerController, ItemController, orderResource, shop as shopModule, startShop, type ShopApp } from '../../test/crud/shop.ts';
import { CrudController } from '../crud/index.ts';
import { Controller } from '../http/compile/controller.ts';
import { page } from '../http/declare/page.ts';
import { route } from '../http/declare/route.ts';
import { openApiDocument } from '../openapi/document.ts';
import { allowAny, isAuthenticated } from '../permissions/built-ins.ts';
import { describeDatabases } from '../testing/databases.ts';
import { deprecation, responseVersions } from './index.ts';

class OrderController extends CrudController(orderResource, {
  permission: isAuthenticated,
  filters: { status: ['eq'] },
  ordering: { by: ['item'] },
  bulk: { create: true, mode: 'partial' },
  meta: true,
}) {}

const anonymous = null;
let transforms = 0;
class ThingController extends Controller {
  list = route.get('/', { permission: allowAny, response: page(z.object({ id: z.int(), name: z.string() })) }, () => ({
    items: [{ id: 1, name: 'a' }],
    count: 1,
    next: null,
    previous: null,
  }));
  one = route.get('/one', { permission: allowAny, response: z.object({ id: z.int(), name: z.string() }) }, ({ request, reply }) => {
    reply.header('etag', '"mine"');
    if (request.headers['if-none-match'] === '"mine"') reply.code(200).header('x-seen', 'same');
    return { id: 1, name: 'a' };
  });
  plain = route.get('/plain', { permission: allowAny, response: z.array(z.object({ id: z.int(), name: z.string() })) }, () => [
    { id: 1, name: 'a' },
    { id: 2, name: 'b' },
  ]);
  fails = route.get('/fails', { permission: allowAny, response: z.object({ name: z.string() }) }, () => {
    throw new Error('name: secret');
  });
  nothing = route.delete('/nothing', { permission: allowAny }, () => undefined);
}

const isOrder = ({ controller }: { controller: string }) => controller === 'OrderController';
const isThing = ({ controller }: { controller: string }) => controller === 'ThingController';
const versions = responseVersions({
  versions: [
    { version: '3' },
    {
      version: '2026-01',
      changes: [
        {
          appliesTo: isOrder,
          transform: ({ item, ...rest }: { item: string }) => {
            transforms += 1;
            return { ...rest, title: item };
          },
        },
        { appliesTo: isThing, transform: ({ name, ...rest }: { name: string }) => ({ ...rest, label: name }) },
      ],
    },
    {
      version: '1',
      changes: [{ appliesTo: isOrder, transform: ({ title, ...rest }: { title: string }) => ({ ...rest, caption: `${title}!` }) }],
    },
  ],
});

describeDatabases('response versions', (database) => {
  let shop: ShopApp;
  beforeAll(async () => {
    shop = await startShop({
      database: database.db,
      mount: {
        '/v1': { '/orders': OrderController, '/customers': CustomerController, '/items': ItemController, '/things': ThingController },
      },
      modules: [shopModule],
      middleware: [deprecation(), versions],
    });
  });
  afterAll(() => shop.close());
  const order = { item: 'Lamp', quantity: 1, total: '5.00' };
  const as = (version: string | undefined, more: Record<string, string> = {}) => ({
    ...(version === undefined ? {} : { 'accept-version': version }),
    ...more,
  });

  test('items are those of the asked version, through every version between: row, list, QUERY, create, bulk results', async () => {
    const made = await shop.call('ann', 'POST', 'orders', order, as('1'));
    expect([made.status, made.body.caption, made.body.item, made.body.title]).toEqual([201, 'Lamp!', undefined, undefined]);
    const url = `orders/${made.body.id}`;
    const members = async (version: string | undefined) => {
      const { body, headers } = await shop.call('ann', 'GET', url, undefined, as(version));
      return [body.item, body.title, body.caption, headers['x-api-version']];
    };
    expect(await members(undefined)).toEqual(['Lamp', undefined, undefined, '3']);
    expect(await members('3')).toEqual(['Lamp', undefined, undefined, '3']);
    expect(await members('2026-01')).toEqual([undefined, 'Lamp', undefined, '2026-01']);
    expect(await members(' 1 ')).toEqual([undefined, undefined, 'Lamp!', '1']);
    const list = await shop.call('ann', 'GET', 'orders', undefined, as('1'));
    expect(Object.keys(list.body)).toEqual(['items', 'count', 'next', 'previous']);
    expect(list.body.items[0].caption).toBe('Lamp!');
    const query = await shop.call('ann', 'QUERY', 'orders', { where: { status: 'open' } }, as('2026-01'));
    expect(query.body.items[0].title).toBe('Lamp');
    const bulk = await shop.call('ann', 'POST', 'orders/bulk', { items: [order, { item: '' }] }, as('1'));
    expect([bulk.status, bulk.body.results[0].data.caption, bulk.body.results[1].data]).toEqual([207, 'Lamp!', undefined]);
    expect(bulk.body.results[1].errors.length).toBeGreaterThan(0);
    const meta = await shop.call('ann', 'GET', 'orders/meta', undefined, as('1'));
    expect([meta.body.name, meta.body.caption]).toEqual(['order', undefined]);
  });

  test('routes written by hand have versions too: a page, one item, a list, no body', async () => {
    const get = async (path: string, version?: string) => (await shop.call(anonymous, 'GET', `things${path}`, undefined, as(version))).body;
    expect(await get('')).toEqual({ items: [{ id: 1, name: 'a' }], count: 1, next: null, previous: null });
    expect(await get('', '1')).toEqual({ items: [{ id: 1, label: 'a' }], count: 1, next: null, previous: null });
    expect(await get('/one', '2026-01')).toEqual({ id: 1, label: 'a' });
    expect(await get('/plain', '1')).toEqual([
      { id: 1, label: 'a' },
      { id: 2, label: 'b' },
    ]);
    const none = await shop.call(anonymous, 'DELETE', 'things/nothing', undefined, as('1'));
    expect([none.status, none.text, none.headers['x-api-version']]).toEqual([204, '', '1']);
  });

  test.each(['0', '4', '', '1, 3', '3\u00e9', '__proto__', 'x'.repeat(5000)])(
    '406 unsupported_api_version names what there is: %j',
    async (version) => {
      const { status, body, headers } = await shop.call('ann', 'GET', 'orders', undefined, as(version));
      expect([status, body.code, body.supported]).toEqual([406, 'unsupported_api_version', ['3', '2026-01', '1']]);
      expect([headers['vary'], headers['x-api-version']]).toEqual(['Accept-Version', undefined]);
    },
  );

  test('Vary names Accept-Version beside what is there; errors are not changed', async () => {
    const made = await shop.call('ann', 'POST', 'orders', order);
    const read = await shop.call('ann', 'GET', `orders/${made.body.id}`);
    expect(read.headers['vary']).toBe('Authorization, X-API-Key, Cookie, Accept-Version');
    const before = transforms;
    const missing = await shop.call('ann', 'GET', 'orders/nope', undefined, as('1'));
    expect([missing.status, missing.body.code, missing.headers['x-api-version']]).toEqual([404, 'not_found', '1']);
    const invalid = await shop.call('ann', 'POST', 'orders', { item: '' }, as('1'));
    expect([invalid.status, invalid.body.code]).toEqual([422, 'validation_error']);
    const failed = await shop.call(anonymous, 'GET', 'things/fails', undefined, as('1'));
    expect([failed.status, failed.body.code]).toEqual([500, 'internal_error']);
    expect(transforms).toBe(before);
  });

  test('54: a tag is of one version for 304 and of the row for If-Match', async () => {
    const made = await shop.call('ann', 'POST', 'orders', order, as('1'));
    const url = `orders/${made.body.id}`;
    const tags = new Map<string, string>();
    for (const version of ['3', '2026-01', '1'])
      tags.set(version, String((await shop.call('ann', 'GET', url, undefined, as(version))).headers['etag']));
    expect(new Set(tags.values()).size).toBe(3);
    expect(made.headers['etag']).toBe(tags.get('1'));
    for (const asked of tags.keys()) {
      for (const [version, tag] of tags) {
        const { status, text, headers } = await shop.call('ann', 'GET', url, undefined, as(asked, { 'if-none-match': `"x", W/${tag}` }));
        expect([asked, version, status]).toEqual([asked, version, asked === version ? 304 : 200]);
        expect([headers['etag'], headers['x-api-version'], text === '']).toEqual([tags.get(asked), asked, asked === version]);
      }
    }
    // A list's tag is of its body.
    const list = await shop.call('ann', 'GET', 'orders', undefined, as('1'));
    const again = (version: string) =>
      shop.call('ann', 'GET', 'orders', undefined, as(version, { 'if-none-match': String(list.headers['etag']) }));
    expect([(await again('1')).status, (await again('3')).status]).toEqual([304, 200]);
    // Whatever version it was read in, the row is the same: each of these changes it once.
    for (const asked of ['3', '1']) {
      for (const version of tags.keys()) {
        const current = await shop.call('ann', 'GET', url, undefined, as(version));
        const changed = await shop.call('ann', 'PATCH', url, { quantity: 2 }, as(asked, { 'if-match': String(current.headers['etag']) }));
        expect([asked, version, changed.status]).toEqual([asked, version, 200]);
        const stale = await shop.call('ann', 'PATCH', url, { quantity: 3 }, as(asked, { 'if-match': String(current.headers['etag']) }));
        expect([stale.status, stale.body.code]).toEqual([412, 'precondition_failed']);
        expect(stale.body.etag, 'body and header name one tag').toBe(stale.headers['etag']);
        const retried = await shop.call('ann', 'PATCH', url, { quantity: 3 }, as(asked, { 'if-match': String(stale.headers['etag']) }));
        expect(retried.status).toBe(200);
      }
    }
  });

  test('a handler with tags of its own sees the tags of the asked version, without the version', async () => {
    const one = await shop.call(anonymous, 'GET', 'things/one', undefined, as('1'));
    const seen = async (version: string, tag: string) =>
      (await shop.call(anonymous, 'GET', 'things/one', undefined, as(version, { 'if-none-match': tag }))).headers['x-seen'];
    expect(one.headers['etag']).toBe('"mine-v=1"');
    expect([await seen('1', '"mine-v=1"'), await seen('1', '"mine"'), await seen('3', '"mine"'), await seen('3', '"mine-v=1"')]).toEqual([
      'same',
      undefined,
      'same',
      undefined,
    ]);
  });

  test('57: a replay is in the version that the repeated request asks for', async () => {
    const headers = { 'idempotency-key': 'versions-1' };
    const first = await shop.call('ann', 'POST', 'orders', order, as('1', headers));
    const other = await shop.call('ann', 'POST', 'orders', order, as('3', headers));
    const same = await shop.call('ann', 'POST', 'orders', order, as('1', headers));
    expect([other.headers['idempotent-replayed'], other.body.item, other.body.id]).toEqual(['true', 'Lamp', first.body.id]);
    expect([same.text, same.headers['etag'], same.headers['x-api-version']]).toEqual([first.text, first.headers['etag'], '1']);
    const refused = { 'idempotency-key': 'versions-2' };
    const body = { ...order, customer_id: '00000000-0000-7000-8000-000000000009' };
    const once = await shop.call('ann', 'POST', 'orders', body, as('1', refused));
    const twice = await shop.call('ann', 'POST', 'orders', body, as('1', refused));
    expect([once.status, twice.status, twice.body.code]).toEqual([422, 422, once.body.code]);
  });

  test('the OpenAPI document has the header, the versions and the 406', () => {
    const document = wholeDocument(openApiDocument(shop.app.routes, { title: 'x', version: '1' })) as unknown as {
      paths: Record<
        string,
        Record<string, { parameters: { name: string; schema: { enum?: string[] } }[]; responses: Record<string, { headers?: object }> }>
      >;
    };
    const list = document.paths['/v1/orders']!['get']!;
    expect(list.parameters.find(({ name }) => name === 'Accept-Version')?.schema.enum).toEqual(['3', '2026-01', '1']);
    expect(Object.keys(list.responses['200']?.headers ?? {})).toContain('X-API-Version');
    expect(JSON.stringify(list.responses['406'])).toContain('unsupported_api_version');
  });
});

describe('responseVersions()', () => {
  test('refuses contradictions where they are written', () => {
    const of = (...names: string[]) => names.map((version) => ({ version }));
    expect(() => responseVersions({ versions: [] })).toThrow('versions');
    expect(() => responseVersions({ versions: of('1', '1') })).toThrow('versions has a version twice');
    expect(() => responseVersions({ versions: of('1'), default: '2' })).toThrow('default is "2", which is not among the versions: 1.');
    expect(() => responseVersions({ versions: of('a b') })).toThrow('a name of letters');
    expect(() => responseVersions({ versions: [{ version: '1', changes: [{ transform: (item: object) => item }] }] })).toThrow(
      'the first version is the newest',
    );
    expect(() => responseVersions({ versions: [{ version: '1', chances: [] } as never] })).toThrow('Did you mean "changes"?');
  });
});
