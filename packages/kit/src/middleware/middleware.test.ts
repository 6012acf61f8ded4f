import { connect } from 'node:net';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import * as z from 'zod';
import type { Authenticator } from '../auth/request/authenticator.ts';
import { coreErrors } from '../errors/core-errors.ts';
import { Controller } from '../http/compile/controller.ts';
import type { Middleware } from '../http/exchange/middleware.ts';
import { route } from '../http/declare/route.ts';
import { allowAny, isAuthenticated } from '../permissions/built-ins.ts';
import { clientThrottle } from '../throttle/throttles.ts';
import { testApp, type TestApp, type TestAppOptions } from '../testing/test-app.ts';
import { contentType, deprecation, HealthController, requestId, requestLog, securityHeaders, serverTiming } from './index.ts';

const authenticator: Authenticator = {
  name: 'key',
  securityScheme: { type: 'apiKey', in: 'header', name: 'X-Key' },
  authenticate: ({ headers }) =>
    headers['x-key'] === undefined
      ? null
      : {
          user: { id: 'u1', username: 'ada', email: null, is_active: true, is_staff: false, is_superuser: false },
          scheme: 'key',
          scopes: null,
          credentialId: 'k1',
        },
};

const entered = Promise.withResolvers<void>();

class ThingController extends Controller {
  list = route.get(
    '/',
    { query: z.strictObject({ search: z.string().optional() }), permission: allowAny, response: z.strictObject({ ok: z.boolean() }) },
    () => ({ ok: true }),
  );
  mine = route.get('/mine', { permission: isAuthenticated, response: z.strictObject({ ok: z.boolean() }) }, () => ({ ok: true }));
  cached = route.get('/cached', { permission: isAuthenticated, response: z.strictObject({ ok: z.boolean() }) }, ({ reply }) => {
    reply.headers({
      'cache-control': 'private, max-age=60',
      'content-security-policy': "default-src 'self'",
      link: '<https://example.org/a>; rel="next"',
    });
    return { ok: true };
  });
  reset = route.post(
    '/reset/:token',
    { params: z.strictObject({ token: z.string() }), body: z.strictObject({ password: z.string().min(8) }), permission: allowAny },
    () => undefined,
  );
  broken = route.get('/broken', { permission: allowAny }, () => {
    throw new Error('the database password is hunter2');
  });
  gone = route.get('/gone', { permission: allowAny }, () => {
    throw coreErrors.not_found();
  });
  slow = route.get('/slow', { permission: allowAny }, async ({ signal }) => {
    entered.resolve();
    await new Promise((done) => signal.addEventListener('abort', done));
  });
}

const start = (options: Partial<TestAppOptions>): Promise<TestApp> =>
  testApp({
    authenticators: [authenticator],
    mount: { '/v1': { '/things': ThingController } },
    settings: { logLevel: 'info' },
    ...options,
  });

const paths = ['/v1/things', '/v1/things/gone', '/v1/things/broken', '/nowhere', '/v1/things/mine', '/v1/things?x=1', '/%'];

test('a valid request id is taken over, echoed on every answer and named in errors; another is replaced', async () => {
  await using app = await start({ middleware: [requestId()] });
  // An address that cannot be decoded is refused before any middleware: its id is a generated one.
  for (const url of paths.filter((each) => each !== '/%')) {
    const given = await app.inject({ url, headers: { 'x-request-id': 'trace-42' } });
    expect({ url, id: given.headers['x-request-id'] }).toEqual({ url, id: 'trace-42' });
    const replaced = await app.inject({ url, headers: { 'x-request-id': 'evil"; drop\u00e9' } });
    expect(replaced.headers['x-request-id']).toMatch(/^[\w-]{8,}$/);
  }
  const problem = await app.inject({ url: '/v1/things/gone', headers: { 'x-request-id': 'trace-43' } });
  expect(problem.json()).toMatchObject({ request_id: 'trace-43' });
  const generated = [await app.inject('/v1/things'), await app.inject('/v1/things')].map((response) => response.headers['x-request-id']);
  expect(new Set(generated).size).toBe(2);
});

test('the id of the client is left alone when it is not wanted', async () => {
  await using app = await start({ middleware: [requestId({ accept: false })] });
  expect((await app.inject({ url: '/v1/things', headers: { 'x-request-id': 'trace-42' } })).headers['x-request-id']).not.toBe('trace-42');
});

test('server timing tells the total and, where a handler ran, its share', async () => {
  await using app = await start({ middleware: [serverTiming()] });
  expect((await app.inject('/v1/things')).headers['server-timing']).toMatch(/^total;dur=\d+\.\d, handler;dur=\d+\.\d$/);
  expect((await app.inject('/v1/things/broken')).headers['server-timing']).toMatch(/handler;dur/);
  expect((await app.inject('/nowhere')).headers['server-timing']).toMatch(/^total;dur=\d+\.\d$/);
});

test('security headers are on every answer, errors and unknown addresses included', async () => {
  await using app = await start({ middleware: [securityHeaders()] });
  for (const url of paths) {
    const { headers } = await app.inject(url);
    expect({ url, headers }).toMatchObject({
      headers: {
        'content-security-policy': expect.stringContaining("default-src 'none'") as string,
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'cross-origin-resource-policy': 'same-origin',
      },
    });
    expect(headers).not.toHaveProperty('strict-transport-security');
  }
});

test('what a signed-in caller sees is not stored by caches, unless the handler decided otherwise', async () => {
  await using app = await start({
    middleware: [securityHeaders({ strictTransport: { always: true }, headers: { 'X-Frame-Options': null, 'x-extra': '1' } })],
  });
  const own = await app.inject({ url: '/v1/things/mine', headers: { 'x-key': '1' } });
  expect(own.headers).toMatchObject({
    'cache-control': 'no-store',
    'strict-transport-security': 'max-age=31536000; includeSubDomains',
    'x-extra': '1',
  });
  expect(own.headers).not.toHaveProperty('x-frame-options');
  const cached = await app.inject({ url: '/v1/things/cached', headers: { 'x-key': '1' } });
  expect(cached.headers).toMatchObject({ 'cache-control': 'private, max-age=60', 'content-security-policy': "default-src 'self'" });
});

test('a deprecated version announces itself on every answer of its routes and appends its link', async () => {
  const deprecated = { since: '2026-01-01', sunset: '2027-01-01', link: 'https://example.org/v2' };
  await using app = await start({
    middleware: [deprecation()],
    mount: { '/v1': { controllers: { '/things': ThingController }, deprecated }, '/v2': { '/things': ThingController } },
  });
  for (const url of ['/v1/things', '/v1/things/gone', '/v1/things/mine']) {
    expect((await app.inject(url)).headers).toMatchObject({
      deprecation: '@1767225600',
      sunset: 'Fri, 01 Jan 2027 00:00:00 GMT',
      link: '<https://example.org/v2>; rel="deprecation"; type="text/html"',
    });
  }
  expect((await app.inject({ url: '/v1/things/cached', headers: { 'x-key': '1' } })).headers.link).toBe(
    '<https://example.org/a>; rel="next", <https://example.org/v2>; rel="deprecation"; type="text/html"',
  );
  expect((await app.inject('/v2/things')).headers).not.toHaveProperty('deprecation');
});

test('a deprecation that cannot be announced fails the start with its place', async () => {
  await expect(
    start({
      middleware: [deprecation()],
      mount: { '/v1': { controllers: { '/things': ThingController }, deprecated: { since: 'soon' } } },
    }),
  ).rejects.toThrow(/deprecated\.since is "soon"/);
});

test('a body of a media type that is not on the list is refused before anything is read', async () => {
  await using app = await start({ middleware: [contentType({ allow: ['application/json'] })] });
  const send = (type: string) =>
    app.inject({ method: 'POST', url: '/v1/things/reset/x', headers: { 'content-type': type }, payload: '{"password":"long enough"}' });
  expect((await send('application/json; charset=utf-8')).statusCode).toBe(204);
  const refused = await send('application/problem+json');
  expect(refused.json()).toMatchObject({ status: 415, code: 'unsupported_media_type', allowed: ['application/json'] });
  expect((await app.inject('/v1/things')).statusCode).toBe(200);
});

const requestRecords = ({ records }: TestApp) =>
  records.filter((record) => 'duration_ms' in record || 'http.server.request.duration' in record);

test('one record per request tells what happened and nothing the request carried', async () => {
  await using app = await start({ middleware: [requestId(), requestLog()] });
  await app.inject({
    url: '/v1/things?search=alice%40example.org',
    headers: { 'x-key': 'sk_live_1', 'user-agent': 'probe/1', 'x-request-id': 'r-1', cookie: 'session=c00kie' },
  });
  await app.inject({
    method: 'POST',
    url: '/v1/things/reset/t0ken?access_token=qu3ry',
    headers: { 'x-request-id': 'r-2' },
    payload: { password: 'pa55' },
  });
  await app.inject({ url: '/v1/things/broken', headers: { 'x-request-id': 'r-3' } });
  await app.inject({ url: '/nowhere?api_key=s3cret', headers: { 'x-request-id': 'r-4' } });
  const records = requestRecords(app);
  expect(records).toMatchObject([
    {
      request_id: 'r-1',
      level: 30,
      method: 'GET',
      route: '/v1/things',
      path: '/v1/things',
      query: ['search'],
      status: 200,
      user_id: 'u1',
      scheme: 'key',
      credential_id: 'k1',
      user_agent: 'probe/1',
      msg: 'GET /v1/things 200',
    },
    {
      request_id: 'r-2',
      level: 30,
      route: '/v1/things/reset/:token',
      path: '/v1/things/reset/[masked]',
      status: 422,
      code: 'validation_error',
    },
    { request_id: 'r-3', level: 50, status: 500, code: 'internal_error' },
    { request_id: 'r-4', level: 30, route: null, path: '/nowhere', status: 404, code: 'not_found' },
  ]);
  const text = JSON.stringify(records);
  for (const secret of ['alice', 'sk_live_1', 'c00kie', 't0ken', 'qu3ry', 'pa55', 'hunter2', 's3cret']) expect(text).not.toContain(secret);
  expect(records[0]).not.toHaveProperty('aborted');
});

test('the record uses the names of OpenTelemetry when told to', async () => {
  await using app = await start({ middleware: [requestLog({ names: 'otel' })] });
  await app.inject('/v1/things/gone');
  expect(requestRecords(app)).toMatchObject([
    {
      'http.request.method': 'GET',
      'http.route': '/v1/things/gone',
      'url.path': '/v1/things/gone',
      'http.response.status_code': 404,
      'error.type': 'not_found',
      'http.server.request.duration': expect.any(Number) as number,
    },
  ]);
});

test('a client that goes away before its answer is recorded as such, once', async () => {
  await using app = await start({ middleware: [requestLog()] });
  const { port } = new URL(await app.listen());
  const socket = connect(Number(port), '127.0.0.1');
  await once(socket, 'connect');
  socket.write('GET /v1/things/slow HTTP/1.1\r\nhost: a\r\n\r\n');
  await entered.promise;
  socket.destroy();
  await expect.poll(() => requestRecords(app)).toMatchObject([{ route: '/v1/things/slow', aborted: true }]);
});

test('probes are written at debug level when asked, their failures are not hidden', async () => {
  await using app = await start({
    middleware: [requestLog({ quiet: ['/live', '/ready'] })],
    mount: { '/': { '/': new HealthController({ checks: { queue: () => Promise.reject(new Error('down')) } }) } },
  });
  await app.inject('/live');
  await app.inject('/ready');
  expect(requestRecords(app).map(({ level, status }) => ({ level, status }))).toEqual([
    { level: 20, status: 200 },
    { level: 50, status: 503 },
  ]);
});

test('live answers without asking anything; ready asks every database and every named check', async () => {
  let broken = false;
  const queue = () => {
    if (broken) throw new Error('amqp://guest:guest@10.0.0.9 refused');
  };
  await using app = await start({ mount: { '/': { '/': new HealthController({ checks: { queue } }) } } });
  expect((await app.inject('/live')).json()).toEqual({ status: 'ok' });
  expect((await app.inject('/ready')).json()).toEqual({ status: 'ok', checks: { database: { status: 'ok' }, queue: { status: 'ok' } } });
  broken = true;
  const unready = await app.inject('/ready');
  expect(unready.statusCode).toBe(503);
  expect(unready.json()).toEqual({ status: 'unavailable', checks: { database: { status: 'ok' }, queue: { status: 'failed' } } });
  expect(unready.headers['cache-control']).toBe('no-store');
  await app.app.db.close();
  expect((await app.inject('/ready')).json()).toMatchObject({ status: 'unavailable', checks: { database: { status: 'failed' } } });
  expect((await app.inject('/live')).statusCode).toBe(200);
});

test('no throttle counts probes, and those that come together share one run of the checks', async () => {
  let runs = 0;
  const queue = async () => {
    runs += 1;
    await new Promise((done) => setImmediate(done));
  };
  class LimitedHealth extends HealthController {
    static override readonly throttles = [clientThrottle('1/min', { name: 'controller' })];
    constructor() {
      super({ checks: { queue } });
    }
  }
  await using app = await start({
    throttles: [clientThrottle('1/min')],
    mount: { '/v1': { '/things': ThingController }, '/': { '/': LimitedHealth } },
  });
  const statuses = async (url: string) => [(await app.inject(url)).statusCode, (await app.inject(url)).statusCode];
  expect(await statuses('/v1/things')).toEqual([200, 429]);
  expect([...(await statuses('/live')), ...(await statuses('/ready'))]).toEqual([200, 200, 200, 200]);
  runs = 0;
  await Promise.all(Array.from({ length: 20 }, () => app.inject('/ready')));
  expect(runs).toBeLessThan(20);
});

test('TRUSTED_PROXIES tells clients behind a proxy apart; without it they share its address', async () => {
  for (const [trustedProxies, expected] of [
    [['loopback'], [200, 200, 429]],
    [undefined, [200, 429, 429]],
  ] as const) {
    await using app = await start({
      throttles: [clientThrottle('1/min')],
      settings: trustedProxies === undefined ? {} : { trustedProxies },
    });
    const from = async (address: string) => (await app.inject({ url: '/v1/things', headers: { 'x-forwarded-for': address } })).statusCode;
    expect([await from('192.0.2.1'), await from('192.0.2.2'), await from('192.0.2.1')]).toEqual(expected);
  }
});

test('middleware that fails after the answer is logged and ends nothing, for unknown addresses too', async () => {
  const failing: Middleware = {
    name: 'failing',
    onFinish() {
      throw new Error('cannot finish');
    },
  };
  const app = await start({ middleware: [failing] });
  expect((await app.inject({ url: '/v1/things' })).statusCode).toBe(200);
  expect((await app.inject({ url: '/nowhere' })).statusCode).toBe(404);
  await app.close();
  expect(app.records.filter(({ msg }) => msg === 'middleware failed after the response')).toHaveLength(2);
});
