import { inspect } from 'node:util';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { sendDocument, serveHttp, serveRaw } from '../../test/loopback-server.ts';
import { RemoteSource, type RefreshResult } from './index.ts';

const section = { application: 'billing', profile: 'production', token: 'canary-token-0123456789-0123456789-01' };
const json = { 'content-type': 'application/json' };

/** Loads a good document first, then lets the server misbehave: whatever happens, that document stays. */
async function refreshAgainst(
  misbehave: (response: ServerResponse) => void,
  limits: { timeout?: number; maxBytes?: number } = {},
): Promise<RefreshResult> {
  const server = await serveHttp((_, response) => sendDocument(response, { good: true }));
  const source = new RemoteSource({ url: server.url, ...section, ...limits });
  await source.refresh();
  server.handle = (_, response) => misbehave(response);
  const result = await source.refresh();
  expect(result.changed).toBe(false);
  expect(source.current).toEqual({ good: true });
  expect(inspect(result, { depth: Infinity, showHidden: true }) + result.error?.stack).not.toContain('canary');
  return result;
}

test.each([
  [401, 'unauthenticated'],
  [403, 'forbidden'],
  [404, 'not-found'],
])('%i is classified auth: do not retry', async (status, code) => {
  const { error } = await refreshAgainst((response) => response.writeHead(status).end('canary'));
  expect(error).toMatchObject({ kind: 'auth', code, status });
});

test.each([400, 405, 414, 429, 500, 502, 503])('%i is classified remote: retry', async (status) => {
  const { error } = await refreshAgainst((response) => response.writeHead(status, { 'retry-after': '5' }).end('canary'));
  expect(error).toMatchObject({ kind: 'remote', code: 'status', status, retryAfterMs: 5_000 });
});

test('a Retry-After from a hostile server is bounded', async () => {
  const { error } = await refreshAgainst((response) => response.writeHead(503, { 'retry-after': '99999999' }).end());
  expect(error?.retryAfterMs).toBe(300_000);
});

test.each([301, 302, 307, 308])('a %i is not followed: the token goes to the configured server only', async (status) => {
  const elsewhere = await serveHttp((_, response) => sendDocument(response, { evil: true }));
  const { error } = await refreshAgainst((response) =>
    response.writeHead(status, { location: `${elsewhere.url}/billing/production` }).end(),
  );
  expect(error).toMatchObject({ kind: 'remote', code: 'status', status });
  expect(error?.message).toContain('redirects are not followed');
  expect(elsewhere.requests).toHaveLength(0);
});

test('a 304 that was not asked for is no document', async () => {
  const { error } = await refreshAgainst((response) => response.writeHead(304).end());
  expect(error).toMatchObject({ kind: 'remote', status: 304 });
});

test('a 204 is no document', async () => {
  const { error } = await refreshAgainst((response) => response.writeHead(204).end());
  expect(error).toMatchObject({ kind: 'remote', status: 204 });
});

test.each([
  ['torn', '{"a": "canary'],
  ['empty', ''],
  ['an array', '["canary"]'],
  ['a string', '"canary"'],
  ['null', 'null'],
  ['two documents', '{"a":1}{"canary":2}'],
  ['not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
])('a body that is %s keeps the last good document', async (_, body) => {
  const { error } = await refreshAgainst((response) => response.writeHead(200, json).end(body));
  expect(error).toMatchObject({ kind: 'remote', code: 'invalid-body' });
});

test.each([['text/html'], ['text/plain; charset=utf-8'], ['application/problem+json'], [undefined]])(
  'a 200 of type %s, as from a login page, is no document',
  async (type) => {
    const { error } = await refreshAgainst((response) =>
      response.writeHead(200, type === undefined ? {} : { 'content-type': type }).end('{}'),
    );
    expect(error).toMatchObject({ kind: 'remote', code: 'content-type' });
  },
);

test.each([
  ['gzip', gzipSync],
  ['br', brotliCompressSync],
] as const)('a %s body is read', async (encoding, compress) => {
  const server = await serveHttp((request, response) => {
    expect(request.headers['accept-encoding']).toContain(encoding);
    response.writeHead(200, { ...json, 'content-encoding': encoding }).end(compress(JSON.stringify({ text: 'x'.repeat(5_000) })));
  });
  const source = new RemoteSource({ url: server.url, ...section });
  expect(await source.refresh()).toEqual({ changed: true });
  expect((source.get('text') as string).length).toBe(5_000);
});

test.each([
  ['gzip', gzipSync],
  ['br', brotliCompressSync],
] as const)('a %s bomb is stopped at maxBytes', async (encoding, compress) => {
  const bomb = compress(Buffer.from(`{"a":"${'0'.repeat(20_000_000)}"}`));
  expect(bomb.length).toBeLessThan(50_000);
  const { error } = await refreshAgainst((response) => response.writeHead(200, { ...json, 'content-encoding': encoding }).end(bomb), {
    maxBytes: 100_000,
  });
  expect(error).toMatchObject({ kind: 'remote', code: 'too-large' });
});

test('compressed bytes that decompress to nothing are bounded too', async () => {
  const empty = gzipSync('');
  const { error } = await refreshAgainst(
    (response) => {
      response.writeHead(200, { ...json, 'content-encoding': 'gzip' });
      for (let member = 0; member < 1_000; member += 1) response.write(empty);
      response.end();
    },
    { maxBytes: 5_000 },
  );
  expect(error).toMatchObject({ code: 'too-large' });
});

test.each(['deflate', 'zstd', 'gzip, gzip'])('content encoding %s, which was not asked for, is refused', async (encoding) => {
  const { error } = await refreshAgainst((response) => response.writeHead(200, { ...json, 'content-encoding': encoding }).end('canary'));
  expect(error).toMatchObject({ kind: 'remote', code: 'content-encoding' });
});

test('broken and truncated compression keeps the last good document', async () => {
  const broken = await refreshAgainst((response) => response.writeHead(200, { ...json, 'content-encoding': 'gzip' }).end('canary'));
  expect(broken.error).toMatchObject({ kind: 'remote', code: 'content-encoding' });
  const whole = gzipSync(JSON.stringify({ a: 'x'.repeat(1_000) }));
  const cut = await refreshAgainst((response) =>
    response.writeHead(200, { ...json, 'content-encoding': 'gzip' }).end(whole.subarray(0, -12)),
  );
  expect(cut.error).toMatchObject({ kind: 'remote', code: 'content-encoding' });
});

test('an announced length over maxBytes is refused before the body is read', async () => {
  const { error } = await refreshAgainst(
    (response) => {
      response.writeHead(200, { ...json, 'content-length': '999999999' });
      response.write('{');
    },
    { maxBytes: 1_000, timeout: 60_000 },
  );
  expect(error).toMatchObject({ kind: 'remote', code: 'too-large' });
});

test('an endless body is cut at maxBytes', async () => {
  const { error } = await refreshAgainst(
    (response) => {
      response.writeHead(200, json);
      const more = (): void => {
        while (!response.destroyed && response.write(' '.repeat(65_536)));
        if (!response.destroyed) response.once('drain', more);
      };
      more();
    },
    { maxBytes: 1_000_000, timeout: 60_000 },
  );
  expect(error).toMatchObject({ kind: 'remote', code: 'too-large' });
});

test('a body of exactly maxBytes is read', async () => {
  const body = JSON.stringify({ a: 'x'.repeat(100) });
  const server = await serveHttp((_, response) => response.writeHead(200, json).end(body));
  expect(await new RemoteSource({ url: server.url, ...section, maxBytes: body.length }).refresh()).toEqual({ changed: true });
  const { error } = await new RemoteSource({ url: server.url, ...section, maxBytes: body.length - 1 }).refresh();
  expect(error).toMatchObject({ code: 'too-large' });
});

test('one deadline covers a body that drips: a byte does not restart it', async () => {
  let dripped = 0;
  const { error } = await refreshAgainst(
    (response) => {
      response.writeHead(200, json);
      const drip = setInterval(() => response.write(' ') && (dripped += 1), 10);
      response.on('close', () => clearInterval(drip));
    },
    { timeout: 500 },
  );
  expect(error).toMatchObject({ kind: 'remote', code: 'timeout' });
  expect(dripped).toBeGreaterThan(1);
});

test('the deadline covers an answer that never begins', async () => {
  const { error } = await refreshAgainst(() => undefined, { timeout: 500 });
  expect(error).toMatchObject({ kind: 'remote', code: 'timeout' });
});

test('the deadline covers an endless row of interim answers', async () => {
  const url = await serveRaw((socket) => {
    const drip = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'), 5);
    socket.on('close', () => clearInterval(drip));
  });
  const { error } = await new RemoteSource({ url, ...section, timeout: 100 }).refresh();
  expect(error).toMatchObject({ kind: 'remote', code: 'timeout' });
});

test.each([
  ['reset before the answer', (response: ServerResponse) => response.socket?.resetAndDestroy()],
  ['closed before the answer', (response: ServerResponse) => response.socket?.end()],
  [
    'reset in the middle of the body',
    (response: ServerResponse) => {
      response.writeHead(200, { ...json, 'content-length': '100' });
      response.write('{"canary":', () => response.socket?.resetAndDestroy());
    },
  ],
  [
    'closed in the middle of the body',
    (response: ServerResponse) => {
      response.writeHead(200, json);
      response.write('{"canary":1}', () => response.socket?.destroy());
    },
  ],
  [
    'closed in the middle of a compressed body',
    (response: ServerResponse) => {
      response.writeHead(200, { ...json, 'content-encoding': 'gzip', 'content-length': '4000' });
      response.write(gzipSync('{"canary":1}').subarray(0, 15), () => response.socket?.destroy());
    },
  ],
])('a connection %s keeps the last good document', async (_, misbehave) => {
  const { error } = await refreshAgainst(misbehave);
  expect(error).toMatchObject({ kind: 'remote', code: 'connection' });
});

test('a refused connection is a remote error that names the address', async () => {
  const server = await serveHttp(() => undefined);
  await server.close();
  const { error, changed } = await new RemoteSource({ url: server.url, ...section }).refresh();
  expect(changed).toBe(false);
  expect(error).toMatchObject({ kind: 'remote', code: 'connection' });
  expect(error?.message).toContain(server.url);
  expect(error?.message).toContain('ECONNREFUSED');
});

test.each([
  ['another protocol', 'SSH-2.0-canary\r\n'],
  ['a protocol switch', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: canary\r\nconnection: upgrade\r\n\r\ncanary'],
  ['headers without end', `HTTP/1.1 200 OK\r\n${'x-canary: canary\r\n'.repeat(5_000)}`],
  ['a broken chunk', 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\ncanary\r\n'],
  ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\ncontent-length: 6\r\n\r\n{}canary'],
])('an answer in %s is a remote error without a byte of it', async (_, bytes) => {
  const url = await serveRaw((socket) => socket.write(bytes));
  const { error } = await new RemoteSource({ url, ...section, timeout: 2_000 }).refresh();
  expect(error).toMatchObject({ kind: 'remote', code: 'connection' });
  expect(inspect(error, { depth: Infinity, showHidden: true })).not.toContain('canary');
});

test('a document nested a hundred thousand levels deep is data, not a crash', async () => {
  const depth = 100_000;
  const body = `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`;
  const server = await serveHttp((_, response) => response.writeHead(200, json).end(body));
  const source = new RemoteSource({ url: server.url, ...section });
  const { error, changed } = await source.refresh();
  expect(error === undefined ? changed : error.code === 'invalid-body').toBe(true);
});

test('a hostile entity tag is not sent back', async () => {
  const server = await serveHttp((_, response) => sendDocument(response, {}, { etag: `"${'e'.repeat(4_000)}"` }));
  const source = new RemoteSource({ url: server.url, ...section });
  await source.refresh();
  await source.refresh();
  expect(server.requests[1]?.headers['if-none-match']).toBeUndefined();
});
