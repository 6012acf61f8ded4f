import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { singleton, scoped, service } from '../di/index.ts';
import { Controller } from '../http/compile/controller.ts';
import { route } from '../http/declare/route.ts';
import { HealthController } from '../middleware/health.ts';
import { allowAny } from '../permissions/built-ins.ts';
import type { SettingsInput } from './declare/config.ts';
import { createApp } from './assemble/create-app.ts';
import type { App, Module } from './declare/module.ts';

/** A deadline that no test waits for: what is held up until then fails by its timeout. */
const LATE = 600_000;
let events: string[] = [];
let release = () => {};
let entered: Promise<void>;
let app: App;
afterEach(() => app.close());

const Mailer = service<object>('mailer');
const Cart = service<object>('cart');

class WorkController extends Controller {
  patient = route.get('/patient', { permission: allowAny }, async ({ db, services }) => {
    await services.get(Cart);
    await new Promise<void>((resolve) => {
      release = resolve;
      markEntered();
    });
    await db.query('select 1');
    events.push('handler done');
  });
  stubborn = route.get('/stubborn', { permission: allowAny }, async ({ signal }) => {
    markEntered();
    await delay(60_000, undefined, { signal }).catch(() => events.push('told to stop'));
    throw signal.reason;
  });
}
let markEntered = () => {};

class StreamController extends Controller {
  events = route.stream('/events', { permission: allowAny }, async function* () {
    yield { data: 'first' };
    await new Promise<void>((resolve) => (release = resolve));
    yield { data: 'last' };
  });
}

function module(name: string, requires: string[] = []): Module {
  return { name, requires, start: () => void events.push(`start ${name}`), stop: () => void events.push(`stop ${name}`) };
}

function start(shutdownTimeoutMs: number, settings: SettingsInput = {}): Promise<string> {
  events = [];
  entered = new Promise((resolve) => (markEntered = resolve));
  app = createApp({
    database: 'sqlite::memory:',
    modules: [module('webhooks', ['accounts']), module('accounts')],
    services: [
      singleton(Mailer, {}, () => ({}), { dispose: () => events.push('mailer disposed') }),
      scoped(Cart, {}, () => ({}), { dispose: () => events.push('cart disposed') }),
    ],
    mount: { '/': { '/tasks': WorkController, '/health': HealthController } },
    settings: { shutdownTimeoutMs, ...settings },
    log: { level: 'silent' },
  });
  return app.listen({ port: 0 });
}

/** `close()` has come as far as this, however busy the machine is. */
const stopsListening = async (): Promise<void> => {
  await expect.poll(() => app.fastify.server.listening).toBe(false);
};

test('what is in flight finishes, then modules stop in reverse order, then services, then databases', async () => {
  const address = await start(LATE);
  const response = fetch(`${address}/tasks/patient`);
  await entered;
  const closed = app.close();
  await delay(20);
  expect(events).toEqual(['start accounts', 'start webhooks']);
  release();
  expect((await response).status).toBe(204);
  await closed;
  expect(events).toEqual([
    'start accounts',
    'start webhooks',
    'handler done',
    'cart disposed',
    'stop webhooks',
    'stop accounts',
    'mailer disposed',
  ]);
  expect(() => app.db).toThrow('not open');
});

test('no connection is accepted once it stops', async () => {
  const address = await start(LATE);
  const response = fetch(`${address}/tasks/patient`);
  await entered;
  const closed = app.close();
  await stopsListening();
  await expect(fetch(`${address}/tasks/patient`)).rejects.toThrow('fetch failed');
  release();
  await response;
  await closed;
});

test('a handler still running at the deadline is told through its signal and answered 503', async () => {
  const address = await start(50);
  const response = fetch(`${address}/tasks/stubborn`);
  await entered;
  await app.close();
  expect(events).toContain('told to stop');
  const answer = await response;
  expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([503, 'unavailable']);
  expect(events.slice(-3)).toEqual(['stop webhooks', 'stop accounts', 'mailer disposed']);
});

test('an idle connection does not hold up the end: one that never sent anything, and one that waits for the next request', async () => {
  const address = await start(LATE);
  const { port } = app.fastify.server.address() as AddressInfo;
  const socket = connect(port, '127.0.0.1');
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  const response = fetch(`${address}/tasks/patient`);
  await entered;
  release();
  expect((await response).status).toBe(204);
  await app.close();
  socket.destroy();
  expect(events).toContain('stop accounts');
});

/** A connection of a proxy: opened, and used when the proxy has a request. */
async function proxyConnection() {
  const { port } = app.fastify.server.address() as AddressInfo;
  const socket = connect(port, '127.0.0.1');
  let received = '';
  socket.on('data', (bytes: Buffer) => (received += bytes.toString().replaceAll(/^Connection/gm, 'connection')));
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  const send = (path: string) => socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
  const heads = () => received.split(/\r\n\r\n/).filter((part) => part.includes('HTTP/1.1 '));
  return { send, heads, closed, received: () => received };
}

test('for the time of the delay it is not ready and serves all requests, on new connections and open ones, and ends each connection', async () => {
  // All of the test happens in the delay.
  const address = await start(LATE, { shutdownDelayMs: 4000 });
  expect((await fetch(`${address}/health/ready`)).status).toBe(200);
  const open = await proxyConnection();
  open.send('/health/live');
  await expect.poll(() => open.heads().length).toBe(1);
  expect(open.received()).toContain('connection: keep-alive');
  const closed = app.close();
  const ready = await fetch(`${address}/health/ready`);
  expect([ready.status, ready.headers.get('connection'), await ready.json()]).toEqual([
    503,
    'close',
    {
      status: 'unavailable',
      checks: { shutdown: { status: 'failed', detail: 'The process is stopping. Send requests to another one.' } },
    },
  ]);
  const other = await fetch(`${address}/health/live`);
  expect([other.status, other.headers.get('connection')]).toEqual([200, 'close']);
  open.send('/health/live');
  await open.closed;
  expect(open.heads()[1]).toContain('200 OK');
  expect(open.heads()[1]).toContain('connection: close');
  expect(app.fastify.server.listening).toBe(true);
  await closed;
});

test('a connection without a request has a grace: what is sent in it is answered, whether it is the first request or the next', async () => {
  await start(LATE, { shutdownIdleMs: LATE });
  const [fresh, used] = [await proxyConnection(), await proxyConnection()];
  used.send('/health/live');
  await expect.poll(() => used.heads().length).toBe(1);
  const closed = app.close();
  await stopsListening();
  await delay(100);
  fresh.send('/health/live');
  used.send('/health/live');
  await Promise.all([fresh.closed, used.closed]);
  expect([fresh.heads().at(-1), used.heads().at(-1)]).toEqual([
    expect.stringMatching(/200 OK[^]*connection: close/),
    expect.stringMatching(/200 OK[^]*connection: close/),
  ]);
  // Nothing is open any more, so nothing is waited for.
  await closed;
});

test('a response that is under way when it stops ends its connection', async () => {
  await start(LATE, { shutdownIdleMs: LATE });
  const connection = await proxyConnection();
  connection.send('/tasks/patient');
  await entered;
  const closed = app.close();
  await stopsListening();
  release();
  await connection.closed;
  expect(connection.received()).toMatch(/204 No Content[^]*connection: close/);
  await closed;
});

test('a response whose headers were sent before it stops ends its connection with its last byte', async () => {
  app = createApp({
    database: 'sqlite::memory:',
    mount: { '/': { '/': StreamController } },
    settings: { shutdownIdleMs: LATE, shutdownDelayMs: 200 },
    log: { level: 'silent' },
  });
  await app.listen({ port: 0 });
  const connection = await proxyConnection();
  connection.send('/events');
  await expect.poll(() => connection.received()).toContain('first');
  const closed = app.close();
  release();
  await connection.closed;
  expect(connection.received()).toContain('last');
  await closed;
});

test('a response that its client reads slowly is sent to its end', async () => {
  // More than the buffers of both sides hold.
  const bytes = 15 * 1024 * 1024;
  class LargeController extends Controller {
    large = route.get('/large', { permission: allowAny, response: z.object({ text: z.string() }) }, () => ({ text: 'x'.repeat(bytes) }));
  }
  app = createApp({
    database: 'sqlite::memory:',
    mount: { '/': { '/': LargeController } },
    settings: { shutdownTimeoutMs: LATE, shutdownIdleMs: 0 },
    log: { level: 'silent' },
  });
  await app.listen({ port: 0 });
  const socket = connect((app.fastify.server.address() as AddressInfo).port, '127.0.0.1');
  socket.write('GET /large HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(socket, 'readable');
  const closed = app.close();
  const received = Buffer.concat(await socket.toArray());
  expect(received.length - received.indexOf('\r\n\r\n')).toBe(bytes + '\r\n\r\n{"text":""}'.length);
  await closed;
});

test('closing twice, or before anything was opened, is fine', async () => {
  app = createApp({ database: 'sqlite::memory:', mount: {}, log: { level: 'silent' } });
  await app.close();
  await app.close();
});

test('a module that cannot stop does not keep the others running', async () => {
  events = [];
  const stuck: Module = { name: 'stuck', stop: () => Promise.reject(new Error('no')) };
  app = createApp({ database: 'sqlite::memory:', modules: [module('accounts'), stuck], mount: {}, log: { level: 'silent' } });
  await app.start();
  await app.close();
  expect(events).toEqual(['start accounts', 'stop accounts']);
});

test('a start that fails closes what it opened and says why', async () => {
  events = [];
  const failing: Module = { name: 'failing', start: () => Promise.reject(new Error('no redis')) };
  app = createApp({ database: 'sqlite::memory:', modules: [module('accounts'), failing], mount: {}, log: { level: 'silent' } });
  await expect(app.listen({ port: 0 })).rejects.toThrow('no redis');
  expect(events).toEqual(['start accounts', 'stop accounts']);
});

test('an app that is closed while it starts accepts no request', async () => {
  events = [];
  const slow: Module = {
    name: 'slow',
    setup: async () => {
      await delay(30);
      events.push('set up');
    },
    start: () => void events.push('start slow'),
    stop: () => void events.push('stop slow'),
  };
  app = createApp({ database: 'sqlite::memory:', modules: [slow], mount: {}, log: { level: 'silent' } });
  const listening = app.listen({ port: 0 });
  listening.catch(() => undefined);
  await app.close();
  await expect(listening).rejects.toThrow('The app was closed before it listened.');
  expect(events).toEqual(['set up', 'start slow', 'stop slow']);
  expect(() => app.db).toThrow('not open');
});

test('a module that never finishes starting does not hold the end up beyond the deadline', async () => {
  const hanging: Module = { name: 'hanging', setup: () => new Promise(() => {}) };
  const settings = { shutdownTimeoutMs: 20 };
  app = createApp({ database: 'sqlite::memory:', modules: [hanging], mount: {}, log: { level: 'silent' }, settings });
  void app.ready();
  await app.close();
  expect(() => app.db).toThrow('not open');
});
