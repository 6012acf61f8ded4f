import type { ServerResponse } from 'node:http';
import { inspect } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { serveHttp, type Loopback } from '../../test/loopback-server.ts';
import { followGenerations, type FollowOptions, type RemoteSourceError } from './index.ts';

const token = 'canary-token-0123456789-0123456789-01';
const section = { application: 'billing', profile: 'production', token };

const event = (generation: number): string =>
  `id: ${generation}\nevent: generation\ndata: ${JSON.stringify({ application: 'billing', profile: 'production', generation })}\n\n`;

function openStream(response: ServerResponse, text = ''): void {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  response.write(text);
}

/** A follower whose generations are collected, stopped when the test ends. */
function follow(server: Loopback, options: Partial<FollowOptions> = {}) {
  const stop = new AbortController();
  const generations: number[] = [];
  const retries: RemoteSourceError[] = [];
  const given = { url: server.url, ...section, retryMaxMs: 20, onRetry: (error: RemoteSourceError) => retries.push(error), ...options };
  const done = followGenerations({ ...given, signal: stop.signal }, ({ generation }) => generations.push(generation));
  done.catch(() => undefined);
  onTestFinished(() => stop.abort());
  return { stop, generations, retries, done };
}

test('each generation event is handed over, with token and Last-Event-ID on the request', async () => {
  const server = await serveHttp((_, response) => openStream(response, `retry: 3000\n\n${event(4)}`));
  const events = followGenerations({ url: server.url, ...section, lastGeneration: 2 });
  expect(await events.next()).toEqual({ done: false, value: { application: 'billing', profile: 'production', generation: 4 } });
  await events.return();
  const [request] = server.requests;
  expect(request?.url).toBe('/billing/production/stream');
  expect(request?.headers).toMatchObject({ authorization: `Bearer ${token}`, 'last-event-id': '2', accept: 'text/event-stream' });
});

test('a stream that ends is opened again with the last generation seen, and its opening event is reported even when equal', async () => {
  const server = await serveHttp((_, response) => {
    openStream(response, event(3));
    response.end();
  });
  const { generations, retries } = follow(server);
  await expect.poll(() => generations.length).toBeGreaterThan(2);
  expect(new Set(generations)).toEqual(new Set([3]));
  expect(server.requests[0]?.headers['last-event-id']).toBeUndefined();
  expect(server.requests[1]?.headers['last-event-id']).toBe('3');
  expect(retries[0]).toMatchObject({ kind: 'remote', code: 'ended' });
});

test('a server that stops and comes back is found again', async () => {
  const server = await serveHttp((_, response) => openStream(response, event(8)));
  const { generations, retries } = follow(server);
  await expect.poll(() => generations).toEqual([8]);
  await server.close();
  await expect.poll(() => retries.some((error) => error.message.includes('ECONNREFUSED'))).toBe(true);
  await serveHttp((_, response) => openStream(response, event(1)), server.port);
  await expect.poll(() => generations, { timeout: 50_000 }).toEqual([8, 1]);
});

test.each([401, 403, 404])('a %i ends it with an auth error', async (status) => {
  const server = await serveHttp((_, response) => response.writeHead(status).end());
  const { done } = follow(server);
  await expect(done).rejects.toMatchObject({ kind: 'auth', status });
  expect(server.requests).toHaveLength(1);
});

test('a token that is refused after a while ends the iterator with the auth error', async () => {
  const server = await serveHttp((_, response) => {
    openStream(response, event(1));
    response.end();
  });
  const events = followGenerations({ url: server.url, ...section, retryMaxMs: 10 });
  await events.next();
  server.handle = (_, response) => response.writeHead(401).end();
  const error = (await (async () => {
    for await (const _ of events);
  })().catch((caught: unknown) => caught)) as RemoteSourceError;
  expect(error).toMatchObject({ kind: 'auth', code: 'unauthenticated' });
  expect(inspect(error)).not.toContain(token);
});

test.each([
  ['503 with Retry-After', (response: ServerResponse) => response.writeHead(503, { 'retry-after': '0' }).end(), 'status'],
  ['500', (response: ServerResponse) => response.writeHead(500).end(), 'status'],
  ['redirect', (response: ServerResponse) => response.writeHead(302, { location: '/' }).end(), 'status'],
  ['login page', (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'), 'content-type'],
  ['reset', (response: ServerResponse) => response.socket?.resetAndDestroy(), 'connection'],
  ['event of another section', (response: ServerResponse) => openStream(response, event(1).replace('billing', 'orders')), 'invalid-event'],
  ['event without number', (response: ServerResponse) => openStream(response, event(1).replace(':1}', ':"1"}')), 'invalid-event'],
  ['event that is no JSON', (response: ServerResponse) => openStream(response, 'event: generation\ndata: {\n\n'), 'invalid-event'],
  ['endless line', (response: ServerResponse) => openStream(response, 'x'.repeat(100_000)), 'invalid-event'],
])('a %s leads to another attempt', async (_, misbehave, code) => {
  const server = await serveHttp((_, response) => misbehave(response));
  const { generations, retries } = follow(server);
  await expect.poll(() => retries.length).toBeGreaterThan(0);
  server.handle = (_, response) => openStream(response, event(6));
  await expect.poll(() => generations).toEqual([6]);
  expect(retries[0]).toMatchObject({ kind: 'remote', code });
});

test('events of other kinds are ignored', async () => {
  const server = await serveHttp((_, response) => openStream(response, `event: news\ndata: x\n\n${event(2)}`));
  const { generations, retries } = follow(server);
  await expect.poll(() => generations).toEqual([2]);
  expect(retries).toEqual([]);
});

test('a connection without event or heartbeat counts as dead; heartbeats keep it alive', async () => {
  const heartbeats: NodeJS.Timeout[] = [];
  onTestFinished(() => heartbeats.forEach(clearInterval));
  const server = await serveHttp((_, response) => openStream(response, event(1)));
  const { retries } = follow(server, { silenceMs: 300 });
  await expect.poll(() => retries[0]?.code).toBe('silence');
  server.handle = (_, response) => {
    openStream(response, event(2));
    heartbeats.push(setInterval(() => response.write(': heartbeat\n\n'), 30));
  };
  await expect.poll(() => heartbeats.length).toBe(1);
  const alive = retries.length;
  await new Promise((resolve) => setTimeout(resolve, 900));
  expect(retries.length).toBe(alive);
  expect(heartbeats).toHaveLength(1);
});

test('a server that accepts and never answers is given up after the timeout', async () => {
  const server = await serveHttp(() => undefined);
  const { retries } = follow(server, { timeout: 50 });
  await expect.poll(() => retries[0]?.code).toBe('timeout');
});

test('a consumer slower than the events gets the newest only', async () => {
  let response: ServerResponse | undefined;
  const server = await serveHttp((_, opened) => openStream((response = opened), event(1)));
  const events = followGenerations({ url: server.url, ...section });
  expect((await events.next()).value).toMatchObject({ generation: 1 });
  for (let generation = 2; generation <= 50; generation += 1) {
    await new Promise((resolve) => response?.write(event(generation), resolve));
  }
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect((await events.next()).value).toMatchObject({ generation: 50 });
  await events.return();
});

test('abort ends the iteration without an error, in every state', async () => {
  const server = await serveHttp((_, response) => openStream(response, event(1)));
  const reading = follow(server);
  await expect.poll(() => reading.generations).toEqual([1]);
  reading.stop.abort();
  await reading.done;

  server.handle = () => undefined;
  const connecting = follow(server);
  await expect.poll(() => server.requests.length).toBe(2);
  connecting.stop.abort();
  await connecting.done;

  server.handle = (_, response) => response.writeHead(503, { 'retry-after': '60' }).end();
  const waiting = follow(server);
  await expect.poll(() => waiting.retries.length).toBe(1);
  waiting.stop.abort();
  await waiting.done;

  const early = followGenerations({ url: server.url, ...section, signal: AbortSignal.abort() });
  expect(await early.next()).toEqual({ done: true, value: undefined });
});

test('leaving the loop closes the connection', async () => {
  let open = 0;
  const server = await serveHttp((request, response) => {
    open += 1;
    request.on('close', () => (open -= 1));
    openStream(response, event(1));
  });
  for await (const { generation } of followGenerations({ url: server.url, ...section })) {
    expect(generation).toBe(1);
    break;
  }
  await expect.poll(() => open).toBe(0);
});

test('a callback that throws ends the iteration with its error', async () => {
  const server = await serveHttp((_, response) => openStream(response, event(1)));
  const failing = followGenerations({ url: server.url, ...section }, () => Promise.reject(new Error('full')));
  await expect(failing).rejects.toThrow('full');
});

test('misuse is thrown at the call, before any connection', () => {
  expect(() => followGenerations({ url: 'http://u:canary@h', ...section })).toThrow(/credentials/);
  expect(() => followGenerations({ url: 'http://h', ...section, silenceMs: -1, cacheFile: 'x' } as never)).toThrow(/silenceMs.*|cacheFile/);
  expect(() => followGenerations(undefined as never)).toThrow(/options must be an object/);
});
