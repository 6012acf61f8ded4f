import { wholeDocument } from '../../test/whole-document.ts';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { pino } from 'pino';
import { z } from 'zod';
import { RawConnection } from '../../test/raw-http.ts';
import { createApp } from '../app/assemble/create-app.ts';
import type { App } from '../app/declare/module.ts';
import { StartUpError } from '../app/check/start-up-error.ts';
import { openApiDocument } from '../openapi/document.ts';
import { allowAny, denyAll } from '../permissions/index.ts';
import { clientThrottle } from '../throttle/index.ts';
import { Controller, type Mountable } from './compile/controller.ts';
import { raw } from './declare/raw.ts';
import { route } from './declare/route.ts';

const Out = z.object({ length: z.int(), sha256: z.string() });
const throttles = [clientThrottle('1000000/s')];
let app: App;
let failures: unknown[] = [];
afterEach(() => app?.close());

class FileController extends Controller {
  static override readonly throttles = throttles;
  bytes = route.post(
    '/bytes',
    { body: raw(['text/csv', 'image/*'], { bytesMax: 64 }), response: Out, permission: allowAny },
    ({ body }) => ({
      length: body.length,
      sha256: createHash('sha256').update(body).digest('hex'),
    }),
  );
  stream = route.put(
    '/stream',
    { body: raw(['*/*'], { stream: true, bytesMax: 300_000_000 }), response: Out, permission: allowAny },
    async ({ body }) => {
      const hash = createHash('sha256');
      let length = 0;
      for await (const chunk of body as AsyncIterable<Buffer>) {
        length += chunk.length;
        hash.update(chunk);
      }
      return { length, sha256: hash.digest('hex') };
    },
  );
  short = route.put(
    '/short',
    { body: raw(['*/*'], { stream: true, bytesMax: 10 }), response: Out, permission: allowAny },
    async ({ body }) => {
      try {
        return { length: (await text(body)).length, sha256: '' };
      } catch (error) {
        failures.push(error);
        throw error;
      }
    },
  );
  unread = route.put('/unread', { body: raw(['*/*'], { stream: true }), permission: allowAny }, () => undefined);
  closed = route.put('/closed', { body: raw(['*/*'], { stream: true }), permission: denyAll }, () => undefined);
  json = route.post('/json', { body: z.object({ ok: z.boolean() }), permission: allowAny }, () => undefined);
}

function serve(controller: Mountable = FileController): void {
  failures = [];
  app = createApp({ database: 'sqlite::memory:', mount: { '/v1': { '/x': controller } }, log: { level: 'silent' } });
}

const send = (method: 'POST' | 'PUT', url: string, type: string | undefined, payload: string | Buffer) =>
  app.inject({ method, url: `/v1/x${url}`, headers: type === undefined ? {} : { 'content-type': type }, payload });

test('a declared media type gives the handler its bytes; others are 415, also on the JSON routes beside it', async () => {
  serve();
  const csv = await send('POST', '/bytes', 'Text/CSV; charset=utf-8', 'a,b\n1,2\n');
  expect(csv.json()).toEqual({ length: 8, sha256: createHash('sha256').update('a,b\n1,2\n').digest('hex') });
  expect((await send('POST', '/bytes', 'image/png', Buffer.from([0, 255]))).json()).toMatchObject({ length: 2 });
  for (const type of ['application/json', 'text/html', 'imagex/png', undefined]) {
    expect((await send('POST', '/bytes', type, 'x')).statusCode).toBe(415);
  }
  expect((await send('POST', '/json', 'text/csv', 'a')).statusCode).toBe(415);
  expect((await send('POST', '/json', 'application/json', '{"ok":true}')).statusCode).toBe(204);
  expect((await send('POST', '/bytes', 'text/csv; x', Buffer.alloc(65))).json()).toMatchObject({ code: 'body_too_large', bytes_max: 64 });
  const packed = await app.inject({
    method: 'POST',
    url: '/v1/x/bytes',
    headers: { 'content-type': 'text/csv', 'content-encoding': 'gzip' },
    payload: 'x',
  });
  expect(packed.statusCode).toBe(415);
});

test('an empty body is an empty stream', async () => {
  serve();
  expect((await send('PUT', '/stream', undefined, '')).json()).toMatchObject({ length: 0 });
  expect((await send('PUT', '/stream', 'text/plain', '')).json()).toMatchObject({ length: 0 });
  expect((await send('POST', '/bytes', undefined, '')).statusCode).toBe(415);
});

test('128 MB stream through in flat memory', { timeout: 600_000 }, async () => {
  serve();
  const address = await app.listen({ port: 0 });
  const chunk = Buffer.alloc(1024 * 1024, 7);
  const hash = createHash('sha256');
  const request = httpRequest(`${address}/v1/x/stream`, { method: 'PUT', headers: { 'content-type': 'application/x-anything' } });
  const answered = once(request, 'response');
  const before = process.memoryUsage();
  let peak = 0;
  for (let sent = 0; sent < 128; sent += 1) {
    hash.update(chunk);
    if (!request.write(chunk)) await once(request, 'drain');
    const { heapUsed, external } = process.memoryUsage();
    peak = Math.max(peak, heapUsed + external - before.heapUsed - before.external);
  }
  request.end();
  const [response] = (await answered) as [NodeJS.ReadableStream];
  expect(JSON.parse(await text(response))).toEqual({ length: 128 * 1024 * 1024, sha256: hash.digest('hex') });
  // The client's own buffers are in it too.
  expect(peak).toBeLessThan(96 * 1024 * 1024);
});

test('a body that grows beyond its limit while it arrives is ended with 413', async () => {
  serve();
  await using connection = await RawConnection.open(await app.listen({ port: 0 }));
  connection.send('PUT /v1/x/short HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n8\r\n, world!\r\n');
  expect(await connection.answer()).toMatchObject({ status: 413, headers: { connection: 'close' } });
  expect(failures).toMatchObject([{ code: 'body_too_large' }]);
});

test('a body that says it is too large is refused before it is sent', async () => {
  serve();
  await using connection = await RawConnection.open(await app.listen({ port: 0 }));
  connection.send('PUT /v1/x/short HTTP/1.1\r\nhost: x\r\ncontent-length: 11\r\n\r\n');
  expect(await connection.answer()).toMatchObject({ status: 413 });
  expect(failures).toEqual([]);
});

test('a client that stops in the middle makes the stream fail, not end', async () => {
  serve();
  const address = await app.listen({ port: 0 });
  const connection = await RawConnection.open(address);
  connection.send('PUT /v1/x/short HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhal');
  connection.socket.end();
  await expect.poll(() => failures, { timeout: 10_000 }).toMatchObject([{ code: 'malformed_body' }]);
});

test('a client that goes away in the middle of JSON is not a failure of the server, also where no operation is', async () => {
  const lines: { level: number; code?: string }[] = [];
  const log = pino({ level: 'debug' }, { write: (line) => void lines.push(JSON.parse(line) as { level: number }) });
  app = createApp({ database: 'sqlite::memory:', mount: { '/v1': { '/x': FileController } }, log });
  const address = await app.listen({ port: 0 });
  for (const [path, expected] of [
    ['json', 'malformed_body'],
    ['nowhere', 'not_found'],
  ]) {
    lines.length = 0;
    const connection = await RawConnection.open(address);
    connection.send(`POST /v1/x/${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{"o`);
    connection.socket.end();
    await expect.poll(() => lines.map(({ code }) => code), { timeout: 30_000 }).toContain(expected);
    expect(lines.filter(({ level }) => level >= 50)).toEqual([]);
  }
});

test('a refused caller, or a handler that reads nothing, ends the connection instead of receiving the rest', async () => {
  serve();
  const address = await app.listen({ port: 0 });
  for (const [path, status] of [
    ['closed', 403],
    ['unread', 204],
  ] as const) {
    await using connection = await RawConnection.open(address);
    connection.send(`PUT /v1/x/${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 900000\r\n\r\n`);
    expect(await connection.answer()).toMatchObject({ status, headers: { connection: 'close' } });
  }
});

test('the document names the media types and the limit', () => {
  serve();
  const document = wholeDocument(openApiDocument(app.routes, { title: 'x', version: '1' }));
  const { post } = document.paths['/v1/x/bytes'] as Record<
    string,
    { requestBody: { content: object; description: string }; responses: object }
  >;
  expect(post?.requestBody).toEqual({ required: true, description: 'At most 64 bytes.', content: { 'text/csv': {}, 'image/*': {} } });
  expect(Object.keys(post?.responses ?? {})).toEqual(expect.arrayContaining(['413', '415']));
});

test('faults of a declaration are said with the remedy', () => {
  expect(() => raw([])).toThrow('raw(): the list of media types is empty; name at least one, such as "text/csv".');
  expect(() => raw(['csv'])).toThrow('raw(): "csv" is not a media type; write "text/csv", "image/*" or "*/*".');
  expect(() => raw(['text/csv'], { steam: true } as never)).toThrow('raw(): unknown option "steam". Did you mean "stream"?');
  expect(() => raw(['text/csv'], { bytesMax: 0 })).toThrow('raw(): bytesMax is 0; use an integer of 1 or more.');
  class Wrong extends Controller {
    static override readonly throttles = throttles;
    put = route.put('/', { body: raw('text/csv'), permission: allowAny }, () => undefined);
  }
  expect(() => createApp({ database: 'sqlite::memory:', mount: { '/v1': { '/x': Wrong } } })).toThrow(StartUpError);
});
