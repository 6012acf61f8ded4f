import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { createApp } from '../../app/assemble/create-app.ts';
import type { App } from '../../app/declare/module.ts';
import type { Authenticator } from '../../auth/request/authenticator.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { allowAny, isAuthenticated, isOwner } from '../../permissions/built-ins.ts';
import { Controller } from '../compile/controller.ts';
import { route } from '../declare/route.ts';
import { formatEvent } from './send-stream.ts';

const Tick = z.object({ n: z.int() });
const user = { id: 'ann', username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false };
const shutOut = new Set<string>();
const byHeader: Authenticator = {
  name: 'header',
  securityScheme: {},
  authenticate: ({ headers }) =>
    headers['x-user'] === undefined || shutOut.has(String(headers['x-user']))
      ? null
      : { user: { ...user, id: String(headers['x-user']) }, scheme: 'header', scopes: null },
};

let finalised: string[] = [];
let produced = 0;
let speak = () => {};
let aborted: Promise<unknown> = Promise.resolve();

class TickController extends Controller {
  few = route.stream('/few', { response: Tick, permission: allowAny }, async function* () {
    yield { data: { n: 1, secret: true }, id: '1', retryMs: 500 };
    yield { data: { n: 2 }, event: 'tick\nevent: forged' };
  });
  denied = route.stream('/denied', { response: Tick, permission: isAuthenticated }, async function* () {
    yield { data: { n: 1 } };
  });
  missing = route.stream('/missing', { response: Tick, permission: allowAny }, async function* () {
    if (produced >= 0) throw coreErrors.not_found();
    yield { data: { n: 1 } };
  });
  failing = route.stream('/failing', { response: Tick, permission: allowAny }, async function* () {
    try {
      yield { data: { n: 1 } };
      throw new Error('database at hunter2');
    } finally {
      finalised.push('failing');
    }
  });
  owned = route.stream(
    '/owned/:owner',
    { params: z.object({ owner: z.string() }), response: Tick, permission: isOwner() },
    async function* ({ params, authorize }) {
      await authorize({ owner_id: params.owner });
      yield { data: { n: 1 } };
    },
  );
  undecided = route.stream('/undecided', { response: Tick, permission: isOwner() }, async function* () {
    yield { data: { n: 1 } };
  });
  endless = route.stream('/endless', { response: Tick, permission: allowAny, heartbeatMs: 20 }, async function* ({ signal }) {
    aborted = new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason)));
    try {
      yield { data: { n: 1 } };
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
    } finally {
      finalised.push('endless');
    }
  });
  silent = route.stream('/silent', { response: Tick, permission: allowAny, heartbeatMs: 20 }, async function* () {
    await new Promise<void>((resolve) => (speak = resolve));
    yield { data: { n: 1 } };
  });
  flood = route.stream('/flood', { permission: allowAny }, async function* () {
    const data = 'x'.repeat(64 * 1024);
    try {
      for (produced = 0; produced < 10_000; produced += 1) yield { data };
    } finally {
      finalised.push('flood');
    }
  });
  echo = route.stream(
    '/echo',
    { method: 'QUERY', body: z.object({ n: z.int() }), response: Tick, permission: allowAny },
    async function* ({ body }) {
      yield { data: body };
    },
  );
}

let app: App;
let port: number;
beforeAll(async () => {
  app = createApp({
    database: 'sqlite::memory:',
    authenticators: [byHeader],
    settings: { shutdownTimeoutMs: 2000 },
    mount: { '/v1': { '/ticks': TickController } },
    log: { level: 'silent' },
  });
  await app.listen({ port: 0 });
  port = (app.fastify.server.address() as AddressInfo).port;
});
afterAll(() => app.close());

const get = (path: string, init: RequestInit = {}) => fetch(`http://127.0.0.1:${port}/v1/ticks${path}`, init);

function open(path: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    httpRequest({ host: '127.0.0.1', port, path: `/v1/ticks${path}` }, resolve)
      .on('error', reject)
      .end();
  });
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await delay(5);
}

describe('a stream', () => {
  test('sends declared members only, and a name cannot forge another field', async () => {
    const response = await get('/few');
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-cache, no-transform');
    expect(await response.text()).toBe('id: 1\nretry: 500\ndata: {"n":1}\n\nevent: tick event: forged\ndata: {"n":2}\n\n');
  });

  test('has a body where its method has one', async () => {
    const response = await get('/echo', { method: 'QUERY', headers: { 'content-type': 'application/json' }, body: '{"n":7}' });
    expect(await response.text()).toBe('data: {"n":7}\n\n');
    const refused = await get('/echo', { method: 'QUERY', headers: { 'content-type': 'application/json' }, body: '{"n":"7"}' });
    expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([422, 'validation_error']);
  });

  test('sends a comment when nothing happens, so that proxies keep the connection', async () => {
    const response = await open('/silent');
    let text = '';
    for await (const chunk of response) {
      text += String(chunk);
      if (text.startsWith(':\n\n:\n\n')) speak();
    }
    expect(text).toMatch(/^(?::\n\n){2,}data: \{"n":1\}\n\n$/);
  });

  test('has no HEAD', async () => {
    expect((await get('/few', { method: 'HEAD' })).status).toBe(405);
  });
});

describe('permissions are decided before the headers', () => {
  test('a denied caller gets an ordinary 401 or 403', async () => {
    const refused = await get('/denied');
    expect([refused.status, refused.headers.get('content-type')]).toEqual([401, 'application/problem+json; charset=utf-8']);
    expect((await get('/denied', { headers: { 'x-user': 'ann' } })).status).toBe(200);
  });

  test('a permission about the object is settled by the generator before its first event', async () => {
    expect((await get('/owned/ann', { headers: { 'x-user': 'ann' } })).status).toBe(200);
    const refused = await get('/owned/bob', { headers: { 'x-user': 'ann' } });
    expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([403, 'permission_denied']);
  });

  test('a generator that never settles it is refused', async () => {
    expect((await get('/undecided', { headers: { 'x-user': 'ann' } })).status).toBe(403);
  });

  test('an error before the first event is an ordinary answer', async () => {
    const response = await get('/missing');
    expect([response.status, response.headers.get('content-type')]).toEqual([404, 'application/problem+json; charset=utf-8']);
  });
});

describe('the end of a stream', () => {
  test('an error after the first event is a terminal error event that reveals nothing, and the generator is finalised', async () => {
    finalised = [];
    const text = await (await get('/failing')).text();
    const [, last = ''] = text.split('\n\n');
    expect(last).toMatch(/^event: error\ndata: /);
    expect(JSON.parse(last.slice(last.indexOf('{')))).toMatchObject({
      code: 'internal_error',
      status: 500,
      request_id: expect.any(String) as string,
    });
    expect(text).not.toContain('hunter2');
    expect(finalised).toEqual(['failing']);
  });

  test('a caller whom the authenticator no longer accepts loses the stream, with an error event and a finalised generator', async () => {
    finalised = [];
    const [lost, kept] = [await get('/endless', { headers: { 'x-user': 'eve' } }), await get('/endless', { headers: { 'x-user': 'ann' } })];
    shutOut.add('eve');
    expect(await lost.text()).toMatch(/event: error\ndata: .*"code":"invalid_credentials"/);
    shutOut.delete('eve');
    expect(finalised).toEqual(['endless']);
    await kept.body?.cancel();
    await until(() => finalised.length === 2);
  });

  test('a client that goes away aborts the signal and finalises the generator', async () => {
    finalised = [];
    const response = await open('/endless');
    await new Promise((resolve) => response.once('data', resolve));
    response.destroy();
    expect(await aborted).toMatchObject({ name: 'AbortError' });
    await until(() => finalised.length > 0);
    expect(finalised).toEqual(['endless']);
  });

  test('a client that reads slowly slows the generator down; one that leaves ends it', async () => {
    finalised = [];
    const response = await open('/flood');
    response.pause();
    await until(() => produced > 1);
    let before = -1;
    while (before !== produced) {
      before = produced;
      await delay(100);
    }
    expect(produced).toBeLessThan(1000);
    response.destroy();
    await until(() => finalised.length > 0);
    expect(finalised).toEqual(['flood']);
  });

  test('a client that takes nothing for a minute is cut, and the generator is finalised', async () => {
    finalised = [];
    // Sockets have timers of their own: only the wait for the client is shortened.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const response = await open('/flood');
      response.on('error', () => undefined).pause();
      let [before, waits] = [-1, 0];
      while (before !== produced || waits < 20) {
        waits = before === produced ? waits + 1 : 0;
        before = produced;
        await delay(10);
      }
      vi.advanceTimersByTime(59_000);
      await delay(50);
      expect(finalised).toEqual([]);
      vi.advanceTimersByTime(1_000);
      await until(() => finalised.length > 0);
      expect(finalised).toEqual(['flood']);
    } finally {
      vi.useRealTimers();
    }
  });

  test('a server that stops ends streams at once with an error event that says so', async () => {
    finalised = [];
    const response = await get('/endless');
    const closed = app.close();
    const text = await response.text();
    await closed;
    expect(text).toContain('event: error\n');
    expect(text).toContain('"code":"unavailable"');
    expect(finalised).toEqual(['endless']);
  });
});

test('an event is formatted as the standard says', () => {
  expect(formatEvent({ data: 'a\nb' })).toBe('data: "a\\nb"\n\n');
  expect(formatEvent({ data: undefined, event: 'x' })).toBe('event: x\ndata: null\n\n');
});
