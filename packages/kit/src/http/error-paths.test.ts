import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createApp } from '../app/assemble/create-app.ts';
import type { App } from '../app/declare/module.ts';
import { errors } from '../errors/error-map.ts';
import { allowAny } from '../permissions/built-ins.ts';
import { Controller } from './compile/controller.ts';
import type { Middleware } from './exchange/middleware.ts';
import { raw } from './declare/raw.ts';
import { route } from './declare/route.ts';

const secret = 'hunter2';
class Mapped extends Error {}

class ThingController extends Controller {
  static override readonly errors = errors().on(Mapped, { status: 409, code: 'by_controller' });
  list = route.get('/', { permission: allowAny }, () => undefined);
  one = route.get('/:id', { params: z.object({ id: z.int() }), permission: allowAny }, () => undefined);
  create = route.post(
    '/',
    { body: z.object({ name: z.string().max(5), age: z.int() }), permission: allowAny, bodyBytesMax: 1000 },
    () => undefined,
  );
  plain = route.post('/plain', { permission: allowAny }, () => undefined);
  throws = route.get('/throws/error', { permission: allowAny }, () => {
    throw new Error(`database at ${secret}`);
  });
  rejects = route.get('/throws/later', { permission: allowAny }, async () => {
    throw new TypeError(`database at ${secret}`);
  });
  text = route.get('/throws/text', { permission: allowAny }, () => {
    // oxlint-disable-next-line typescript/only-throw-error -- code of others throws anything
    throw secret;
  });
  nothing = route.get('/throws/nothing', { permission: allowAny }, () => Promise.reject());
  mapped = route.get('/throws/mapped', { permission: allowAny }, () => {
    throw new Mapped(secret);
  });
  mappedHere = route.get(
    '/throws/here',
    { permission: allowAny, errors: errors().on(Mapped, { status: 410, code: 'by_operation' }) },
    () => {
      throw new Mapped(secret);
    },
  );
  cyclic = route.get('/throws/cyclic', { response: z.unknown(), permission: allowAny }, () => {
    const ring: { self?: unknown } = {};
    ring.self = ring;
    return ring;
  });
  broken = route.get('/throws/stream', { response: raw('text/plain'), permission: allowAny }, () =>
    Readable.from(
      (async function* () {
        yield 'first';
        throw new Error(secret);
      })(),
    ),
  );
  slow = route.get(
    '/slow',
    { permission: allowAny, timeoutMs: 20 },
    ({ signal }) => new Promise<undefined>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
  );
}

const failing: Middleware = {
  name: 'failing',
  onRequest({ url }) {
    if (url.includes('fail=onRequest')) throw new Error(secret);
  },
  onResponse({ url }) {
    if (url.includes('fail=onResponse')) throw new Error(secret);
  },
};

let app: App;
let port: number;
const logged: string[] = [];

for (const format of ['problem+json', 'detail'] as const) {
  describe(`ERROR_FORMAT ${format}`, () => {
    beforeAll(async () => {
      app = createApp({
        database: 'sqlite::memory:',
        settings: { errorFormat: format },
        middleware: [failing],
        mount: { '/v1': { '/things': ThingController } },
        log: pino({ level: 'error' }, { write: (line: string) => void logged.push(line) }),
      });
      await app.listen({ port: 0 });
      port = (app.fastify.server.address() as AddressInfo).port;
    });
    afterAll(() => app.close());

    const json = { 'content-type': 'application/json' };
    const paths: readonly [name: string, path: string, init: RequestInit, status: number, code: string][] = [
      ['an unknown address', '/nowhere', {}, 404, 'not_found'],
      ['an unknown address below a mount', '/v1/things/1/2/3', {}, 404, 'not_found'],
      ['a wrong method', '/v1/things', { method: 'DELETE' }, 405, 'method_not_allowed'],
      ['an unknown method', '/v1/things', { method: 'PROPFIND' }, 405, 'method_not_allowed'],
      ['a URL that cannot be decoded', '/v1/things/%E0%A4%A', {}, 400, 'malformed_url'],
      ['a query that cannot be decoded', '/v1/things?a=%zz', {}, 400, 'malformed_url'],
      ['U+0000 in the path', '/v1/things/a%00b', {}, 400, 'malformed_url'],
      ['a path parameter that is too long', `/v1/things/${'a'.repeat(600)}`, {}, 414, 'uri_too_long'],
      ['a URL that is too long', `/v1/things?a=${'a'.repeat(9000)}`, {}, 414, 'uri_too_long'],
      ['headers that are too large', '/v1/things', { headers: { 'x-big': 'a'.repeat(20_000) } }, 431, 'headers_too_large'],
      ['an unknown query parameter', '/v1/things?nope=1', {}, 422, 'validation_error'],
      ['a path parameter of the wrong type', '/v1/things/one', {}, 422, 'validation_error'],
      ['no body where one is needed', '/v1/things', { method: 'POST' }, 422, 'validation_error'],
      ['an empty body', '/v1/things', { method: 'POST', headers: json, body: '' }, 422, 'validation_error'],
      [
        'another media type',
        '/v1/things',
        { method: 'POST', headers: { 'content-type': 'text/plain' }, body: '{}' },
        415,
        'unsupported_media_type',
      ],
      ['no media type', '/v1/things', { method: 'POST', headers: { 'content-type': '' }, body: '{}' }, 415, 'unsupported_media_type'],
      [
        'a malformed media type',
        '/v1/things',
        { method: 'POST', headers: { 'content-type': 'json' }, body: '{}' },
        415,
        'unsupported_media_type',
      ],
      [
        'a compressed body',
        '/v1/things',
        { method: 'POST', headers: { ...json, 'content-encoding': 'gzip' }, body: '{"name":"a","age":1}' },
        415,
        'unsupported_media_type',
      ],
      [
        'another character set',
        '/v1/things',
        { method: 'POST', headers: { 'content-type': 'application/json; charset=latin1' }, body: '{"name":"a","age":1}' },
        415,
        'unsupported_media_type',
      ],
      ['malformed JSON', '/v1/things', { method: 'POST', headers: json, body: '{"name"' }, 400, 'malformed_body'],
      [
        'a body with a duplicate key',
        '/v1/things',
        { method: 'POST', headers: json, body: '{"name":"a","name":"b"}' },
        400,
        'malformed_body',
      ],
      ['a body that is too large', '/v1/things', { method: 'POST', headers: json, body: `"${'a'.repeat(1000)}"` }, 413, 'body_too_large'],
      ['fields where none are taken', '/v1/things/plain', { method: 'POST', headers: json, body: '{"a":1}' }, 422, 'validation_error'],
      ['a list where nothing is taken', '/v1/things/plain', { method: 'POST', headers: json, body: '[1]' }, 400, 'unexpected_body'],
      ['an error in a handler', '/v1/things/throws/error', {}, 500, 'internal_error'],
      ['a rejection of a handler', '/v1/things/throws/later', {}, 500, 'internal_error'],
      ['a text thrown by a handler', '/v1/things/throws/text', {}, 500, 'internal_error'],
      ['a rejection with nothing', '/v1/things/throws/nothing', {}, 500, 'internal_error'],
      ['a value that cannot be serialised', '/v1/things/throws/cyclic', {}, 500, 'internal_error'],
      ['an error mapped on the controller', '/v1/things/throws/mapped', {}, 409, 'by_controller'],
      ['an error mapped on the operation', '/v1/things/throws/here', {}, 410, 'by_operation'],
      ['a handler that takes too long', '/v1/things/slow', {}, 503, 'deadline_exceeded'],
      ['middleware that fails before', '/v1/things?fail=onRequest', {}, 500, 'internal_error'],
      ['middleware that fails after', '/v1/things/plain?fail=onResponse', { method: 'POST' }, 422, 'validation_error'],
    ];

    test.each(paths)('%s is answered by the one renderer', async (_, path, init, status, code) => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
      const body = (await response.json()) as Record<string, unknown>;
      expect([response.status, body['code']]).toEqual([status, code]);
      expect(response.headers.get('content-type')).toBe(
        format === 'detail' ? 'application/json; charset=utf-8' : 'application/problem+json; charset=utf-8',
      );
      expect(response.headers.get('x-request-id')).toMatch(/^[\w-]+$/);
      expect(JSON.stringify(body)).not.toContain(secret);
      const extensions = format === 'detail' ? [] : ['allowed_methods', 'bytes_max', 'depth_max'];
      const members = Object.keys(body)
        .filter((name) => !['errors', ...extensions].includes(name))
        .sort();
      expect(members).toEqual(format === 'detail' ? ['code', 'detail'] : ['code', 'detail', 'request_id', 'status', 'title', 'type']);
    });

    test('a 405 names the methods there are, as OPTIONS does', async () => {
      const refused = await fetch(`http://127.0.0.1:${port}/v1/things`, { method: 'PATCH' });
      expect(refused.headers.get('allow')).toBe('GET, HEAD, OPTIONS, POST');
      const options = await fetch(`http://127.0.0.1:${port}/v1/things/7`, { method: 'OPTIONS' });
      expect([options.status, options.headers.get('allow'), await options.text()]).toEqual([204, 'GET, HEAD, OPTIONS', '']);
      expect((await fetch(`http://127.0.0.1:${port}/nowhere`, { method: 'OPTIONS' })).status).toBe(404);
    });

    test('a request that no route takes is 404 or 405 whatever its body is', async () => {
      const bodies: readonly [type: string, body: string][] = [
        ['application/json', '{bad'],
        ['application/json; charset=latin1', '{}'],
        ['json', '{}'],
        ['', 'a'],
        ['text/plain', 'a'],
        ['multipart/form-data', 'a'],
      ];
      for (const [path, status, code] of [
        ['/nowhere', 404, 'not_found'],
        ['/v1/things/throws/error', 405, 'method_not_allowed'],
      ]) {
        for (const method of ['POST', 'PUT', 'DELETE', 'QUERY']) {
          for (const [type, body] of bodies) {
            const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, body, headers: { 'content-type': type } });
            const members = (await answer.json()) as { code: string };
            expect([path, method, type, answer.status, members.code]).toEqual([path, method, type, status, code]);
          }
        }
        for (const head of ['QUERY', 'POST']) {
          const sized = head === 'POST' ? 'Content-Type: application/json\r\nContent-Length: 9000000\r\n' : '';
          const answer = await exchange(`${head} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${sized}\r\n`);
          expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
        }
      }
    });

    test('… however the address is written, and not for one that only resembles it', async () => {
      expect((await fetch(`http://127.0.0.1:${port}/v1/th%69ngs`)).status).toBe(204);
      expect((await fetch(`http://127.0.0.1:${port}/v1/th%69ngs`, { method: 'PATCH' })).headers.get('allow')).toBe(
        'GET, HEAD, OPTIONS, POST',
      );
      const whole = await exchange('PATCH http://other/v1/things HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      expect(whole).toMatch(/^HTTP\/1\.1 405 .*allow: GET, HEAD, OPTIONS, POST/s);
      expect((await fetch(`http://127.0.0.1:${port}/v1//things`, { method: 'PATCH' })).status).toBe(404);
    });

    test('HEAD answers like GET without the body, also for errors', async () => {
      const head = await fetch(`http://127.0.0.1:${port}/v1/things/throws/error`, { method: 'HEAD' });
      expect([head.status, await head.text()]).toEqual([500, '']);
    });

    test('all faults of all parts are reported at once, with locations', async () => {
      const response = await fetch(`http://127.0.0.1:${port}/v1/things?x=1`, {
        method: 'POST',
        headers: json,
        body: '{"name":"too long","agee":3}',
      });
      const { errors: faults } = (await response.json()) as { errors: { location: string[]; code: string }[] };
      expect(faults.map(({ location, code }) => `${location.join('.')} ${code}`)).toEqual([
        'query.x unknown_field',
        'body.agee unknown_field',
        'body.name too_big',
        'body.age required',
      ]);
    });

    test('an error in a response that has begun cuts the connection instead of pretending success', async () => {
      const response = await fetch(`http://127.0.0.1:${port}/v1/things/throws/stream`);
      await expect(response.text()).rejects.toThrow('terminated');
    });

    /** Sends bytes as they are and reads until the server closes. */
    function exchange(text: string): Promise<string> {
      return new Promise((resolve, reject) => {
        let answer = '';
        const socket = connect(port, '127.0.0.1', () => socket.write(text));
        socket.setEncoding('utf8').on('data', (chunk: string) => (answer += chunk));
        socket.on('close', () => resolve(answer)).on('error', reject);
      });
    }

    test.each([
      ['text that is not HTTP', 'hello there\r\n\r\n', 400, 'malformed_request'],
      ['a body on GET', 'GET /v1/things HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}', 400, 'unexpected_body'],
      [
        'a chunked body on GET',
        'GET /v1/things HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
        400,
        'unexpected_body',
      ],
      [
        'a chunked body beyond the limit',
        `POST /v1/things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${`200\r\n${'a'.repeat(512)}\r\n`.repeat(3)}`,
        413,
        'body_too_large',
      ],
      [
        'a bad chunk',
        'POST /v1/things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
        400,
        'malformed_request',
      ],
      [
        'both length and chunks',
        'POST /v1/things HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}',
        400,
        'malformed_request',
      ],
      [
        'an unknown expectation',
        'GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: the-unexpected\r\n\r\n',
        404,
        'not_found',
      ],
    ])('%s is refused with %i %s', async (_, text, status, code) => {
      const answer = await exchange(text);
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      expect(answer.slice(answer.indexOf('{'))).toContain(`"code":"${code}"`);
    });

    test('a connection that ends in the middle of a body reaches no handler and is logged as no fault', async () => {
      logged.length = 0;
      await new Promise<void>((resolve) => {
        const socket = connect(port, '127.0.0.1', () => {
          socket.write('POST /v1/things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"name":');
          setImmediate(() => socket.destroy());
        });
        socket.on('close', () => resolve());
      });
      expect((await fetch(`http://127.0.0.1:${port}/v1/things`)).status).toBe(204);
      expect(logged).toEqual([]);
    });

    test('the log has the cause, under the id the caller got; a refusal is no error', async () => {
      logged.length = 0;
      const response = await fetch(`http://127.0.0.1:${port}/v1/things/throws/error`);
      await fetch(`http://127.0.0.1:${port}/nowhere`);
      expect(logged).toHaveLength(1);
      expect(logged[0]).toContain(`database at ${secret}`);
      expect(logged[0]).toContain(response.headers.get('x-request-id'));
      expect(logged[0]).toContain('thing_throws');
    });
  });
}
