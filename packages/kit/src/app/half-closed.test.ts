import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { Controller, route } from '../http/index.ts';
import { allowAny } from '../permissions/index.ts';
import { testApp, type TestApp } from '../testing/index.ts';

const permission = allowAny;

let kit: TestApp;
let port: number;
let began: PromiseWithResolvers<AbortSignal>;
let answer: PromiseWithResolvers<string>;

class SlowController extends Controller {
  slow = route.get('/slow', { permission, response: z.object({ text: z.string() }) }, async ({ signal }) => {
    began.resolve(signal);
    return { text: await answer.promise };
  });
  events = route.stream('/events', { permission, response: z.string() }, async function* ({ signal }) {
    yield { data: 'first' };
    began.resolve(signal);
    await once(signal, 'abort');
  });
}

beforeEach(async () => {
  began = Promise.withResolvers();
  answer = Promise.withResolvers();
  kit = await testApp({ mount: { '/v1': { '/': SlowController } } });
  port = Number(new URL(await kit.listen()).port);
});
afterEach(async () => {
  answer.resolve('late');
  await kit.close();
});

function send(path: string, version = '1.1'): Socket {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => undefined);
  socket.write(`GET /v1${path} HTTP/${version}\r\nhost: a\r\n\r\n`);
  return socket;
}

const aborted = async (): Promise<void> => {
  const signal = await began.promise;
  if (!signal.aborted) await once(signal, 'abort');
};

test('a client that ended its side of the connection still gets its response', async () => {
  const socket = send('/slow');
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  socket.end();
  const signal = await began.promise;
  // It is asked more than once whether it is still there.
  await expect.poll(() => text.split('102 Processing').length, { timeout: 30_000 }).toBeGreaterThan(2);
  expect(signal.aborted).toBe(false);
  answer.resolve('done');
  await once(socket, 'close');
  expect(text).toContain('HTTP/1.1 200 OK');
  expect(text).toMatch(/\{"text":"done"\}$/);
});

test('a client that closed its connection is gone, with or without the end of its request behind it', async () => {
  const socket = send('/slow');
  await began.promise;
  socket.destroy();
  await aborted();
});

test('a client of HTTP/1.0, which has no interim responses, is gone when it ends its side', async () => {
  const socket = send('/slow', '1.0');
  await began.promise;
  socket.end();
  await aborted();
});

test('a client that follows events is gone when it ends its side', async () => {
  const socket = send('/events');
  socket.resume();
  await began.promise;
  socket.end();
  await aborted();
});

test('a connection without a request is closed when the client ends its side', async () => {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.resume().end();
  await once(socket, 'close');
});
