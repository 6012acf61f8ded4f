import { once } from 'node:events';
import { request, type ClientRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import process from 'node:process';
import { expect, onTestFinished, test } from 'vitest';
import { eventually, OTHER_TOKEN, SERVER_TOML, startServer, TOKEN, type RunningServer } from '../../test/running-server.ts';
import type { Clock } from '../clock.ts';

interface OpenStream {
  readonly status: number;
  readonly response: IncomingMessage;
  readonly sent: ClientRequest;
  text: string;
  ended: boolean;
}

function openStream(
  running: RunningServer,
  headers: Record<string, string> = {},
  section = 'billing/prod',
  token = TOKEN,
): Promise<OpenStream> {
  return new Promise((resolve, reject) => {
    const options = {
      host: '127.0.0.1',
      port: running.port,
      path: `/${section}/stream`,
      agent: false,
      headers: { authorization: `Bearer ${token}`, ...headers },
    };
    const sent = request(options, (response) => {
      const stream: OpenStream = { status: response.statusCode!, response, sent, text: '', ended: false };
      response.on('data', (chunk: Buffer) => (stream.text += chunk.toString()));
      response.on('end', () => (stream.ended = true));
      response.on('error', () => (stream.ended = true));
      resolve(stream);
    });
    sent.on('error', reject);
    onTestFinished(() => void sent.destroy());
    sent.end();
  });
}

function event(generation: number): string {
  return `id: ${generation}\nevent: generation\ndata: {"application":"billing","profile":"prod","generation":${generation}}\n\n`;
}

function changeTo(running: RunningServer, maxSize: number): Promise<void> {
  return running.write('billing.toml', `[billing.pool]\nmaxSize = ${maxSize}\n`);
}

test('a stream opens with the current generation and sends each later one', async () => {
  const running = await startServer();
  const stream = await openStream(running);
  expect(stream.response.headers).toMatchObject({
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  await eventually(() => stream.text === `retry: 3000\n${event(1)}`, 'the opening event');
  await changeTo(running, 6);
  await eventually(() => stream.text === `retry: 3000\n${event(1)}${event(2)}`, 'the event of the change');
  expect(running.audit.filter((entry) => entry.endpoint === 'stream')).toMatchObject([
    { outcome: 'served', generation: 1, caller: 'billing-service' },
  ]);
});

test('whatever Last-Event-ID says, the opening is a single event with the current generation', async () => {
  const running = await startServer();
  await changeTo(running, 6);
  await eventually(async () => (await running.status()).generation === 2, 'generation 2');
  for (const id of ['1', '2', '900', 'not a number', '-1', '']) {
    const stream = await openStream(running, { 'last-event-id': id });
    await eventually(() => stream.text.includes('\n\n'), 'the opening event');
    expect([id, stream.text]).toEqual([id, `retry: 3000\n${event(2)}`]);
    stream.sent.destroy();
  }
});

test('a change of one section is not sent to the streams of another', async () => {
  const running = await startServer();
  const orders = await openStream(running, {}, 'orders/prod', OTHER_TOKEN);
  const billing = await openStream(running);
  await changeTo(running, 6);
  await eventually(() => billing.text.includes('id: 2'), 'the event');
  expect(orders.text).not.toContain('id: 2');
});

test('at the ceiling the response is 503 with Retry-After, and a closed stream makes room', async () => {
  const running = await startServer({ toml: SERVER_TOML.replace('[server]', '[server]\nmax_stream_connections = 2') });
  const first = await openStream(running);
  await openStream(running, {}, 'orders/prod', OTHER_TOKEN);
  const refused = await running.ask('/billing/prod/stream');
  expect([refused.status, refused.headers['retry-after'], refused.json().code]).toEqual([503, '5', 'unavailable']);
  expect(running.audit.at(-1)).toMatchObject({ endpoint: 'stream', outcome: 'unavailable', caller: 'billing-service', generation: null });
  first.sent.destroy();
  await eventually(() => running.server.streams.open === 1, 'the place to be free');
  expect((await openStream(running)).status).toBe(200);
});

test('requests that arrive together cannot slip past the ceiling', async () => {
  const running = await startServer({ toml: SERVER_TOML.replace('[server]', '[server]\nmax_stream_connections = 3') });
  const statuses = (await Promise.all(Array.from({ length: 20 }, () => openStream(running)))).map((stream) => stream.status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(3);
  expect(statuses.filter((status) => status === 503)).toHaveLength(17);
});

test('with a ceiling of 0 the path answers exactly like one the server does not have', async () => {
  const running = await startServer({ toml: SERVER_TOML.replace('[server]', '[server]\nmax_stream_connections = 0') });
  const absent = await running.ask('/billing/prod/nothing');
  for (const options of [{}, { token: null }, { method: 'POST' }, { method: 'HEAD' }]) {
    const reply = await running.ask('/billing/prod/stream', options);
    expect(reply.status).toBe(404);
    expect(reply.text).toEqual(options.method === 'HEAD' ? '' : absent.text);
    expect(running.audit.at(-1)).toMatchObject({ endpoint: 'none', outcome: 'not-found', caller: null });
  }
});

test('an idle stream gets a comment every 15 seconds', async () => {
  const waiting: { ms: number; run: () => void }[] = [];
  const clock: Clock = {
    now: Date.now,
    after(ms, run) {
      waiting.push({ ms, run });
      return () => undefined;
    },
  };
  const running = await startServer({ clock });
  const stream = await openStream(running);
  await eventually(() => stream.text.includes(event(1)), 'the opening event');
  for (const beats of [1, 2]) {
    const beat = waiting.pop()!;
    expect(beat.ms).toBe(15_000);
    beat.run();
    await eventually(() => stream.text === `retry: 3000\n${event(1)}${': \n\n'.repeat(beats)}`, 'a comment');
  }
});

test('a reader that has not read the last event gets no comments', async () => {
  const waiting: (() => void)[] = [];
  const clock: Clock = { now: Date.now, after: (_ms, run) => (waiting.push(run), () => undefined) };
  const running = await startServer({ clock });
  const [section] = running.server.roster.sections.values();
  const stream = await openStream(running);
  await eventually(() => stream.text.includes(event(1)), 'the opening event');
  running.server.streams.publish(section!);
  // In the same turn, so that the write of the event is still under way.
  for (let beat = 0; beat < 100; beat++) waiting.pop()!();
  await eventually(() => stream.text.endsWith(event(1) + event(1)), 'the event');
  waiting.pop()!();
  await eventually(() => stream.text.endsWith(': \n\n'), 'a comment');
  expect(stream.text.match(/: \n\n/g)).toHaveLength(1);
});

test('a reader that stops gets only the newest generation when it continues', async () => {
  const running = await startServer();
  const [section] = running.server.roster.sections.values();
  const stream = await openStream(running);
  await eventually(() => stream.text.includes(event(1)), 'the opening event');
  // Until a write is through, later generations are not written at all: they are counted in one number.
  const original = section!.installed;
  let generation = 1;
  Object.defineProperty(section, 'installed', { get: () => ({ ...original, generation }) });
  for (generation = 2; generation <= 1000; generation++) {
    running.server.streams.publish(section!);
  }
  generation = 1000;
  await eventually(() => stream.text.includes(event(1000)), 'the newest generation');
  expect(stream.text).toBe(`retry: 3000\n${event(1)}${event(2)}${event(1000)}`);
});

test('a peer that closes its side gets the current generation, and the end of its streams', async () => {
  const running = await startServer();
  const request = `GET /billing/prod/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`;
  const early = connect({ port: running.port, host: '127.0.0.1', allowHalfOpen: true });
  early.end(request + request);
  const late = connect({ port: running.port, host: '127.0.0.1', allowHalfOpen: true });
  late.write(request);
  await once(late, 'readable');
  late.end();
  for (const socket of [early, late]) {
    const text = (await socket.toArray()).join('');
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\nContent-Type: text\/event-stream\r\n[^]*id: 1\nevent: generation\n/);
  }
  await eventually(() => running.server.streams.open === 0, 'both slots to be free');
});

test('streams queued on one connection free all their slots when it closes', async () => {
  const running = await startServer();
  const warnings: Error[] = [];
  const warned = (warning: Error): void => void warnings.push(warning);
  process.on('warning', warned);
  onTestFinished(() => void process.off('warning', warned));
  const socket = connect(running.port, '127.0.0.1');
  socket.write(`GET /billing/prod/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`.repeat(20));
  await eventually(() => running.server.streams.open === 20, 'open streams');
  socket.destroy();
  await eventually(() => running.server.streams.open === 0, 'all places to be free');
  expect(warnings).toEqual([]);
});

test('a stalled reader does not keep its stream once its token is removed, nor delay the stop', { timeout: 600_000 }, async () => {
  const running = await startServer({ deadlines: { shutdownMs: 300_000 } });
  const stalled = async (): Promise<void> => {
    const open = running.server.streams.open;
    const socket = connect(running.port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => undefined);
    socket.write(`GET /billing/prod/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`);
    socket.pause();
    await eventually(() => running.server.streams.open > open, 'an open stream');
    await fillUp(running);
  };
  await stalled();
  await running.write('server.toml', SERVER_TOML.replace(TOKEN, OTHER_TOKEN.replace('orders', 'later')));
  await eventually(() => running.server.streams.open === 0, 'the stream to be closed');
  await running.write('server.toml', SERVER_TOML);
  await eventually(async () => (await running.ask('/billing/prod')).status === 200, 'the token');
  await stalled();
  const started = performance.now();
  await running.server.stop();
  // Far from the deadline, whatever else the machine does.
  expect(performance.now() - started).toBeLessThan(120_000);
});

/** Publishes so many generations that a connection which is not read accepts no more. */
async function fillUp({ server }: RunningServer): Promise<void> {
  const [section] = server.roster.sections.values();
  const original = section!.installed;
  let generation = 1;
  Object.defineProperty(section, 'installed', { configurable: true, get: () => ({ ...original, generation }) });
  for (; generation < 60_000; generation++) {
    server.streams.publish(section!);
    await new Promise(setImmediate);
  }
}

test('bytes that a peer sends on its open stream end it and add nothing to it', async () => {
  const running = await startServer();
  const socket = connect(running.port, '127.0.0.1');
  const answer = socket.toArray().catch(() => []);
  let text = '';
  socket.on('data', (chunk) => (text += chunk.toString()));
  socket.write(`GET /billing/prod/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`);
  await eventually(() => text.endsWith(event(1)), 'the opening event');
  // The end of a stream is the end of its connection, and its headers say so.
  expect(text).toContain('\r\nConnection: close\r\n');
  socket.write('this is not http\r\n\r\n');
  await answer;
  expect(text.endsWith(event(1))).toBe(true);
  await eventually(() => running.server.streams.open === 0, 'the place to be free');
});

test('stopping ends streams at once', async () => {
  const running = await startServer();
  const stream = await openStream(running);
  await running.server.stop();
  await eventually(() => stream.ended, 'the end of the stream');
});

test('streams that come and go leave nothing behind', async () => {
  const running = await startServer();
  for (let round = 0; round < 20; round++) {
    const streams = await Promise.all(Array.from({ length: 10 }, () => openStream(running)));
    expect(running.server.streams.open).toBe(10);
    for (const stream of streams) stream.sent.destroy();
    await eventually(() => running.server.streams.open === 0, 'all streams to be closed');
  }
});
