import { expect, test } from 'vitest';
import * as z from 'zod';
import type { Authenticator } from '../auth/request/authenticator.ts';
import { countQueries } from '../db/engine/query-observer.ts';
import { Controller } from '../http/compile/controller.ts';
import type { Exchange } from '../http/exchange/exchange.ts';
import { route } from '../http/declare/route.ts';
import { allowAny, isAuthenticated } from '../permissions/built-ins.ts';
import { describeDatabases } from '../testing/databases.ts';
import { testApp, type TestAppOptions } from '../testing/test-app.ts';
import { tenantThrottle } from '../throttle/throttles.ts';
import { isDevelopment } from './config.ts';
import { nPlusOne, queryHeaders, requestLog } from './index.ts';

const Ok = z.strictObject({ ok: z.boolean() });

/** Costs one statement, as a key in the database does. */
const authenticator: Authenticator = {
  name: 'key',
  securityScheme: { type: 'apiKey', in: 'header', name: 'X-Key' },
  async authenticate(request) {
    if (request.headers['x-key'] === undefined) return null;
    await request.db.query('select 1 as authenticated');
    const user = { id: 'u1', username: 'ada', email: null, is_active: true, is_staff: false, is_superuser: false };
    return { user, scheme: 'key', scopes: null };
  },
};

class ThingController extends Controller {
  none = route.get('/none', { permission: allowAny, response: Ok }, () => ({ ok: true }));
  two = route.post('/two', { body: Ok, permission: isAuthenticated, response: Ok }, async ({ db }) => {
    await db.query('select 1');
    await db.transaction((tx) => tx.query('select 2'));
    return { ok: true };
  });
  many = route.get('/many', { permission: allowAny, response: Ok }, async ({ db }) => {
    await db.query('create table if not exists items (id integer)');
    for (let id = 1; id <= 6; id += 1) await db.query('select id from "items" where id = $1', [id]);
    return { ok: true };
  });
  broken = route.get('/broken', { permission: allowAny, response: Ok }, async ({ db }) => {
    await db.query('select * from nowhere');
    return { ok: true };
  });
}

describeDatabases('statements of a request', (database) => {
  const start = (options: Partial<TestAppOptions>) =>
    testApp({ database: database.db, authenticators: [authenticator], mount: { '/v1': { '/things': ThingController } }, ...options });
  const post = { method: 'POST' as const, url: '/v1/things/two', headers: { 'x-key': '1' }, payload: { ok: true } };

  test('86: X-Query-Count equals the statements run, authentication included, also behind a body', async () => {
    await using app = await start({ middleware: [queryHeaders()] });
    const answer = await app.inject(post);
    expect(answer.statusCode).toBe(200);
    expect(answer.headers['x-query-count']).toBe('3');
    expect(Number(answer.headers['x-query-time'])).toBeGreaterThanOrEqual(0);
    expect((await app.inject('/v1/things/none')).headers['x-query-count']).toBe('0');
    expect((await app.inject('/v1/things/broken')).headers['x-query-count']).toBe('1');
    expect((await app.inject('/nowhere')).headers['x-query-count']).toBe('0');
  });

  test('over a socket, and for many requests at once, each counts its own', async () => {
    await using app = await start({ middleware: [queryHeaders()] });
    const address = await app.listen();
    const counts = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const path = index % 2 === 0 ? 'two' : 'none';
        const init =
          index % 2 === 0 ? { method: 'POST', headers: { 'x-key': '1', 'content-type': 'application/json' }, body: '{"ok":true}' } : {};
        return (await fetch(`${address}/v1/things/${path}`, init)).headers.get('x-query-count');
      }),
    );
    expect(counts).toEqual(Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? '3' : '0')));
  });

  test('a plan that was noted is shown, without what a header cannot carry', async () => {
    const noting = {
      name: 'noting',
      handle(exchange: Exchange, next: () => Promise<unknown>) {
        exchange.noteQueryPlan('orders join customer');
        exchange.noteQueryPlan('batch ite\nms\u2028 limit 50');
        return next();
      },
    };
    await using app = await start({ middleware: [queryHeaders(), noting] });
    expect((await app.inject('/v1/things/none')).headers['x-query-plan']).toBe('orders join customer; batch ite?ms? limit 50');
  });

  test('without middleware that asks, nothing is observed', async () => {
    await using app = await start({});
    let counted = -1;
    const { count } = await countQueries(async () => (await app.inject(post)).statusCode);
    const response = await app.inject(post);
    expect(response.headers['x-query-count']).toBeUndefined();
    counted = count;
    expect(counted).toBe(3);
  });

  test('the request log says how many statements ran and for which tenant', async () => {
    const throttled = { throttles: [tenantThrottle('100/min')], tenant: async () => 'acme' };
    await using app = await start({ middleware: [requestLog()], ...throttled });
    await app.inject(post);
    await app.close();
    expect(app.records.find(({ msg }) => msg.startsWith('POST'))).toMatchObject({ query_count: 3, tenant: 'acme' });
  });

  test('87: the same statement again and again is reported once per request, with route, table and remedy', async () => {
    await using app = await start({ middleware: [nPlusOne({ mode: 'warn', threshold: 5 })] });
    expect((await app.inject('/v1/things/many')).statusCode).toBe(200);
    await app.inject(post);
    const warnings = app.records.filter(({ level }) => level === 40);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatchObject({ table: 'items', count: 5 });
    expect(warnings[0]?.msg).toMatch(
      /^ThingController\.many \(GET \/v1\/things\/many\) ran the same statement on "items" 5 times.*`expand`.*`requires`.*`rows`/,
    );
  });

  test('87: in the mode throw the request fails; off, it passes', async () => {
    await using failing = await start({ middleware: [nPlusOne({ mode: 'throw', threshold: 5 })] });
    const answer = await failing.inject('/v1/things/many');
    expect(answer.statusCode).toBe(500);
    expect(answer.body).not.toContain('items');
    await using passing = await start({ middleware: [nPlusOne({ mode: 'off' })] });
    expect((await passing.inject('/v1/things/many')).statusCode).toBe(200);
    expect(passing.records.filter(({ level }) => level >= 40)).toEqual([]);
  });
});

test('query headers are for development: elsewhere only when forced', () => {
  expect([isDevelopment({ NODE_ENV: 'development' }), isDevelopment({ NODE_ENV: 'test' })]).toEqual([true, true]);
  expect([isDevelopment({ NODE_ENV: 'production' }), isDevelopment({ NODE_ENV: 'staging' }), isDevelopment({})]).toEqual([
    false,
    false,
    false,
  ]);
  const before = process.env['NODE_ENV'];
  process.env['NODE_ENV'] = 'production';
  try {
    expect(Object.keys(queryHeaders())).toEqual(['name', 'appliesTo']);
    expect(Object.keys(queryHeaders({ force: true }))).toContain('onResponse');
  } finally {
    process.env['NODE_ENV'] = before;
  }
});

test('unknown options and invalid values are refused', () => {
  expect(() => queryHeaders({ forced: true } as never)).toThrow(/unknown option "forced".*Did you mean "force"/s);
  expect(() => nPlusOne({ mode: 'loud' as never })).toThrow(/mode is "loud"/);
  expect(() => nPlusOne({ threshold: 1 })).toThrow(/threshold is 1/);
});
