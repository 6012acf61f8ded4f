import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { singleton, scoped, service } from '../di/index.ts';
import { Controller } from '../http/controller.ts';
import { route } from '../http/route.ts';
import { allowAny } from '../permissions/built-ins.ts';
import { createApp } from './create-app.ts';
import type { App, Module } from './module.ts';

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

function module(name: string, requires: string[] = []): Module {
  return { name, requires, start: () => void events.push(`start ${name}`), stop: () => void events.push(`stop ${name}`) };
}

function start(shutdownTimeoutMs: number): Promise<string> {
  events = [];
  entered = new Promise((resolve) => (markEntered = resolve));
  app = createApp({
    database: 'sqlite::memory:',
    modules: [module('webhooks', ['accounts']), module('accounts')],
    services: [
      singleton(Mailer, {}, () => ({}), { dispose: () => events.push('mailer disposed') }),
      scoped(Cart, {}, () => ({}), { dispose: () => events.push('cart disposed') }),
    ],
    mount: { '/': { '/tasks': WorkController } },
    settings: { shutdownTimeoutMs },
    log: { level: 'silent' },
  });
  return app.listen({ port: 0 });
}

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
  await delay(20);
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
