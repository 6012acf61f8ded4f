import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { getRequestListener } from '@hono/node-server';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { generateSecret, signedHeaders, signingKey } from '../packages/kit/src/contrib/webhooks/signing/signature.ts';
import { codeBlocks, root } from './docs/pages.ts';

// The handlers of the guide, run as they are printed there.
const folder = join(root, 'node_modules', '.cache', 'receiving-guide');
const blocks = codeBlocks('docs/guide/webhooks-receiving.md').filter((block) => block.language === 'ts');
const secret = generateSecret();
const cleanups: (() => unknown)[] = [];

beforeAll(() => {
  mkdirSync(folder, { recursive: true });
  vi.stubEnv('WEBHOOK_SECRET', secret);
});
afterAll(async () => {
  for (const cleanup of cleanups) await cleanup();
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

async function load<T>(mark: string): Promise<T> {
  const block = blocks.find(({ text }) => text.includes(mark));
  if (block === undefined) throw new Error(`the guide has no block with ${mark}`);
  const file = join(folder, `line-${block.line}.ts`);
  writeFileSync(file, block.text);
  return (await import(file)) as T;
}

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => new Promise((resolve) => server.close(resolve)));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`;
}

type Send = (headers: Record<string, string>, body: string) => Promise<number>;
const over =
  (url: string): Send =>
  async (headers, body) =>
    (await fetch(url, { method: 'POST', headers, body })).status;
type FetchHandler = (request: Request) => Promise<Response>;
const inProcess =
  (handle: FetchHandler): Send =>
  async (headers, body) =>
    (await handle(new Request('http://receiver.example/webhooks', { method: 'POST', headers, body }))).status;

const receivers: [string, () => Promise<Send>][] = [
  ['Express', async () => over(await serve((await load<{ app: RequestListener }>("from 'express'")).app))],
  [
    'Fastify',
    async () => {
      const { app } = await load<{ app: { ready(): PromiseLike<unknown>; routing: RequestListener; close(): Promise<void> } }>(
        "from 'fastify'",
      );
      await app.ready();
      cleanups.push(() => app.close());
      return over(await serve((request, response) => app.routing(request, response)));
    },
  ],
  [
    'Hono',
    async () => {
      const { app } = await load<{ app: { fetch: FetchHandler } }>("from 'hono'");
      const listener = getRequestListener(app.fetch);
      return over(await serve((request, response) => void listener(request, response)));
    },
  ],
  ['Next', async () => inProcess((await load<{ POST: FetchHandler }>('export async function POST')).POST)],
  [
    'Edge',
    async () => {
      const { default: worker } = await load<{ default: { fetch(request: Request, env: object): Promise<Response> } }>('verify-web');
      return inProcess((request) => worker.fetch(request, { WEBHOOK_SECRET: secret }));
    },
  ],
];

describe.each(receivers)('the %s handler of the guide', (_name, start) => {
  // Spacing and escapes that no serialiser would reproduce: only the raw body verifies.
  const body = '{ "type": "order.paid",\n  "timestamp": "2026-01-02T03:04:05.000Z", "data": { "name": "Zo\\u00eb", "n": 1.0 } }';
  const headers = (key = secret, text = body, timestamp = Math.floor(Date.now() / 1000)): Record<string, string> => ({
    'content-type': 'application/json',
    ...signedHeaders([signingKey(key)], { id: 'msg_1', timestamp, body: text }),
  });

  let send: Send;
  beforeAll(async () => {
    send = await start();
  });

  test('answers 204 to a genuine message and 401 to every other', async () => {
    expect(await send(headers(), body)).toBe(204);
    expect(await send(headers(), `${body} `)).toBe(401);
    expect(await send(headers(), JSON.stringify(JSON.parse(body)))).toBe(401);
    expect(await send(headers(generateSecret()), body)).toBe(401);
    expect(await send(headers(secret, body, Math.floor(Date.now() / 1000) - 301), body)).toBe(401);
    expect(await send({ 'content-type': 'application/json' }, body)).toBe(401);
  });

  test('takes the largest payload a sender sends by default', async () => {
    const large = JSON.stringify({ type: 'a.b', timestamp: '2026-01-02T03:04:05.000Z', data: { text: 'x'.repeat(256 * 1024) } });
    expect(await send(headers(secret, large), large)).toBe(204);
  });
});

test('the deduplication of the guide runs work once per id, and again when the work failed', async () => {
  const block = blocks.find(({ text }) => text.includes('node:sqlite'));
  writeFileSync(join(folder, 'once.ts'), (block?.text ?? '').replace("'receiver.db'", "':memory:'"));
  const { once } = (await import(join(folder, 'once.ts'))) as { once: (id: string, work: () => void) => void };
  let runs = 0;
  const work = (): void => void (runs += 1);
  once('msg_1', work);
  once('msg_1', work);
  expect(runs).toBe(1);
  expect(() =>
    once('msg_2', () => {
      throw new Error('work failed');
    }),
  ).toThrow('work failed');
  once('msg_2', work);
  expect(runs).toBe(2);
});
