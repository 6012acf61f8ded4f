import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import * as z from 'zod';
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
} from '../../test/crud/shop.ts';
import { isBehindPooler } from '../../../../test/provision/behind-pooler.ts';
import type { Authenticator } from '../auth/request/authenticator.ts';
import { createApp } from '../app/assemble/create-app.ts';
import { CrudController, crudOf, resource } from '../crud/index.ts';
import { createTable, migration, model, softDelete, t } from '../db/index.ts';
import { countQueries } from '../db/engine/query-observer.ts';
import { insert } from '../db/rows/repository.ts';
import { Controller } from '../http/compile/controller.ts';
import { route } from '../http/declare/route.ts';
import { allowAny, isAuthenticated } from '../permissions/built-ins.ts';
import { Permission } from '../permissions/permission.ts';
import { describeDatabases } from '../testing/databases.ts';
import { testApp } from '../testing/test-app.ts';
import { responseCache, responseVersions } from './index.ts';

class OrderController extends CrudController(orderResource, {
  permission: isAuthenticated,
  filters: { status: ['eq'] },
  expand: ['customer'],
  bulk: { create: true },
  import: { formats: ['csv'] },
  ordering: { by: ['item'] },
}) {}

/** Who may see and do what, changed by the tests. */
const rights = { staff: new Set<string>(), members: new Set<string>(), isAllowed: true };
const teams = model('teams', { id: t.uuidv7().pk(), name: t.text(40), ...softDelete() });
class TeamController extends CrudController(
  resource(teams, { rows: ({ user }) => rights.members.has(user.username), admin: { rows: true } }),
  { permission: new Permission({ name: 'allowed', evaluate: () => rights.isAllowed }), restore: true },
) {}
const teamModule = { name: 'teams', models: [teams], migrations: [migration('0001_teams', [createTable('teams', teams.columns)])] };

const counts = { plain: 0, cookie: 0, secret: 0, shared: 0, varied: 0, object: 0, declared: 0, chosen: 0 };
const text = z.object({ n: z.int(), who: z.string() });
class ThingController extends Controller {
  plain = route.get('/plain', { permission: allowAny, response: text }, ({ user }) => ({
    n: (counts.plain += 1),
    who: user?.username ?? '-',
  }));
  cookie = route.get('/cookie', { permission: allowAny, response: text }, ({ reply }) => {
    reply.header('set-cookie', 'a=b');
    return { n: (counts.cookie += 1), who: '' };
  });
  secret = route.get('/secret', { permission: allowAny, response: text }, ({ reply }) => {
    reply.header('cache-control', 'no-store');
    return { n: (counts.secret += 1), who: '' };
  });
  shared = route.get('/private', { permission: allowAny, response: text }, ({ reply }) => {
    reply.header('cache-control', 'private, max-age=5');
    return { n: (counts.shared += 1), who: '' };
  });
  varied = route.get('/varied', { permission: allowAny, response: text }, ({ reply, request }) => {
    reply.header('vary', 'X-Mood');
    return { n: (counts.varied += 1), who: String(request.headers['x-mood']) };
  });
  declared = route.get(
    '/declared',
    { permission: allowAny, headers: z.object({ 'x-mood': z.string().optional() }), response: text },
    ({ headers }) => ({ n: (counts.declared += 1), who: String(headers['x-mood']) }),
  );
  chosen = route.get(
    '/chosen',
    { permission: allowAny, cookies: z.object({ mood: z.string().optional() }), response: text },
    ({ cookies }) => ({ n: (counts.chosen += 1), who: String(cookies.mood) }),
  );
  object = route.get(
    '/object',
    { permission: new Permission({ name: 'mine', evaluate: (_, object) => (object === undefined ? 'unknown' : true) }), response: text },
    async ({ authorize }) => {
      await authorize({});
      return { n: (counts.object += 1), who: '' };
    },
  );
  fails = route.get('/fails', { permission: allowAny, response: text }, () => {
    counts.plain += 1;
    throw new Error('no');
  });
}

/** The caller's credential is in headers: its scheme, scopes and id. */
const byHeaders: Authenticator = {
  name: 'name',
  securityScheme: { type: 'http', scheme: 'name' },
  authenticate({ headers: { 'x-user': name, 'x-scheme': scheme = 'session', 'x-scopes': scopes, 'x-key': key } }) {
    if (typeof name !== 'string' || !(name in people)) return null;
    const { id } = people[name as Person];
    const isStaffNow = name === 'sue' || rights.staff.has(name);
    const user = { id, username: name, email: null, is_active: true, is_staff: isStaffNow, is_superuser: false };
    return {
      user,
      scheme: String(scheme),
      scopes: scopes === undefined ? null : String(scopes).split(' '),
      credentialId: key as string | undefined,
    };
  },
};

const cache = responseCache({
  routes: ({ controller, field }) =>
    controller === 'ThingController' && field === 'plain' ? { tags: ['things'] } : controller !== 'ItemController',
});
const versions = responseVersions({
  versions: [
    { version: '2' },
    {
      version: '1',
      changes: [
        {
          appliesTo: ({ controller }) => controller === 'OrderController',
          transform: ({ item, ...rest }: { item: string }) => ({ ...rest, title: item }),
        },
      ],
    },
  ],
});
const mount = {
  '/v1': {
    '/orders': OrderController,
    '/customers': CustomerController,
    '/items': ItemController,
    '/teams': TeamController,
    '/things': ThingController,
  },
};

/** Where notifications are lost the cache stays off: listen-behind-pooler.slow.test.ts. */
const describeHearing: typeof describeDatabases = (name, define, options) =>
  describeDatabases(
    name,
    (database) =>
      describe.skipIf(database.dialect === 'postgres' && isBehindPooler())('where notifications arrive', () => {
        define(database);
      }),
    options,
  );

describeHearing('response cache', (database) => {
  let shop: ShopApp;
  const start = (db = database.db) =>
    startShop({ database: db, mount, modules: [shopModule, teamModule], middleware: [versions, cache], authenticators: [byHeaders] });
  beforeAll(async () => {
    shop = await start();
    // The first cached request begins to listen.
    await vi.waitFor(async () => {
      await shop.call('ann', 'GET', 'orders');
      const { count } = await countQueries(() => shop.call('ann', 'GET', 'orders'));
      expect(count).toBe(0);
    }, 20_000);
  });
  afterAll(() => shop.close());
  const order = { item: 'Lamp', quantity: 1, total: '5.00' };
  const read = async (person: Person | null, url: string, headers: Record<string, string> = {}, from = shop) => {
    const { result, count } = await countQueries(() => from.call(person, 'GET', url, undefined, headers));
    return { ...result, count };
  };
  const items = async (person: Person, url = 'orders') =>
    ((await read(person, url)).body.items as { item: string }[]).map(({ item }) => item).sort();

  test('the second request of a caller runs no statement and has the same response', async () => {
    await shop.call('ann', 'POST', 'orders', order);
    const [first, second] = [await read('ann', 'orders'), await read('ann', 'orders')];
    expect([first.count > 0, second.count, second.text]).toEqual([true, 0, first.text]);
    for (const name of ['etag', 'vary', 'cache-control', 'content-type', 'x-total-count'])
      expect(second.headers[name]).toBe(first.headers[name]);
    const [head, other] = [await read('ann', 'orders?limit=5'), await read('ann', 'orders')];
    expect([head.count > 0, other.count]).toEqual([true, 0]);
  });

  test('a caller never gets the response of another: user, tenant, role, credential, anonymous', async () => {
    await insert(database.db, orders, {
      org: 'north',
      owner_id: people.bob.id,
      item: 'of bob',
      quantity: 1,
      total: '1.00',
      margin: '9.99',
    });
    await insert(database.db, orders, { org: 'south', owner_id: people.cid.id, item: 'of cid', quantity: 1, total: '1.00' });
    for (let round = 0; round < 2; round += 1) {
      expect(await items('bob')).toEqual(['of bob']);
      expect(await items('cid')).toEqual(['of cid']);
      expect(await items('ann')).not.toContain('of bob');
      expect(await items('sue')).toContain('of bob');
      expect(await items('sue')).not.toContain('of cid');
      expect((await read('nil', 'orders')).body.code).toBe('tenant_required');
      expect((await read(null, 'orders')).status).toBe(401);
    }
    const plain = async (person: Person | null, headers = {}) =>
      (await read(person, 'things/plain', headers)).body as { n: number; who: string };
    const seen = [
      await plain(null),
      await plain('ann'),
      await plain('bob'),
      await plain('ann', { 'x-scheme': 'api_key' }),
      await plain('ann', { 'x-scheme': 'api_key', 'x-key': 'k1' }),
      await plain('ann', { 'x-scheme': 'api_key', 'x-key': 'k1', 'x-scopes': 'orders:read' }),
      await plain('ann', { 'x-scheme': 'api_key', 'x-key': 'k1', 'x-scopes': '' }),
    ];
    expect(new Set(seen.map(({ n }) => n)).size).toBe(seen.length);
    expect((await plain('ann')).n).toBe(seen[1]!.n);
    expect((await plain('bob')).who).toBe('bob');
  });

  test('a right that was taken away is gone at once: role, rows, permission', async () => {
    rights.staff.add('bob');
    const asStaff = await read('bob', 'orders');
    expect((asStaff.body.items as { margin?: string }[]).some(({ margin }) => margin === '9.99')).toBe(true);
    await read('bob', 'orders');
    rights.staff.delete('bob');
    const after = await read('bob', 'orders');
    expect((after.body.items as object[]).some((item) => 'margin' in item)).toBe(false);
    rights.members.add('ann');
    await insert(database.db, teams, { name: 'red' });
    expect([(await read('ann', 'teams')).body.items.length, (await read('ann', 'teams')).count]).toEqual([1, 0]);
    rights.members.delete('ann');
    expect((await read('ann', 'teams')).body.items).toEqual([]);
    rights.members.add('ann');
    rights.isAllowed = false;
    expect((await read('ann', 'teams')).status).toBe(403);
    rights.isAllowed = true;
    expect((await read('ann', 'teams')).body.items).toHaveLength(1);
  });

  test('a write is seen by the next request: create, change, delete, bulk, import, program, transition, and rows that are expanded', async () => {
    const customer = await shop.call('ann', 'POST', 'customers', { name: 'Acme' });
    const made = await shop.call('ann', 'POST', 'orders', { ...order, item: 'A', customer_id: customer.body.id });
    const url = `orders/${made.body.id}`;
    const all = async () => {
      const list = await read('ann', 'orders?expand=customer&ordering=item');
      const again = await read('ann', 'orders?expand=customer&ordering=item');
      expect([again.count, again.text]).toEqual([0, list.text]);
      return (list.body.items as { item: string; status: string; customer: { name: string } | null }[])
        .filter(({ item }) => item.length === 1)
        .map(({ item, status, customer: of }) => `${item} ${status} ${of?.name}`);
    };
    expect(await all()).toEqual(['A open Acme']);
    await shop.call('ann', 'PATCH', url, { item: 'B' });
    expect(await all()).toEqual(['B open Acme']);
    await shop.call('ann', 'PATCH', `customers/${customer.body.id}`, { name: 'Best' });
    expect(await all()).toEqual(['B open Best']);
    await shop.call('ann', 'POST', `${url}/pay`);
    expect(await all()).toEqual(['B paid Best']);
    await shop.call('ann', 'POST', 'orders/bulk', {
      items: [
        { ...order, item: 'C' },
        { ...order, item: 'D' },
      ],
    });
    expect(await all()).toEqual(['B paid Best', 'C open undefined', 'D open undefined']);
    await shop.call('ann', 'DELETE', url);
    expect(await all()).toEqual(['C open undefined', 'D open undefined']);
    const csv = { 'content-type': 'text/csv' };
    expect((await shop.call('ann', 'POST', 'orders/import?dry_run=true', 'item,quantity,total\nE,1,1.00\n', csv)).status).toBe(200);
    expect(await all()).toEqual(['C open undefined', 'D open undefined']);
    expect((await shop.call('ann', 'POST', 'orders/import', 'item,quantity,total\nE,1,1.00\n', csv)).status).toBe(201);
    expect(await all()).toEqual(['C open undefined', 'D open undefined', 'E open undefined']);
    const user = { id: people.ann.id, username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false };
    const program = crudOf(shop.app, orderResource).as({ user, tenant: 'north' });
    const [imported] = await program.rows({ item: 'E' });
    await program.write().destroy(String(imported?.id));
    expect(await all()).toEqual(['C open undefined', 'D open undefined']);
    expect((await read('ann', url)).status).toBe(404);
    // Nothing is dropped for a table that the list is not made of.
    await all();
    await shop.call('sue', 'POST', 'teams', { name: 'blue' });
    expect((await read('ann', 'orders?expand=customer&ordering=item')).count).toBe(0);
    await insert(database.db, customers, { org: 'north', name: 'by hand' });
    cache.invalidate('table:customers');
    expect((await read('ann', 'orders?expand=customer&ordering=item')).count).toBeGreaterThan(0);
  });

  test('a row that is deleted softly is gone from the next response, and back in the one after it was restored', async () => {
    rights.members.add('ann');
    const made = await shop.call('ann', 'POST', 'teams', { name: 'red' });
    const isShown = async () => {
      const { text: first } = await read('ann', 'teams');
      const again = await read('ann', 'teams');
      expect([again.count, again.text]).toEqual([0, first]);
      return first.includes(made.body.id);
    };
    expect(await isShown()).toBe(true);
    expect((await shop.call('ann', 'DELETE', `teams/${made.body.id}`)).status).toBe(204);
    expect(await isShown()).toBe(false);
    expect((await shop.call('ann', 'POST', `teams/${made.body.id}/restore`)).status).toBe(200);
    expect(await isShown()).toBe(true);
    rights.members.delete('ann');
  });

  test('a write that is rolled back drops nothing; one under way is not kept over it', async () => {
    const made = await shop.call('ann', 'POST', 'orders', { ...order, item: 'Race' });
    const url = `orders/${made.body.id}`;
    // Ten readers and ten writers at once: whatever was read, the last word is the row.
    await Promise.all(
      Array.from({ length: 10 }, (_, index) => [
        shop.call('ann', 'PATCH', url, { quantity: index + 1 }),
        read('ann', url),
        read('ann', 'orders'),
      ]).flat(),
    );
    const [row] = await database.db.query<{ quantity: number }>('select quantity from orders where id = $1', [made.body.id]);
    for (let round = 0; round < 2; round += 1) expect((await read('ann', url)).body.quantity).toBe(row?.quantity);
  });

  test('51: If-None-Match is answered from the cache with 304; versions share what is kept and have their own tags', async () => {
    const made = await shop.call('ann', 'POST', 'orders', { ...order, item: 'Tag' });
    const url = `orders/${made.body.id}`;
    const first = await read('ann', url);
    const etag = String(first.headers['etag']);
    const same = await read('ann', url, { 'if-none-match': etag });
    expect([same.status, same.text, same.count, same.headers['etag']]).toEqual([304, '', 0, etag]);
    expect((await read('ann', url, { 'if-none-match': '"x"' })).status).toBe(200);
    const old = await read('ann', url, { 'accept-version': '1' });
    expect([old.count, old.body.title, old.body.item, old.headers['x-api-version']]).toEqual([0, 'Tag', undefined, '1']);
    const tags = { old: String(old.headers['etag']), new: etag };
    expect(tags.old).not.toBe(tags.new);
    expect((await read('ann', url, { 'accept-version': '1', 'if-none-match': tags.old })).status).toBe(304);
    expect((await read('ann', url, { 'accept-version': '1', 'if-none-match': tags.new })).status).toBe(200);
    await shop.call('ann', 'PATCH', url, { item: 'Tag 2' });
    const changed = await read('ann', url, { 'if-none-match': etag });
    expect([changed.status, changed.body.item]).toEqual([200, 'Tag 2']);
    // The first request of a key may be a conditional one: the whole response is kept for the others.
    const fresh = String(changed.headers['etag']);
    cache.invalidate('table:orders');
    expect((await read('ann', url, { 'if-none-match': fresh })).status).toBe(304);
    const whole = await read('ann', url);
    expect([whole.status, whole.count, whole.body.item]).toEqual([200, 0, 'Tag 2']);
  });

  test('QUERY is cached by its body', async () => {
    const query = async (body: object) => countQueries(() => shop.call('ann', 'QUERY', 'orders', body));
    const open = await query({ where: { status: 'open' }, limit: 3 });
    const again = await query({ limit: 3, where: { status: 'open' } });
    const paid = await query({ where: { status: 'paid' }, limit: 3 });
    expect([open.count > 0, again.count, again.result.text === open.result.text, paid.count > 0]).toEqual([true, 0, true, true]);
  });

  test('no-store, Set-Cookie, private for strangers, other Vary, errors and permissions about objects are not kept', async () => {
    const twice = async (path: string, person: Person | null = null, headers = {}) => {
      const [a, b] = [await read(person, `things/${path}`, headers), await read(person, `things/${path}`, headers)];
      return (b.body.n as number) - (a.body.n as number);
    };
    expect([await twice('secret'), await twice('cookie'), await twice('varied'), await twice('object')]).toEqual([1, 1, 1, 1]);
    expect([await twice('private'), await twice('private', 'ann')]).toEqual([1, 0]);
    expect([
      await twice('plain', 'bob', { 'cache-control': 'no-store' }),
      await twice('plain', 'bob', { 'cache-control': 'no-cache' }),
    ]).toEqual([1, 1]);
    const before = counts.plain;
    await read(null, 'things/fails');
    await read(null, 'things/fails');
    expect(counts.plain - before).toBe(2);
    const mood = async (value: string) => (await read(null, 'things/declared', { 'x-mood': value })).body.who as string;
    expect([await mood('good'), await mood('bad'), await mood('good')]).toEqual(['good', 'bad', 'good']);
    const asked = counts.chosen;
    const chosen = async (cookie: string) => (await read(null, 'things/chosen', { cookie })).body.who as string;
    expect([await chosen('mood=good'), await chosen('mood=bad; other=1'), await chosen('mood=good')]).toEqual(['good', 'bad', 'good']);
    expect(counts.chosen - asked).toBe(2);
  });

  test('tags of your own are invalidated by name', async () => {
    const n = async () => (await read('ann', 'things/plain')).body.n as number;
    const first = await n();
    expect(await n()).toBe(first);
    cache.invalidate('others');
    expect(await n()).toBe(first);
    cache.invalidate('things');
    expect(await n()).not.toBe(first);
  });

  test('a write through another process on PostgreSQL is heard of', async () => {
    // SQLite has one process: the same handle stands for it.
    const other = await start(database.dialect === 'postgres' ? await database.open() : database.db);
    const made = await shop.call('ann', 'POST', 'orders', { ...order, item: 'Here' });
    const url = `orders/${made.body.id}`;
    expect([(await read('ann', url)).body.item, (await read('ann', url)).count]).toEqual(['Here', 0]);
    expect((await other.call('ann', 'PATCH', url, { item: 'There' })).status).toBe(200);
    await vi.waitFor(async () => expect((await read('ann', url)).body.item).toBe('There'), 20_000);
    await other.close();
  });
});

describeHearing('responseCache() and users with values that JSON does not have', (database) => {
  test('a caller whose set of roles, map or bigint changed has another key', async () => {
    let user: object = {};
    const authenticator: Authenticator = {
      name: 'always',
      securityScheme: { type: 'http', scheme: 'always' },
      authenticate: () => ({
        user: { id: '1', username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false, ...user },
        scheme: 'always',
        scopes: null,
      }),
    };
    let made = 0;
    class RoleController extends Controller {
      count = route.get('/', { permission: isAuthenticated, response: z.object({ n: z.int() }) }, () => ({ n: (made += 1) }));
    }
    await using app = await testApp({
      database: database.db,
      authenticators: [authenticator],
      mount: { '/v1': { '/roles': RoleController } },
      middleware: [responseCache({ routes: () => true })],
    });
    const count = async (given: object) => {
      user = given;
      return (await app.inject('/v1/roles')).json<{ n: number }>().n;
    };
    // On PostgreSQL nothing is kept before writes are heard of.
    await vi.waitFor(async () => expect(await count({})).toBe(await count({})), 20_000);
    const first = await count({ points: 1n });
    expect([await count({ points: 1n }), await count({ points: 2n })]).toEqual([first, first + 1]);
    const reader = await count({ roles: new Set(['reader']) });
    expect([await count({ roles: new Set(['reader']) }), await count({ roles: new Set(['owner']) })]).toEqual([reader, reader + 1]);
    const mapped = await count({ teams: new Map([['a', 1]]) });
    expect([await count({ teams: new Map([['a', 1]]) }), await count({ teams: new Map([['a', 2]]) })]).toEqual([mapped, mapped + 1]);
  });
});

describeHearing('responseCache() and roles in a tenant', (database) => {
  test('a lead who is demoted does not get the response of a lead from a hand-written route; a member of another tenant has its own', async () => {
    const roles = new Map([
      ['ann north', 'lead'],
      ['ann south', 'member'],
    ]);
    let made = 0;
    class PlanController extends Controller {
      plan = route.get(
        '/',
        { permission: isAuthenticated, response: z.object({ n: z.int(), budget: z.int().optional() }) },
        async ({ caller }) => {
          made += 1;
          return (await caller()).membership?.roles.includes('lead') === true ? { n: made, budget: 100 } : { n: made };
        },
      );
    }
    await using app = await testApp({
      database: database.db,
      mount: { '/v1': { '/plans': PlanController } },
      middleware: [responseCache({ routes: () => true })],
      tenant: ({ headers }) => headers['x-tenant']?.toString() ?? null,
      membership: ({ user, tenant }) => {
        const role = roles.get(`${user.id} ${tenant}`);
        return role === undefined ? null : { roles: [role] };
      },
    });
    const read = async (tenant: string) => {
      const { statusCode, body } = await app.as({ id: 'ann' }).get('/v1/plans', { 'x-tenant': tenant });
      return statusCode === 200 ? (JSON.parse(body) as { n: number; budget?: number }) : statusCode;
    };
    // On PostgreSQL nothing is kept before writes are heard of.
    await vi.waitFor(async () => expect(await read('north')).toEqual(await read('north')), 20_000);
    expect(await read('north')).toMatchObject({ budget: 100 });
    expect(await read('south')).not.toHaveProperty('budget');
    roles.set('ann north', 'member');
    expect(await read('north')).not.toHaveProperty('budget');
    roles.delete('ann north');
    expect(await read('north')).toBe(403);
  });
});

describe('responseCache()', () => {
  test('refuses what it cannot follow or does not know', () => {
    expect(() => responseCache({ routes: () => true, maxAge: 5 } as never)).toThrow('Did you mean "maxAgeMs"?');
    const app = (routes: unknown) => () =>
      createApp({
        database: 'sqlite::memory:',
        log: { level: 'silent' },
        mount: { '/v1': { '/things': ThingController } },
        middleware: [responseCache({ routes: () => routes as boolean })],
      });
    expect(app({ maxAgeMS: 5 })).toThrow('maxAgeMs');
    expect(app('yes')).toThrow('routes() returned neither');
    expect(app(true)).not.toThrow();
  });
});
