import { connect, type AddressInfo } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { pino } from 'pino';
import { z } from 'zod';
import { createApp } from '../app/assemble/create-app.ts';
import type { App } from '../app/declare/module.ts';
import { allowAny } from '../permissions/built-ins.ts';
import { Controller } from './compile/controller.ts';
import { page } from './declare/page.ts';
import { route } from './declare/route.ts';

const Thing = z.object({
  name: z.string().max(20),
  size: z.int().min(0).max(1000),
  tags: z.array(z.string()).max(3).optional(),
  shape: z
    .discriminatedUnion('kind', [z.object({ kind: z.literal('round'), r: z.number() }), z.object({ kind: z.literal('flat') })])
    .nullable()
    .optional(),
  extra: z.record(z.string(), z.unknown()).optional(),
});

/** Everything it accepts it stores, so what passes is also read back through the database. */
class ThingController extends Controller {
  list = route.get(
    '/',
    {
      query: z.object({ limit: z.int().min(1).max(5).optional(), deep: z.boolean().optional(), tag: z.array(z.string()).optional() }),
      response: page(Thing),
      permission: allowAny,
    },
    () => ({ items: [], count: 0 }),
  );
  one = route.get(
    '/:id',
    { params: z.object({ id: z.int() }), response: z.object({ id: z.int() }), permission: allowAny },
    ({ params }) => params,
  );
  create = route.post('/', { body: Thing, response: Thing, permission: allowAny }, async ({ body, db }) => {
    await db.query('select cast($1 as text) as name', [body.name]);
    return body;
  });
  search = route.query('/', { body: Thing.partial(), response: Thing.partial(), permission: allowAny }, ({ body }) => body);
  bare = route.put(
    '/:id',
    { params: z.object({ id: z.string() }), headers: z.object({ 'x-count': z.int().optional() }), permission: allowAny },
    () => undefined,
  );
}

/** What the server says about requests that fail. */
const logged: string[] = [];
let app: App;
let port: number;
beforeAll(async () => {
  app = createApp({
    database: 'sqlite::memory:',
    mount: { '/v1': { '/things': ThingController } },
    log: pino({ level: 'error' }, { write: (line) => void logged.push(line) }),
    bodyBytesMax: 2000,
  });
  await app.listen({ port: 0 });
  port = (app.fastify.server.address() as AddressInfo).port;
});
afterAll(() => app.close());

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string(),
  fc.constantFrom('__proto__', 'constructor', '\u0000', '%00', '%', '%zz', '1e999', '../..', '9'.repeat(30)),
);
const nearly = fc.record(
  {
    name: fc.oneof(fc.string({ maxLength: 30 }), fc.constant(null), text),
    size: fc.oneof(fc.integer(), fc.double(), fc.string()),
    tags: fc.oneof(fc.array(fc.string(), { maxLength: 5 }), fc.string()),
    shape: fc.oneof(
      fc.record({ kind: fc.constantFrom('round', 'flat', 'square'), r: fc.oneof(fc.double(), fc.string()) }, { requiredKeys: [] }),
      fc.constant(null),
      fc.jsonValue(),
    ),
    extra: fc.oneof(fc.dictionary(text, fc.jsonValue()), fc.jsonValue()),
    unknown: fc.jsonValue(),
  },
  { requiredKeys: [] },
);
const body = fc.oneof(
  { weight: 4, arbitrary: nearly.map((value) => JSON.stringify(value)) },
  { weight: 2, arbitrary: fc.json() },
  {
    weight: 2,
    arbitrary: nearly.chain((value) => {
      const whole = JSON.stringify(value);
      return fc.nat(whole.length).map((end) => whole.slice(0, end));
    }),
  },
  { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
  { weight: 1, arbitrary: fc.nat(40).map((depth) => '['.repeat(depth) + ']'.repeat(depth)) },
);

test('whatever a client sends, the answer is never a 5xx', async () => {
  const request = fc.record({
    method: fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'QUERY', 'OPTIONS'),
    path: fc.oneof(
      fc.constantFrom('', '/1', '/x', '/%00', '/%E0%A4%A'),
      fc.webPath(),
      text.map((each) => `/${encodeURIComponent(each.toWellFormed())}`),
    ),
    query: fc.oneof(
      fc.constant(''),
      fc.webQueryParameters().map((each) => `?${each}`),
      fc.dictionary(text, text).map((each) => `?${new URLSearchParams(each).toString()}`),
      fc.constantFrom('?limit=2', '?limit=x', '?limit=1&limit=2', '?deep=true', '?tag=a&tag=b', '?a=%'),
    ),
    contentType: fc.constantFrom(
      'application/json',
      'application/json',
      'application/json',
      'text/plain',
      'application/merge-patch+json',
      'multipart/form-data',
      '',
    ),
    count: fc.constantFrom('1', 'x', '-0', '1e3'),
    body,
  });
  await fc.assert(
    fc.asyncProperty(request, async ({ method, path, query, contentType, count, body: payload }) => {
      const response = await app.inject({
        method: method as 'GET',
        url: `/v1/things${path}${query}`,
        headers: { ...(contentType === '' ? {} : { 'content-type': contentType }), 'x-count': count },
        ...(method === 'GET' || method === 'OPTIONS' ? {} : { payload }),
      });
      expect(response.statusCode, `${response.body} ${logged.join('')}`).toBeLessThan(500);
      const isError = response.statusCode >= 400;
      expect(isError ? (JSON.parse(response.body) as { code?: string }).code : 'fine').toBeTypeOf('string');
    }),
    { numRuns: 1500 },
  );
}, 60_000);

test('whatever bytes arrive on the socket, the server answers 4xx or hangs up, and goes on', async () => {
  const line = fc.constantFrom(
    'GET /v1/things HTTP/1.1',
    'POST /v1/things HTTP/1.1',
    'GET http:// HTTP/1.1',
    'GET  HTTP/1.1',
    'QUERY * HTTP/1.1',
    '\u0000',
  );
  const header = fc.constantFrom(
    'Host: x',
    'Content-Length: 5',
    'Content-Length: -1',
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: gzip',
    'Content-Type: application/json',
    'Expect: 100-continue',
    'Connection: close',
    'Upgrade: websocket',
    ': empty',
  );
  const bytes = fc.tuple(
    line,
    fc.array(header, { maxLength: 5 }),
    fc.oneof(fc.constantFrom('{}', '5\r\n{"a":\r\n0\r\n\r\n', 'zz\r\n'), fc.string({ unit: 'binary' })),
  );
  await fc.assert(
    fc.asyncProperty(bytes, async ([first, headers, rest]) => {
      const answer = await exchange(`${[first, ...headers].join('\r\n')}\r\n\r\n${rest}`);
      expect(answer).not.toMatch(/^HTTP\/1\.1 5/);
    }),
    { numRuns: 150 },
  );
  expect((await fetch(`http://127.0.0.1:${port}/v1/things`)).status).toBe(200);
}, 60_000);

/** Writes, half-closes, and reads what comes until the other side is done. */
function exchange(payload: string): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () => socket.end(payload));
    socket.setTimeout(2000, () => socket.destroy());
    socket.setEncoding('utf8').on('data', (chunk: string) => (answer += chunk));
    socket.on('close', () => resolve(answer)).on('error', () => resolve(answer));
  });
}
