import { connect } from 'node:net';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { describe, expect, test, vi } from 'vitest';
import * as z from 'zod';
import type { App, Module } from '../../app/declare/module.ts';
import type { Authenticator } from '../../auth/request/authenticator.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { Controller } from '../../http/compile/controller.ts';
import { raw } from '../../http/declare/raw.ts';
import { route } from '../../http/declare/route.ts';
import type { Counter } from '../../observe/metric-registry.ts';
import { allowAny, isAuthenticated, isStaff } from '../../permissions/built-ins.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { testApp, type TestAppOptions } from '../../testing/test-app.ts';
import { clientThrottle } from '../../throttle/throttles.ts';
import { metrics } from './module.ts';
import type { PrometheusRegistry } from './prometheus-registry.ts';

const Ok = z.strictObject({ ok: z.boolean() });
const entered = Promise.withResolvers<void>();
const leave = Promise.withResolvers<void>();
let hanging = Promise.withResolvers<void>();

const authenticator: Authenticator = {
  name: 'key',
  securityScheme: { type: 'apiKey', in: 'header', name: 'X-Key' },
  authenticate({ headers }) {
    const key = headers['x-key'];
    if (key === undefined) return null;
    if (key === 'broken') throw new Error('the store of keys is gone');
    if (key !== 'good' && key !== 'staff') throw coreErrors.invalid_credentials();
    const user = { id: 'u1', username: 'ada', email: null, is_active: true, is_staff: key === 'staff', is_superuser: false };
    return { user, scheme: 'key', scopes: null };
  },
};

class ThingController extends Controller {
  one = route.get('/:id', { params: z.object({ id: z.string() }), permission: allowAny, response: Ok }, () => ({ ok: true }));
  make = route.post('/', { body: Ok, permission: isAuthenticated, response: Ok, status: 201 }, async ({ db }) => {
    await db.query('select 1');
    await db.query('select * from nowhere').catch(() => undefined);
    return { ok: true };
  });
  pay = route.post(
    '/pay',
    { body: Ok, permission: isAuthenticated, response: Ok, status: 201, atomic: true, idempotent: true },
    ({ body }) => {
      if (!body.ok) throw coreErrors.conflict();
      return { ok: true };
    },
  );
  slow = route.query('/slow', { body: Ok, permission: allowAny, response: Ok }, async () => {
    entered.resolve();
    await leave.promise;
    return { ok: true };
  });
  hang = route.get('/hang/up', { permission: allowAny, response: Ok }, async ({ signal }) => {
    hanging.resolve();
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    return { ok: true };
  });
  file = route.get('/file/big', { permission: allowAny, response: raw('text/plain') }, () => 'x'.repeat(5000));
}

const inside = (): TestAppOptions => ({
  modules: [metrics({ path: '/metrics', permission: allowAny, process: false })],
  authenticators: [authenticator],
  mount: { '/v1': { '/things': ThingController } },
});
const scrape = async (app: { inject: App['inject'] }) => (await app.inject('/metrics')).body;
const value = (exposition: string, series: string) =>
  Number(
    exposition
      .split('\n')
      .find((line) => line.startsWith(`${series} `))
      ?.slice(series.length + 1) ?? Number.NaN,
  );

describeDatabases('metrics of an application', (database) => {
  test('requests are counted by method, route template and status class, with their duration and size', async () => {
    await using app = await testApp({ ...inside(), database: database.db });
    await app.inject('/v1/things/7');
    await app.inject('/v1/things/8');
    await app.inject('/v1/things/secret-9?secret=1');
    await app.inject({ method: 'POST', url: '/v1/things', payload: { ok: true } });
    await app.inject('/v1/things/file/big');
    const exposition = await scrape(app);
    const one = 'method="GET",route="/v1/things/:id",status="2xx"';
    expect(value(exposition, `http_server_request_duration_seconds_count{${one}}`)).toBe(2);
    expect(value(exposition, `http_server_response_body_size_bytes_sum{${one}}`)).toBe(2 * '{"ok":true}'.length);
    expect(value(exposition, 'http_server_response_body_size_bytes_sum{method="GET",route="/v1/things/file/big",status="2xx"}')).toBe(5000);
    expect(value(exposition, 'http_server_request_duration_seconds_count{method="POST",route="/v1/things",status="4xx"}')).toBe(1);
    expect(exposition).not.toContain('secret');
  });

  test('requests that match no route share one label, whatever their path and method', async () => {
    await using app = await testApp({ ...inside(), database: database.db });
    const address = new URL(await app.listen());
    const before = (await scrape(app)).split('\n').length;
    for (let index = 0; index < 200; index += 1) await app.inject(`/nowhere/${index}/${'%2e'.repeat(index % 5)}?q=${index}`);
    for (const method of ['PROPFIND', 'LOCK', 'MKCOL', 'SEARCH', 'TRACE', 'M-SEARCH', 'PURGE']) {
      const socket = connect(Number(address.port), '127.0.0.1');
      await once(socket, 'connect');
      socket.end(`${method} /v1/things/${method} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`);
      await text(socket);
    }
    const exposition = await scrape(app);
    expect(value(exposition, 'http_server_request_duration_seconds_count{method="GET",route="unmatched",status="4xx"}')).toBe(200);
    expect(exposition).not.toContain('nowhere/');
    expect(exposition).not.toMatch(/PROPFIND|PURGE|M-SEARCH/);
    expect(exposition).toMatch(/_count\{method="other",route="unmatched",status="4xx"\} \d/);
    // Two histograms and a gauge for unmatched GET and unmatched other.
    expect(exposition.split('\n').length - before).toBeLessThan(100);
  });

  test('requests under way are shown while they are, and not after', async () => {
    await using app = await testApp({ ...inside(), database: database.db });
    const slow = app.inject({ method: 'QUERY' as 'GET', url: '/v1/things/slow', payload: { ok: true } });
    await entered.promise;
    const series = 'http_server_active_requests{method="QUERY",route="/v1/things/slow"}';
    expect(value(await scrape(app), series)).toBe(1);
    leave.resolve();
    await slow;
    expect(value(await scrape(app), series)).toBe(0);
    // The scrape itself is a request.
    expect(value(await scrape(app), 'http_server_active_requests{method="GET",route="/metrics"}')).toBe(1);
  });

  test('a request whose client leaves before the answer is counted as aborted, and is no longer under way', async () => {
    await using app = await testApp({ ...inside(), database: database.db });
    hanging = Promise.withResolvers();
    const socket = connect(Number(new URL(await app.listen()).port), '127.0.0.1');
    socket.write('GET /v1/things/hang/up HTTP/1.1\r\nHost: h\r\n\r\n');
    await hanging.promise;
    socket.destroy();
    const place = 'method="GET",route="/v1/things/hang/up"';
    const aborted = async () => value(await scrape(app), `http_server_request_duration_seconds_count{${place},status="aborted"}`);
    await vi.waitUntil(async () => (await aborted()) === 1, { timeout: 300_000 });
    expect(value(await scrape(app), `http_server_active_requests{${place}}`)).toBe(0);
  });

  test('authentication and throttles are counted by outcome', async () => {
    await using app = await testApp({ ...inside(), database: database.db, throttles: [clientThrottle('5/min')] });
    const ask = (key?: string) =>
      app.inject({ method: 'POST', url: '/v1/things', payload: { ok: true }, headers: key === undefined ? {} : { 'x-key': key } });
    const statuses = [];
    for (const key of ['good', 'bad-1', 'bad-2', undefined, 'broken', 'good']) statuses.push((await ask(key)).statusCode);
    expect(statuses).toEqual([201, 401, 401, 401, 500, 429]);
    const exposition = await (app.app.registry.metrics as PrometheusRegistry).text();
    expect(value(exposition, 'kit_authentications_total{scheme="key",outcome="accepted"}')).toBe(1);
    expect(value(exposition, 'kit_authentications_total{scheme="none",outcome="refused"}')).toBe(2);
    expect(value(exposition, 'kit_authentications_total{scheme="none",outcome="anonymous"}')).toBe(1);
    expect(value(exposition, 'kit_authentications_total{scheme="none",outcome="failed"}')).toBe(1);
    expect(value(exposition, 'kit_throttle_decisions_total{policy="client",decision="allowed"}')).toBe(5);
    expect(value(exposition, 'kit_throttle_decisions_total{policy="client",decision="refused"}')).toBe(1);
    expect(exposition).not.toContain('bad-1');
  });

  test('requests with an idempotency key are counted by what they came to, and no key becomes a label', async () => {
    await using app = await testApp({ ...inside(), database: database.db });
    const pay = async (key: string, ok = true) =>
      (
        await app.inject({
          method: 'POST',
          url: '/v1/things/pay',
          payload: { ok },
          headers: { 'x-key': 'good', 'idempotency-key': key },
        })
      ).statusCode;
    for (let index = 0; index < 30; index += 1) await pay(`hostile-key-${index}`);
    expect([await pay('hostile-key-0'), await pay('hostile-key-0', false)]).toEqual([201, 422]);
    const exposition = await scrape(app);
    const outcome = (name: string) => value(exposition, `kit_idempotency_requests_total{outcome="${name}"}`);
    expect([outcome('completed'), outcome('replayed'), outcome('reused')]).toEqual([30, 1, 1]);
    expect(exposition).not.toContain('hostile-key');
  });

  test('statements are timed by operation and outcome, and the pool is shown', async () => {
    await using app = await testApp({ ...inside(), database: database.db });
    await app.inject({ method: 'POST', url: '/v1/things', payload: { ok: true }, headers: { 'x-key': 'good' } });
    const exposition = await scrape(app);
    const select = 'db_client_operation_duration_seconds_count{database="default",operation="select"';
    expect(value(exposition, `${select},outcome="success"}`)).toBeGreaterThanOrEqual(1);
    expect(value(exposition, `${select},outcome="failure"}`)).toBe(1);
    expect(value(exposition, 'db_client_connections_max{database="default"}')).toBeGreaterThanOrEqual(1);
    expect(value(exposition, 'db_client_connections_used{database="default"}')).toBe(0);
    expect(value(exposition, 'db_client_connections_waiting{database="default"}')).toBe(0);
    expect(value(exposition, 'db_client_transaction_retries_total{database="default"}')).toBe(0);
    expect(exposition).not.toContain('nowhere');
  });

  test('statements that write are timed by what they do, also behind a with; anything else is one more label', async () => {
    await using app = await testApp({ ...inside(), database: database.db });
    await app.app.ready();
    await database.db.query('create table written (id int)');
    await database.db.query('insert into written values (1)');
    await database.db.query('with one as (select 1 as id) update written set id = (select id from one)');
    await database.db.query('with one as (select 1 as id) select * from one');
    await database.db.query('delete from written');
    await database.db.query('drop table written');
    const exposition = await scrape(app);
    const count = (operation: string) =>
      value(exposition, `db_client_operation_duration_seconds_count{database="default",operation="${operation}",outcome="success"}`);
    expect(['insert', 'update', 'select', 'delete', 'other'].map(count)).toEqual([1, 1, 1, 1, 2]);
  });

  test('the pool shows who uses a connection and who waits for one, and transactions that were run again are counted', async () => {
    const db = await database.open({ poolMax: 1 });
    await using app = await testApp({ ...inside(), database: db });
    await app.app.ready();
    const begun = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    const holder = db.transaction(async (tx) => {
      await tx.query('select 1');
      begun.resolve();
      await end.promise;
    });
    await begun.promise;
    const waiter = db.transaction((tx) => tx.query('select 2'));
    const busy = await scrape(app);
    end.resolve();
    await Promise.all([holder, waiter]);
    const pool = (name: string) => value(busy, `db_client_connections_${name}{database="default"}`);
    expect(['max', 'used', 'waiting'].map(pool)).toEqual([1, 1, 1]);
    // SQLite never retries: BEGIN IMMEDIATE takes the write lock first.
    if (database.dialect === 'sqlite') return;
    let attempts = 0;
    await db.transaction(
      async () => {
        attempts += 1;
        if (attempts < 3) throw Object.assign(new Error('conflict'), { code: '40001' });
      },
      { retries: 5 },
    );
    expect(value(await scrape(app), 'db_client_transaction_retries_total{database="default"}')).toBe(2);
  });
});

describe('who may read the metrics', () => {
  const at = (module: Module): TestAppOptions => ({ ...inside(), modules: [module] });

  test('a path asks for its permission: 401 and 403 for others, text for those who may', async () => {
    await using app = await testApp(at(metrics({ path: '/metrics', permission: isStaff, process: false })));
    expect((await app.inject('/metrics')).statusCode).toBe(401);
    expect((await app.inject({ url: '/metrics', headers: { 'x-key': 'good' } })).statusCode).toBe(403);
    const answer = await app.inject({ url: '/metrics', headers: { 'x-key': 'staff' } });
    expect(answer.statusCode).toBe(200);
    expect(answer.headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(answer.headers['cache-control']).toBe('no-store');
    expect((await app.inject('/openapi.json')).body).not.toContain('/metrics');
  });

  test('a port of its own listens on loopback, serves nothing else and refuses names that are not its address', async () => {
    await using app = await testApp(at(metrics({ port: 0 })));
    await app.app.start();
    const url = app.records.find(({ msg }) => msg.startsWith('metrics for Prometheus'))?.['url'] as string;
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/metrics$/);
    expect((await app.inject('/metrics')).statusCode).toBe(404);
    const answer = await fetch(url);
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain('nodejs_eventloop_lag_p99_seconds');
    expect((await fetch(url.replace('/metrics', '/'))).status).toBe(404);
    expect((await fetch(url, { method: 'POST' })).status).toBe(405);
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.end('GET /metrics HTTP/1.1\r\nHost: rebound.example\r\nConnection: close\r\n\r\n');
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 403/);
    await app.close();
    await expect(fetch(url)).rejects.toThrow('fetch failed');
  });

  test('a port that is taken ends the start with a sentence', async () => {
    await using first = await testApp(at(metrics({ port: 0, process: false })));
    await first.app.start();
    const url = first.records.find(({ msg }) => msg.startsWith('metrics for Prometheus'))?.['url'] as string;
    await using second = await testApp(at(metrics({ port: Number(new URL(url).port), process: false })));
    await expect(second.app.start()).rejects.toThrow(/cannot listen on 127\.0\.0\.1 port \d+\. It is in use/);
  });

  test('nowhere to read them, a path without a permission and misspelt options are refused', () => {
    expect(() => metrics({})).toThrow(/neither a port nor a path/);
    expect(() => metrics({ path: '/metrics' })).toThrow(/a path needs a permission/);
    expect(() => metrics({ port: 1, permission: isStaff })).toThrow(/protects nothing/);
    expect(() => metrics({ path: '/metrics', permission: allowAny, host: '0.0.0.0' })).toThrow(/host without a port/);
    expect(() => metrics({ prot: 1 } as never)).toThrow(/unknown option "prot".*Did you mean "port"/s);
    expect(() => metrics({ port: 70_000 })).toThrow(/port is 70000/);
  });
});

describe('metrics of modules', () => {
  const declaring = (declare: NonNullable<Module['metrics']>): TestAppOptions => ({
    ...inside(),
    modules: [...(inside().modules ?? []), { name: 'own', metrics: declare }],
  });

  test('a module counts through the registry, and hostile label values end as other', async () => {
    let sent: Counter<'outcome' | 'queue'> | undefined;
    await using app = await testApp(
      declaring((registry) => {
        sent = registry.counter({ name: 'own_sent_total', help: 'Sent.', labels: { outcome: ['ok'], queue: { max: 3 } } });
      }),
    );
    for (let index = 0; index < 50; index += 1) sent?.add({ outcome: index === 0 ? 'ok' : `"}\n${index}`, queue: `q${index}` });
    const lines = (await scrape(app)).split('\n').filter((line) => line.startsWith('own_sent_total{'));
    expect(lines).toHaveLength(4);
    expect(lines).toContain('own_sent_total{outcome="ok",queue="q0"} 1');
    expect(lines).toContain('own_sent_total{outcome="other",queue="other"} 47');
  });

  test('a gauge that cannot be read, or never answers, is left out and the rest is served', async () => {
    let pending: number | null = 3;
    await using app = await testApp(
      declaring((registry) => {
        registry.gauge({ name: 'own_pending', help: 'Pending.', read: async () => pending });
        registry.gauge({ name: 'own_broken', help: 'Broken.', read: () => Promise.reject(new Error('no')) });
        registry.gauge({ name: 'own_stuck', help: 'Stuck.', read: () => (pending === null ? 1 : new Promise(() => undefined)) });
      }),
    );
    const first = await scrape(app);
    expect(value(first, 'own_pending')).toBe(3);
    expect(first).not.toMatch(/^own_(broken|stuck)/m);
    pending = null;
    const second = await scrape(app);
    expect(second).not.toMatch(/^own_pending/m);
    expect(value(second, 'own_stuck')).toBe(1);
    expect(value(second, 'kit_metrics_read_failures_total{metric="own_broken"}')).toBe(2);
    expect(app.records.find(({ msg }) => msg.includes('own_broken'))).toMatchObject({ level: 40 });
  });

  test('two metrics of one name, and names Prometheus would refuse, end the start', async () => {
    const twice = declaring((registry) => {
      registry.counter({ name: 'own_total', help: 'One.' });
      registry.counter({ name: 'own_total', help: 'Two.' });
    });
    await expect(testApp(twice)).rejects.toThrow('Two modules declare the metric "own_total"');
    await expect(testApp(declaring((registry) => void registry.counter({ name: 'own', help: '' })))).rejects.toThrow(
      /must end in "_total"/,
    );
    await expect(testApp(declaring((registry) => void registry.histogram({ name: 'Own-size', help: '' })))).rejects.toThrow(/not the name/);
  });
});
