import type { Transform } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { fastify as createFastify, type FastifyInstance } from 'fastify';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { RawConnection } from '../../test/raw-http.ts';
import { createApp } from '../app/assemble/create-app.ts';
import type { App } from '../app/declare/module.ts';
import { allowAny } from '../permissions/index.ts';
import { Controller } from './compile/controller.ts';
import { raw } from './declare/raw.ts';
import { route } from './declare/route.ts';

let received = 0;
let begun: Transform | undefined;
let gate: Promise<void> = Promise.resolve();

class FileController extends Controller {
  put = route.put(
    '/',
    { body: raw(['*/*'], { stream: true, bytesMax: 10_000_000 }), response: z.object({ length: z.int() }), permission: allowAny },
    async ({ body }) => {
      begun = body as Transform;
      await gate;
      let length = 0;
      for await (const chunk of body as AsyncIterable<Buffer>) {
        length += chunk.length;
        received = length;
      }
      return { length };
    },
  );
  json = route.post('/', { body: z.object({ text: z.string() }), permission: allowAny }, () => undefined);
}

let app: App;
let foreign: FastifyInstance | undefined;
// Sockets are real; the time by which clients are judged is the test's own, so that a slow machine changes nothing.
beforeEach(() => {
  [received, begun, gate, foreign] = [0, undefined, Promise.resolve(), undefined];
  app = createApp({ database: 'sqlite::memory:', mount: { '/v1': { '/files': FileController } }, log: { level: 'silent' } });
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
});
afterEach(async () => {
  vi.useRealTimers();
  await foreign?.close();
  await app.close();
});

const PUT = 'PUT /v1/files HTTP/1.1\r\nhost: x\r\ncontent-type: text/plain\r\n';
const isTrue = async (done: () => boolean): Promise<void> => {
  while (!done()) await delay(2);
};
const codeOf = ({ body }: { readonly body: string }): string => (JSON.parse(body) as { code: string }).code;

/** Sends a piece every so many seconds, as the server counts them. */
async function trickle(connection: RawConnection, bytes: number, everyMs: number, times: number): Promise<void> {
  for (let n = 1; n <= times; n += 1) {
    connection.send('x'.repeat(bytes));
    await isTrue(() => received === n * bytes || begun?.destroyed === true);
    vi.advanceTimersByTime(everyMs);
  }
}

test('a client that sends its body slower than the minimum gets 408', async () => {
  await using connection = await RawConnection.open(await app.listen({ port: 0 }));
  connection.send(`${PUT}content-length: 1000000\r\n\r\n`);
  await trickle(connection, 4_000, 1_500, 30);
  const answer = await connection.answer();
  expect([answer.status, codeOf(answer), answer.headers['connection']]).toEqual([408, 'request_timeout', 'close']);
  expect(answer.body).toContain('the client sent less than 4096 bytes per second over 30000 ms');
});

test('a client that stops sending gets 408, however fast it was before', async () => {
  await using connection = await RawConnection.open(await app.listen({ port: 0 }));
  connection.send(`${PUT}content-length: 1000000\r\n\r\n`);
  await trickle(connection, 500_000, 1, 1);
  vi.advanceTimersByTime(24_000);
  expect(begun?.destroyed).toBe(false);
  vi.advanceTimersByTime(9_000);
  const answer = await connection.answer();
  expect([answer.status, codeOf(answer)]).toEqual([408, 'request_timeout']);
  expect(answer.body).toContain('the client sent nothing for 30000 ms');
});

test('a client at the minimum is served, whatever time the whole body takes', async () => {
  await using connection = await RawConnection.open(await app.listen({ port: 0 }));
  connection.send(`${PUT}content-length: 5000000\r\n\r\n`);
  await trickle(connection, 200_000, 20_000, 25);
  expect(await connection.answer()).toMatchObject({ status: 200, body: '{"length":5000000}' });
});

test('time in which the handler does not read is not the client’s', async () => {
  const opened = Promise.withResolvers<void>();
  gate = opened.promise;
  await using connection = await RawConnection.open(await app.listen({ port: 0 }));
  connection.send(`${PUT}content-length: 4000000\r\n\r\n`, 'x'.repeat(4_000_000));
  await isTrue(() => begun?.writableNeedDrain === true);
  vi.advanceTimersByTime(600_000);
  opened.resolve();
  expect(await connection.answer()).toMatchObject({ status: 200, body: '{"length":4000000}' });
});

test('a slow JSON body in a Fastify server without a deadline gets 408 too; other requests are read as ever', async () => {
  foreign = createFastify();
  await foreign.register(app.plugin, { prefix: '/in' });
  const address = await foreign.listen({ port: 0 });
  const POST = 'POST /in/v1/files HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n';
  await using slow = await RawConnection.open(address);
  slow.send(`${POST}content-length: 30\r\n\r\n{"text":`);
  // Both the slow request and this one are read when the second is answered.
  const send = async (head: string, body: string) => {
    await using connection = await RawConnection.open(address);
    connection.send(`${head}content-length: ${body.length}\r\n\r\n${body}`);
    return (await connection.answer()).status;
  };
  expect(await send(POST, '{"text":"x"}')).toBe(204);
  expect(await send(POST, '{"text":')).toBe(400);
  expect(await send(POST, `{"text":"${'x'.repeat(1_048_576)}"}`)).toBe(413);
  expect(await send(POST.replace('/files', '/none'), '{"text":"x"}')).toBe(404);
  await isTrue(() => vi.getTimerCount() > 0);
  vi.advanceTimersByTime(33_000);
  const answer = await slow.answer();
  expect([answer.status, codeOf(answer)]).toEqual([408, 'request_timeout']);
});
