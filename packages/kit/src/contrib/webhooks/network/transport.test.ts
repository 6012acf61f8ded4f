import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { DEFAULT_DISABLE_AFTER_MS, decideOutcome } from '../delivery/delivery-outcome.ts';
import { DEFAULT_SCHEDULE } from '../endpoints/retry-schedule.ts';
import { generateSecret, signedHeaders, signingKey } from '../signing/signature.ts';
import { httpTransport } from './transport.ts';
import type { HttpTransportOptions, Transport, TransportResult } from './transport.ts';
import { URLPolicy, URL_NOT_ALLOWED } from './url-policy.ts';
import { verifySignature } from '../receiving/verify.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Receiver {
  readonly port: number;
  readonly connections: () => number;
  readonly bytesRead: () => number;
}

/** Listens on one loopback address and counts what arrives. */
async function listen(server: Server, host = '127.0.0.1', port = 0): Promise<Receiver> {
  const sockets = new Set<Socket>();
  let connections = 0;
  let bytes = 0;
  server.on('connection', (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => {});
    const read = (): void => void (bytes += socket.bytesRead);
    socket.on('close', read);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    bytesRead: () => bytes + [...sockets].reduce((sum, socket) => sum + socket.bytesRead, 0),
  };
}

const answering = (handler: (request: IncomingMessage, response: ServerResponse) => void): Server => createServer(handler);
const raw = (handler: (socket: Socket) => void): Server => createTcpServer({ noDelay: true }, handler);

function transport(options: HttpTransportOptions = {}): Transport {
  const created = httpTransport({ policy: URLPolicy({ allowHttp: true, allowPrivateNetworks: true }), timeoutMs: 10_000, ...options });
  cleanups.push(() => created.close());
  return created;
}

const post = (to: Transport, url: string, body: string | Uint8Array = '{}'): Promise<TransportResult> =>
  to.send({ url, headers: { 'content-type': 'application/json' }, body });

/** undici frees a connection one turn of the event loop after the answer. */
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

describe('a well-behaved receiver', () => {
  test('gets the exact bytes and headers, and its answer is reported', async () => {
    const seen: { method: string | undefined; url: string | undefined; headers: IncomingMessage['headers']; body: Buffer }[] = [];
    const receiver = await listen(
      answering((request, response) => {
        const chunks: Buffer[] = [];
        request.on('data', (chunk: Buffer) => chunks.push(chunk));
        request.on('end', () => {
          seen.push({ method: request.method, url: request.url, headers: request.headers, body: Buffer.concat(chunks) });
          response.writeHead(202, { 'retry-after': '7' }).end('thank you');
        });
      }),
    );
    const body = Buffer.from([0x7b, 0xff, 0x00, 0x7d]);
    const result = await transport().send({
      url: `http://127.0.0.1:${receiver.port}/hooks/1?a=b#c`,
      headers: { 'content-type': 'application/json', 'webhook-id': 'msg_1', 'user-agent': 'kit-webhooks/0' },
      body,
    });
    expect(result).toEqual({ kind: 'response', status: 202, retryAfter: '7', bodyExcerpt: 'thank you' });
    expect(seen).toMatchObject([{ method: 'POST', url: '/hooks/1?a=b', body }]);
    expect(seen[0]?.headers).toMatchObject({
      host: `127.0.0.1:${receiver.port}`,
      'content-type': 'application/json',
      'content-length': '4',
      'webhook-id': 'msg_1',
      'user-agent': 'kit-webhooks/0',
    });
  });

  test.each([
    ['in one piece', ['HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nok']],
    ['alone', ['HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nok']],
    ['byte by byte', 'HTTP/1.1 100\r\n\r\nHTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nok'.split('')],
    ['twice, with headers', [`${'HTTP/1.1 100 Continue\r\na: b\r\n\r\n'.repeat(2)}HTTP/1.1 201 OK\r\ncontent-length: 2\r\n\r\nok`]],
  ])('an unasked 100 Continue %s precedes the answer, on a kept connection too', async (_name, pieces) => {
    const receiver = await listen(
      raw((socket) => {
        socket.on('data', () => {
          void (async () => {
            for (const piece of pieces) {
              socket.write(piece);
              await nextTurn();
            }
          })();
        });
      }),
    );
    const to = transport();
    for (let index = 0; index < 3; index++) {
      expect(await post(to, `http://127.0.0.1:${receiver.port}/`)).toMatchObject({ status: 201, bodyExcerpt: 'ok' });
      await nextTurn();
    }
    expect(receiver.connections()).toBe(1);
  });

  test('a connection is kept for the next delivery, and its name is resolved and vetted once per connection', async () => {
    const receiver = await listen(answering((_request, response) => response.end('ok')));
    let asked = 0;
    const resolve = async (): Promise<string[]> => {
      asked += 1;
      return ['127.0.0.1'];
    };
    const to = transport({ resolve });
    for (let index = 0; index < 20; index++) {
      expect(await post(to, `http://hooks.example.com:${receiver.port}/`)).toMatchObject({ status: 200 });
      await nextTurn();
    }
    expect(receiver.connections()).toBe(1);
    expect(asked).toBe(1);
  });

  test('two names of one address do not share a connection', async () => {
    const receiver = await listen(answering((_request, response) => response.end()));
    const to = transport({ resolve: async () => ['127.0.0.1'] });
    await post(to, `http://one.example.com:${receiver.port}/`);
    await post(to, `http://two.example.com:${receiver.port}/`);
    expect(receiver.connections()).toBe(2);
  });

  test('a connection past its age is replaced, and the name is vetted again, even if the time of day was set back', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'] });
    const receiver = await listen(answering((_request, response) => response.end()));
    let asked = 0;
    const to = transport({ resolve: async () => (asked++, ['127.0.0.1']), connectionAgeMaxMs: 60_000 });
    const url = `http://hooks.example.com:${receiver.port}/`;
    await post(to, url);
    await nextTurn();
    vi.advanceTimersByTime(59_000);
    await post(to, url);
    await nextTurn();
    expect([receiver.connections(), asked]).toEqual([1, 1]);
    vi.advanceTimersByTime(2000);
    vi.setSystemTime(Date.now() - 86_400_000);
    await post(to, url);
    expect([receiver.connections(), asked]).toEqual([2, 2]);
  });

  test('deliveries to one origin run side by side', async () => {
    const waiting: ServerResponse[] = [];
    const receiver = await listen(
      answering((_request, response) => {
        waiting.push(response);
        if (waiting.length === 8) for (const each of waiting) each.end();
      }),
    );
    const to = transport();
    const results = await Promise.all(Array.from({ length: 8 }, () => post(to, `http://127.0.0.1:${receiver.port}/`)));
    expect(results.every((result) => result.kind === 'response' && result.status === 200)).toBe(true);
  });

  test('the next address is tried when one refuses the connection', async () => {
    const receiver = await listen(
      answering((_request, response) => response.end()),
      '127.0.0.3',
    );
    const to = transport({ resolve: async () => ['127.0.0.2', '127.0.0.3'] });
    expect(await post(to, `http://hooks.example.com:${receiver.port}/`)).toMatchObject({ kind: 'response', status: 200 });
  });

  test.each([204, 301, 302, 307, 308, 400, 410, 500])('the status %d is reported and never acted on', async (status) => {
    const trap = await listen(answering((_request, response) => response.end()));
    const receiver = await listen(
      answering((_request, response) => response.writeHead(status, { location: `http://127.0.0.1:${trap.port}/` }).end()),
    );
    expect(await post(transport(), `http://127.0.0.1:${receiver.port}/`)).toMatchObject({ kind: 'response', status });
    expect(trap.connections()).toBe(0);
  });
});

test('a signed message arrives as it was signed, and what came back decides the delivery', async () => {
  const secret = generateSecret();
  const verified: string[] = [];
  const receiver = await listen(
    answering((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        verified.push(verifySignature(secret, request.headers, Buffer.concat(chunks)).id);
        response.writeHead(503, { 'retry-after': '90' }).end();
      });
    }),
  );
  const now = new Date();
  const body = '{"type":"order.paid","timestamp":"2026-01-02T03:04:05.000Z","data":{"name":"Zoë"}}';
  const headers = signedHeaders([signingKey(secret)], { id: 'msg_1', timestamp: Math.floor(now.getTime() / 1000), body });
  const result = await transport().send({ url: `http://127.0.0.1:${receiver.port}/`, headers, body });
  expect(verified).toEqual(['msg_1']);
  const health = { failingSince: null, consecutiveFailures: 0 };
  const outcome = decideOutcome(0, result, health, now, {
    schedule: DEFAULT_SCHEDULE,
    random: null,
    disableAfterMs: DEFAULT_DISABLE_AFTER_MS,
  });
  expect(outcome.delivery).toMatchObject({
    status: 'pending',
    failureReason: 'http_status',
    nextAttemptAt: new Date(now.getTime() + 90_000),
  });
});

test('proxies of the environment are ignored', async () => {
  const proxy = await listen(answering((_request, response) => response.end('proxy')));
  const receiver = await listen(answering((_request, response) => response.end('receiver')));
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy', 'NODE_USE_ENV_PROXY'];
  for (const name of names) vi.stubEnv(name, name.startsWith('NODE') ? '1' : `http://127.0.0.1:${proxy.port}`);
  try {
    expect(await post(transport(), `http://127.0.0.1:${receiver.port}/`)).toMatchObject({ bodyExcerpt: 'receiver' });
  } finally {
    vi.unstubAllEnvs();
  }
  expect(proxy.connections()).toBe(0);
});

describe('addresses', () => {
  /** Two receivers on one port: 127.0.0.2 plays the public internet, 127.0.0.1 the private side. */
  async function twoSides(): Promise<{ open: Receiver; closed: Receiver; policy: URLPolicy; url: string }> {
    const open = await listen(
      answering((_request, response) => response.setHeader('connection', 'close').end('public')),
      '127.0.0.2',
    );
    const closed = await listen(
      answering((_request, response) => response.end('private')),
      '127.0.0.1',
      open.port,
    );
    const policy = URLPolicy({ allowHttp: true, allowCidrs: ['127.0.0.2/32', '0.0.0.0/32'], allowPorts: [open.port] });
    return { open, closed, policy, url: `http://hooks.example.com:${open.port}/` };
  }

  test.each([
    ['only private', ['127.0.0.1']],
    ['private first', ['127.0.0.1', '127.0.0.2']],
    ['public first', ['127.0.0.2', '127.0.0.1']],
    ['private last of many', ['127.0.0.2', '127.0.0.2', '127.0.0.2', '127.0.0.2', '127.0.0.2', '10.0.0.1']],
    ['mapped private', ['127.0.0.2', '::ffff:127.0.0.1']],
    ['metadata', ['169.254.169.254']],
    ['something else than an address', ['127.0.0.2', 'localhost']],
  ])('a name that resolves to %s is not connected to', async (_name, addresses) => {
    const { open, closed, policy, url } = await twoSides();
    expect(await post(transport({ policy, resolve: async () => addresses }), url)).toMatchObject({
      kind: 'failure',
      reason: 'blocked_address',
      error: URL_NOT_ALLOWED,
    });
    expect([open.connections(), closed.connections()]).toEqual([0, 0]);
  });

  test('a name that is rebound after it was vetted never reaches the private side', async () => {
    const { open, closed, policy, url } = await twoSides();
    let asked = 0;
    const to = transport({ policy, resolve: async () => [asked++ === 0 ? '127.0.0.2' : '127.0.0.1'] });
    expect(await post(to, url)).toMatchObject({ status: 200, bodyExcerpt: 'public' });
    expect(asked).toBe(1);
    const later = await Promise.all(Array.from({ length: 20 }, () => post(to, url)));
    expect(later.every((result) => result.kind === 'failure' && result.reason === 'blocked_address')).toBe(true);
    expect([open.connections(), closed.connections()]).toEqual([1, 0]);
  });

  test('a resolver that alternates its answers never reaches the private side', async () => {
    const { closed, policy, url } = await twoSides();
    let asked = 0;
    const to = transport({ policy, resolve: async () => [asked++ % 2 === 0 ? '127.0.0.2' : '127.0.0.1'] });
    const results = await Promise.all(Array.from({ length: 40 }, () => post(to, url)));
    expect(new Set(results.map((result) => (result.kind === 'response' ? result.bodyExcerpt : result.reason)))).toEqual(
      new Set(['public', 'blocked_address']),
    );
    expect(closed.connections()).toBe(0);
  });

  test('the peer that answers is compared with the vetted address before the first byte', async () => {
    // The system connects 0.0.0.0 to 127.0.0.1: the socket's peer is not the address that was asked for.
    const { closed, policy, url } = await twoSides();
    const result = await post(transport({ policy, resolve: async () => ['0.0.0.0'] }), url);
    expect(result).toMatchObject({
      reason: 'blocked_address',
      error: URL_NOT_ALLOWED,
      detail: expect.stringContaining('not the address that was vetted'),
    });
    expect(closed.bytesRead()).toBe(0);
  });

  test('a literal private address is refused without a connection', async () => {
    const { closed, policy } = await twoSides();
    const to = transport({ policy });
    for (const host of ['127.0.0.1', '2130706433', '0x7f.1', '[::ffff:7f00:1]']) {
      expect(await post(to, `http://${host}:${closed.port}/`)).toMatchObject({ reason: 'blocked_address', error: URL_NOT_ALLOWED });
    }
    expect(closed.connections()).toBe(0);
  });

  test('a name without an address, and a resolver that fails, are connection failures', async () => {
    expect(await post(transport({ resolve: async () => [] }), 'http://hooks.example.com/')).toMatchObject({ reason: 'connection' });
    const failing = transport({ resolve: () => Promise.reject(Object.assign(new Error('secret resolver text'), { code: 'ENOTFOUND' })) });
    expect(await post(failing, 'http://hooks.example.com/')).toMatchObject({
      reason: 'connection',
      error: 'The name could not be resolved (ENOTFOUND).',
    });
  });

  test('a resolver that never answers is a timeout', async () => {
    const to = transport({ resolve: () => new Promise(() => {}), timeoutMs: 50 });
    expect(await post(to, 'http://hooks.example.com/')).toMatchObject({ reason: 'timeout' });
  });

  test('a closed port is a connection failure', async () => {
    const receiver = await listen(
      raw(() => {}),
      '127.0.0.2',
    );
    expect(await post(transport(), `http://127.0.0.1:${receiver.port}/`)).toMatchObject({
      reason: 'connection',
      error: 'The connection failed (ECONNREFUSED).',
    });
  });
});

describe('hostile receivers', () => {
  const OK = 'HTTP/1.1 200 OK\r\n';
  const bomb = gzipSync(Buffer.alloc(10_000_000));
  const onRequest =
    (act: (socket: Socket) => void): ((socket: Socket) => void) =>
    (socket) =>
      socket.once('data', () => act(socket));
  const drip = (head: string, piece: string): ((socket: Socket) => void) =>
    onRequest((socket) => {
      socket.write(head);
      const timer = setInterval(() => socket.write(piece), 20);
      socket.on('close', () => clearInterval(timer));
    });
  const flood = (head: string, text = 'x'): ((socket: Socket) => void) => {
    const piece = Buffer.from(text.repeat(Math.ceil((256 * 1024) / text.length)));
    return onRequest((socket) => {
      let sent = 0;
      const more = (): void => {
        while (!socket.destroyed && sent < 2 ** 30) {
          sent += piece.length;
          if (!socket.write(piece)) return;
        }
      };
      socket.on('drain', more);
      socket.write(head);
      more();
    });
  };

  const cases: [string, (socket: Socket) => void, Partial<Extract<TransportResult, { kind: 'failure' }>> | Partial<TransportResult>][] = [
    [
      'a garbage status line',
      onRequest((socket) => socket.end('HELLO WORLD\r\n\r\n')),
      { reason: 'connection', error: 'The response is not HTTP/1.1.' },
    ],
    ['binary garbage', onRequest((socket) => socket.end(Buffer.from([0, 255, 254, 1, 2, 3]))), { reason: 'connection' }],
    ['a status that is no number', onRequest((socket) => socket.end('HTTP/1.1 abc OK\r\n\r\n')), { reason: 'connection' }],
    ['another protocol version', onRequest((socket) => socket.end('HTTP/9.9 200 OK\r\n\r\n')), { reason: 'connection' }],
    ['an HTTP/2 preface', onRequest((socket) => socket.end('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')), { reason: 'connection' }],
    [
      '10,000 headers',
      onRequest((socket) => socket.end(`${OK}${Array.from({ length: 10_000 }, (_, index) => `x-${index}: y\r\n`).join('')}\r\n`)),
      { reason: 'connection', error: 'The response headers are too large.' },
    ],
    ['one endless header', onRequest((socket) => socket.end(`${OK}x: ${'y'.repeat(200_000)}\r\n\r\n`)), { reason: 'connection' }],
    ['an invalid header', onRequest((socket) => socket.end(`${OK}no colon here\r\n\r\n`)), { reason: 'connection' }],
    [
      'two content lengths',
      onRequest((socket) => socket.end(`${OK}content-length: 1\r\ncontent-length: 2\r\n\r\nab`)),
      { reason: 'connection' },
    ],
    [
      'a chunk size that is no number',
      onRequest((socket) => socket.end(`${OK}transfer-encoding: chunked\r\n\r\nzz\r\n`)),
      { reason: 'connection' },
    ],
    [
      'a body shorter than announced',
      onRequest((socket) => socket.end(`${OK}content-length: 100\r\n\r\nshort`)),
      { reason: 'connection', status: 200 },
    ],
    [
      'a switch of protocols that was not requested',
      onRequest((socket) => socket.write('HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n')),
      { reason: 'connection' },
    ],
    ['endless informational responses', drip('', 'HTTP/1.1 102 Processing\r\n\r\n'), { reason: 'timeout' }],
    [
      'a flood of informational responses',
      flood('', 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'),
      { reason: 'connection', error: 'The receiver sent too many informational responses.' },
    ],
    ['a flood of 100 Continue', flood('', 'HTTP/1.1 100 Continue\r\n\r\n'), { reason: 'connection', error: 'The response is too long.' }],
    [
      'a chunk with an endless extension',
      flood(`${OK}transfer-encoding: chunked\r\n\r\n1;`, 'a'),
      { reason: 'connection', status: 200, error: 'The response is too long.' },
    ],
    [
      'a body in chunks of one byte',
      flood(`${OK}transfer-encoding: chunked\r\n\r\n`, '1\r\nx\r\n'),
      { kind: 'response', status: 200, bodyExcerpt: 'x'.repeat(4096) },
    ],
    ['1 GB of body', flood(`${OK}content-length: ${2 ** 30}\r\n\r\n`), { kind: 'response', status: 200, bodyExcerpt: 'x'.repeat(4096) }],
    ['an endless body with an error status', flood('HTTP/1.1 500 No\r\n\r\n'), { kind: 'response', status: 500 }],
    ['a body in single bytes', drip(`${OK}content-length: 1000\r\n\r\n`, 'x'), { reason: 'timeout', status: 200 }],
    ['headers in single bytes', drip(OK, 'a'), { reason: 'timeout', status: null }],
    ['silence after accepting', () => {}, { reason: 'timeout' }],
    ['silence after the request', onRequest(() => {}), { reason: 'timeout' }],
    [
      'silence after the headers',
      onRequest((socket) => socket.write(`${OK}content-length: 5\r\n\r\n`)),
      { reason: 'timeout', status: 200 },
    ],
    ['a reset on accepting', (socket) => socket.resetAndDestroy(), { reason: 'connection' }],
    ['a reset after the request', onRequest((socket) => socket.resetAndDestroy()), { reason: 'connection' }],
    [
      'a reset within the status line',
      onRequest((socket) => socket.write('HTTP/1.1 2', () => socket.resetAndDestroy())),
      { reason: 'connection' },
    ],
    [
      'a reset within the headers',
      onRequest((socket) => socket.write(`${OK}x: y`, () => socket.resetAndDestroy())),
      { reason: 'connection' },
    ],
    [
      'a reset within the body',
      onRequest((socket) => socket.write(`${OK}content-length: 9\r\n\r\nabc`, () => socket.resetAndDestroy())),
      { reason: 'connection' },
    ],
    ['an end on accepting', (socket) => socket.end(), { reason: 'connection' }],
    ['an end after the request', onRequest((socket) => socket.end()), { reason: 'connection' }],
    ['an end within the headers', onRequest((socket) => socket.end(`${OK}x: y`)), { reason: 'connection' }],
    ['half an answer before the request', (socket) => socket.write(OK), { reason: 'timeout' }],
    [
      'text that is not UTF-8',
      onRequest((socket) => socket.end(Buffer.concat([Buffer.from(`${OK}\r\n`), Buffer.from([0x61, 0xff, 0xfe, 0x62])]))),
      { kind: 'response', bodyExcerpt: 'a\uFFFD\uFFFDb' },
    ],
    [
      'NUL bytes, which PostgreSQL cannot store',
      onRequest((socket) => socket.end(`${OK}\r\na\0b`)),
      { kind: 'response', bodyExcerpt: 'a\uFFFDb' },
    ],
    [
      'a compressed body, which is not unpacked',
      onRequest((socket) => socket.end(Buffer.concat([Buffer.from(`${OK}content-encoding: gzip\r\n\r\n`), bomb]))),
      { kind: 'response', status: 200 },
    ],
  ];

  test.each(cases)('%s ends as a classified result, and the next delivery goes on', async (_name, behaviour, expected) => {
    const hostile = await listen(raw(behaviour));
    const good = await listen(answering((_request, response) => response.end('fine')));
    // Short where the deadline is what is expected; long elsewhere, so that a slow machine does not change the answer.
    const to = transport({ timeoutMs: 'reason' in expected && expected.reason === 'timeout' ? 300 : 10_000 });
    const beside = post(transport(), `http://127.0.0.1:${good.port}/`);
    expect(await post(to, `http://127.0.0.1:${hostile.port}/`)).toMatchObject(expected);
    expect(await beside).toMatchObject({ kind: 'response', status: 200 });
    await vi.waitFor(async () => expect(await post(to, `http://127.0.0.1:${good.port}/`)).toMatchObject({ bodyExcerpt: 'fine' }));
  });

  test('of a huge body little more than the limit is taken', async () => {
    let accepted: Socket | null = null;
    const flooding = flood(`${OK}content-length: ${2 ** 30}\r\n\r\n`);
    const receiver = await listen(
      raw((socket) => {
        accepted = socket;
        flooding(socket);
      }),
    );
    const closed = Promise.withResolvers<void>();
    await post(transport(), `http://127.0.0.1:${receiver.port}/`);
    (accepted as Socket | null)?.on('close', () => closed.resolve());
    await closed.promise;
    // What lies in the socket buffers of both sides was sent, but never read.
    expect((accepted as Socket | null)?.bytesWritten ?? Infinity).toBeLessThan(64 * 1024 * 1024);
  });

  test('a second answer smuggled behind the first is not taken for the answer to the next delivery', async () => {
    let count = 0;
    const receiver = await listen(
      raw((socket) =>
        socket.on('data', () => {
          count += 1;
          socket.write(`${OK}content-length: 1\r\n\r\n${count}HTTP/1.1 500 Evil\r\ncontent-length: 4\r\n\r\nevil`);
        }),
      ),
    );
    const to = transport();
    const url = `http://127.0.0.1:${receiver.port}/`;
    const results = [await post(to, url), await post(to, url), await post(to, url)];
    expect(JSON.stringify(results)).not.toContain('evil');
  });

  const FORGED = 'HTTP/1.1 200 Forged\r\ncontent-length: 6\r\n\r\nforged';
  test.each([
    ['at once', (socket: Socket) => void socket.write(`${OK}content-length: 0\r\n\r\n${FORGED}`)],
    [
      'a little later',
      (socket: Socket) => socket.write(`${OK}content-length: 0\r\n\r\n`, () => setTimeout(() => socket.write(FORGED), 20)),
    ],
    ['as the body of an answer without one', (socket: Socket) => socket.write(`HTTP/1.1 204 No\r\ncontent-length: 48\r\n\r\n${FORGED}`)],
    ['behind an upgrade', (socket: Socket) => socket.write(`HTTP/1.1 101 Yes\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n${FORGED}`)],
    [
      'behind a body that is announced twice',
      (socket: Socket) => socket.write(`${OK}content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${FORGED}`),
    ],
  ] as [string, (socket: Socket) => void][])('an answer that comes %s is never the answer to the next delivery', async (_when, first) => {
    let requests = 0;
    const receiver = await listen(
      raw((socket) =>
        socket.on('data', () => {
          requests += 1;
          if (requests === 1) first(socket);
          else socket.write('HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n');
        }),
      ),
    );
    const to = transport();
    const url = `http://127.0.0.1:${receiver.port}/`;
    await post(to, url);
    // Time enough for it to lie in the socket.
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(await post(to, url)).toMatchObject({ kind: 'response', status: 500 });
  });

  test('a deadline that passes while the connection is made sends nothing afterwards', async () => {
    const receiver = await listen(answering((_request, response) => response.end()));
    const answer = Promise.withResolvers<string[]>();
    const to = transport({ resolve: () => answer.promise, timeoutMs: 60 });
    const late = post(to, `http://hooks.example.com:${receiver.port}/`);
    expect(await late).toMatchObject({ reason: 'timeout' });
    answer.resolve(['127.0.0.1']);
    await to.close();
    expect(receiver.bytesRead()).toBe(0);
  });

  test('whatever bytes a receiver answers end as a classified result', async () => {
    const tokens = [
      OK,
      'HTTP/1.1 ',
      'HTTP/1.0 200',
      '101',
      '100 Continue',
      '204',
      '304',
      '\r\n',
      '\r\n\r\n',
      ': ',
      ' ',
      '\n',
      '\0',
      'a: b',
      'content-length: 5',
      'content-length: -1',
      'transfer-encoding: chunked',
      '5\r\nhello\r\n0\r\n\r\n',
      'trailer: x',
      'location: /',
      'connection: upgrade\r\nupgrade: h2c',
      'connection: close',
      'keep-alive: timeout=-1',
      'keep-alive: timeout=99999999999999',
    ];
    const piece = fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom(...tokens).map((text) => Buffer.from(text)) },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)) },
    );
    let reply: Buffer = Buffer.alloc(0);
    const receiver = await listen(raw(onRequest((socket) => socket.end(reply))));
    const to = transport();
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 14 }), async (pieces) => {
        reply = Buffer.concat(pieces);
        const result = await post(to, `http://127.0.0.1:${receiver.port}/`);
        expect(result.kind === 'response' ? 'response' : result.reason).toMatch(/^(?:response|connection)$/);
      }),
      { numRuns: 200 },
    );
  });

  test('the excerpt ends before a character cut in half', async () => {
    const receiver = await listen(answering((_request, response) => response.end(`a${'é'.repeat(4000)}`)));
    expect(await post(transport(), `http://127.0.0.1:${receiver.port}/`)).toMatchObject({ bodyExcerpt: `a${'é'.repeat(2047)}` });
  });

  test('a hundred hostile answers in a row leave no timer, rejection or connection behind', async () => {
    const rejections: unknown[] = [];
    const note = (reason: unknown): void => void rejections.push(reason);
    process.on('unhandledRejection', note);
    cleanups.push(() => process.off('unhandledRejection', note));
    let turn = 0;
    const behaviours = cases
      .filter(([, , expected]) => !('reason' in expected) || expected.reason !== 'timeout')
      .map(([, behaviour]) => behaviour);
    const receiver = await listen(raw((socket) => behaviours[turn++ % behaviours.length]?.(socket)));
    const to = transport();
    const results = await Promise.all(Array.from({ length: 100 }, () => post(to, `http://127.0.0.1:${receiver.port}/`)));
    expect(results).toHaveLength(100);
    await to.close();
    await new Promise((resolve) => setImmediate(resolve));
    expect(rejections).toEqual([]);
  });
});

test('headers that cannot be sent are a fault of the payload, and nothing is sent', async () => {
  const receiver = await listen(answering((_request, response) => response.end()));
  const result = await transport().send({ url: `http://127.0.0.1:${receiver.port}/`, headers: { 'x-bad': 'a\r\nb: c' }, body: '{}' });
  expect(result).toMatchObject({ kind: 'failure', reason: 'payload' });
  expect(receiver.bytesRead()).toBe(0);
});

test('after close a send is a failure, not an exception', async () => {
  const to = transport();
  await to.close();
  expect(await post(to, 'http://127.0.0.1:9/')).toMatchObject({ kind: 'failure', reason: 'connection' });
});
