import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { Controller } from '../http/compile/controller.ts';
import { route } from '../http/declare/route.ts';
import { allowAny } from '../permissions/built-ins.ts';
import { createApp } from './assemble/create-app.ts';
import type { App } from './declare/module.ts';

let handled = 0;

class NoteController extends Controller {
  create = route.post('/', { permission: allowAny, body: z.object({ text: z.string() }) }, async () => void handled++);
}

let app: App;
let port: number;
beforeAll(async () => {
  app = createApp({ database: 'sqlite::memory:', mount: { '/v1': { '/notes': NoteController } }, settings: { logLevel: 'silent' } });
  port = Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port);
  expect(app.fastify.server.requestTimeout).toBe(60_000);
  // The deadline of a minute is shortened; how often the server looks stays as it is.
  app.fastify.server.requestTimeout = 200;
  app.fastify.server.headersTimeout = 200;
});
afterAll(() => app.close());

const HEAD = 'POST /v1/notes HTTP/1.1\r\nhost: localhost\r\n';

// Each waits for the server's next look, up to 5 s away.
test.concurrent.each([
  ['headers', `${HEAD}x-half`],
  ['a body', `${HEAD}content-type: application/json\r\ncontent-length: 100\r\n\r\n{"text":`],
])('a client that does not finish sending %s is answered 408 and let go', async (_what, start) => {
  const socket = connect(port, '127.0.0.1');
  socket.write(start);
  let answer = '';
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString()));
  const began = performance.now();
  await once(socket, 'close');
  expect(answer).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
  expect(JSON.parse(answer.split('\r\n\r\n')[1] ?? '')).toMatchObject({ status: 408, code: 'request_timeout' });
  expect(performance.now() - began).toBeLessThan(60_000);
  expect(handled).toBe(0);
});

test('a client that sends in time is served meanwhile', async () => {
  const answer = await fetch(`http://127.0.0.1:${port}/v1/notes`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"text":"x"}',
  });
  expect([answer.status, handled]).toEqual([204, 1]);
});
