import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import type { Authenticator } from '../../src/auth/index.ts';
import { mcp } from '../../src/contrib/mcp/index.ts';
import { Controller, route } from '../../src/http/index.ts';
import { responseVersions } from '../../src/middleware/index.ts';
import { Permission } from '../../src/permissions/index.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';

const Ok = z.object({ ok: z.boolean() });
const asked: string[] = [];
const counted = (name: string) =>
  new Permission({
    name,
    evaluate({ principal }) {
      asked.push(name);
      return principal !== null;
    },
  });

const somebody: Authenticator = {
  name: 'somebody',
  challenge: 'Bearer realm="api"',
  securityScheme: { type: 'http', scheme: 'bearer' },
  authenticate: () => ({
    user: { id: '1', username: 'ada', email: null, is_active: true, is_staff: false, is_superuser: false },
    scheme: 'somebody',
    scopes: null,
  }),
};

let waiting: AbortSignal[] = [];
const facts = (name: string) => ({ permission: counted(name), tool: { name }, summary: `Do the thing ${name}`, response: Ok });

class ThingController extends Controller {
  first = route.get('/first', facts('first'), () => ({ ok: true }));
  second = route.get('/second', facts('second'), () => ({ ok: true }));
  slow = route.post('/slow', facts('slow'), async ({ signal }) => {
    waiting.push(signal);
    await new Promise((done) => signal.addEventListener('abort', done, { once: true }));
    return { ok: true };
  });
}

let kit: TestApp;
let url = '';
beforeAll(async () => {
  kit = await testApp({ authenticators: [somebody], modules: [mcp()], mount: { '/v1': { '/things': ThingController } } });
  url = `${await kit.app.listen({ host: '127.0.0.1', port: 0 })}/mcp`;
});
beforeEach(() => {
  asked.length = 0;
  waiting = [];
});
afterAll(() => kit.close());

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** One message of an era. */
function send(
  era: string,
  method: string,
  params: { readonly name?: string; readonly arguments?: object },
  signal?: AbortSignal,
  more: Readonly<Record<string, string>> = {},
) {
  const isModern = era === '2026-07-28';
  return fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(isModern ? { 'mcp-protocol-version': era, 'mcp-method': method } : {}),
      ...(isModern && params.name !== undefined ? { 'mcp-name': params.name } : {}),
      ...more,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: isModern ? { ...params, _meta: META } : params }),
    ...(signal === undefined ? {} : { signal }),
  });
}

const ERAS = ['2025-11-25', '2026-07-28'];

test.each(ERAS)('a call evaluates the permission of its own tool only (%s)', async (era) => {
  const response = await send(era, 'tools/call', { name: 'first', arguments: {} });
  expect(await response.text()).toContain('"ok":true');
  expect(new Set(asked)).toEqual(new Set(['first']));
  asked.length = 0;
  await (await send(era, 'tools/list', {})).text();
  expect(new Set(asked)).toEqual(new Set(['first', 'second', 'slow']));
});

test('a list is private to its caller, and may be kept for a minute', async () => {
  const { result } = (await (await send('2026-07-28', 'tools/list', {})).json()) as { result: object };
  expect(result).toMatchObject({ cacheScope: 'private', ttlMs: 60_000 });
});

test.each(ERAS)('a client that goes away ends its call (%s)', async (era) => {
  const client = new AbortController();
  const response = send(era, 'tools/call', { name: 'slow', arguments: {} }, client.signal);
  const ended = response
    .then((each) => each.text())
    .then(
      () => 'answered',
      (error: Error) => error.name,
    );
  await expect.poll(() => waiting.length, { timeout: 20_000 }).toBe(1);
  expect(waiting[0]?.aborted).toBe(false);
  client.abort();
  expect(await ended).toBe('AbortError');
  await expect.poll(() => waiting[0]?.aborted, { timeout: 20_000 }).toBe(true);
});

test.each(ERAS)('a client that asks to close the connection after its call is not kept waiting (%s)', async (era) => {
  const response = await send(era, 'tools/call', { name: 'first', arguments: {} }, undefined, { connection: 'close' });
  expect([response.status, response.headers.get('connection')]).toEqual([200, 'close']);
  expect(await response.text()).toContain('"ok":true');
});

test('a result has the newest version of a response, which its schema describes, whatever the default is', async () => {
  class NameController extends Controller {
    read = route.get(
      '/',
      {
        permission: counted('name'),
        tool: { name: 'read_name' },
        summary: 'Read the full name',
        response: z.object({ full_name: z.string() }),
      },
      () => ({ full_name: 'Ada' }),
    );
  }
  const changes = [{ transform: ({ full_name }: { full_name: string }) => ({ name: full_name }) }];
  await using versioned = await testApp({
    authenticators: [somebody],
    modules: [mcp()],
    middleware: [responseVersions({ versions: [{ version: '2' }, { version: '1', changes }], default: '1' })],
    mount: { '/v1': { '/name': NameController } },
  });
  expect((await versioned.inject({ method: 'GET', url: '/v1/name' })).json()).toEqual({ name: 'Ada' });
  for (const more of [{}, { 'accept-version': '1' }]) {
    const { body } = await versioned.inject({
      method: 'POST',
      url: '/mcp',
      headers: { host: 'localhost', accept: 'application/json, text/event-stream', ...more },
      payload: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read_name', arguments: {} } },
    });
    expect(body).toContain('"structuredContent":{"full_name":"Ada"}');
  }
});
