import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { Controller } from '../../http/compile/controller.ts';
import { route } from '../../http/declare/route.ts';
import { allowAny } from '../../permissions/built-ins.ts';
import { testApp } from '../../testing/test-app.ts';
import { clientPlan } from './client-plan.ts';
import { typescriptClient } from './typescript-client.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- the generated client is not known to the compiler
type Generated = any;

const Thing = z.strictObject({ title: z.string() });

class ThingController extends Controller {
  get = route.get('/:id', { permission: allowAny, response: Thing }, () => ({ title: 'a' }));
  create = route.post('/', { permission: allowAny, body: Thing, response: Thing }, ({ body }) => body);
  numbers = route.stream('/numbers', { permission: allowAny, response: z.int() }, async function* () {
    yield { id: '1', data: 1 };
  });
}

const folder = mkdtempSync(join(tmpdir(), 'kit-ts-calls-'));
let api: Generated;

beforeAll(async () => {
  await using kit = await testApp({ mount: { '/v1': { '/things': ThingController } } });
  const file = join(folder, 'api.ts');
  writeFileSync(file, typescriptClient(clientPlan(kit.app.routes, { title: 'Things', version: '1' })));
  api = await import(file);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function server(answer: (request: IncomingMessage, response: ServerResponse, attempt: number) => void): Promise<string> {
  let attempts = 0;
  const http = createServer((request, response) => {
    request.resume();
    attempts += 1;
    answer(request, response, attempts);
  });
  await new Promise<void>((listening) => http.listen(0, '127.0.0.1', listening));
  onTestFinished(() => {
    http.close();
    http.closeAllConnections();
  });
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
}

const busyTwice = () =>
  server((_request, response, attempt) => {
    if (attempt < 3) response.writeHead(503, { 'retry-after': '0' }).end('{"code":"unavailable"}');
    else response.writeHead(200, { 'x-request-id': 'r-3', etag: '"7"' }).end('{"title":"a"}');
  });

test('the deadline ends a call whose response drips, although every attempt is within its own time limit', async () => {
  const drips = await server((_request, response) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write(' '), 5);
    response.on('close', () => clearInterval(timer));
  });
  const client = api.createClient({ baseUrl: drips, timeoutMs: 0x7fffffff, deadlineMs: 60 });
  await expect(client.thing.get({ id: 'a' })).rejects.toMatchObject({ name: 'TimeoutError', attempts: 1, mayHaveHappened: false });
  const write = client.thing.create({ body: { title: 'a' } });
  await expect(write).rejects.toMatchObject({ name: 'TimeoutError', mayHaveHappened: true });
});

test('a pause that would outlast the deadline is not begun: the caller gets the error of the last attempt', async () => {
  const busy = await server((_request, response) => response.writeHead(503, { 'retry-after': '50' }).end('{"code":"unavailable"}'));
  const call = api.createClient({ baseUrl: busy }).thing.get({ id: 'a' }, { deadlineMs: 20_000 });
  await expect(call).rejects.toMatchObject({ code: 'unavailable', attempts: 1 });
});

test('the deadline of the connection does not end streams; one that is given with the call does', async () => {
  const opened: (() => void)[] = [];
  const open = await server((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('id: 1\ndata: 1\n\n');
    opened.push(() => response.end('id: 2\ndata: 2\n\n'));
  });
  const client = api.createClient({ baseUrl: open, deadlineMs: 20 });
  const numbers = client.thing.numbers();
  expect((await numbers.next()).value.data).toBe(1);
  await new Promise((resolve) => setTimeout(resolve, 60));
  opened[0]!();
  expect((await numbers.next()).value.data).toBe(2);
  const limited = client.thing.numbers({ deadlineMs: 2000 });
  expect((await limited.next()).value.data).toBe(1);
  await expect(limited.next()).rejects.toMatchObject({ name: 'TimeoutError' });
});

test('hooks see every attempt, its response and its retry, and may add headers', async () => {
  const seen: string[] = [];
  const traces: unknown[] = [];
  const busy = await server((request, response, attempt) => {
    traces.push(request.headers['x-trace']);
    if (attempt < 3) response.writeHead(503, { 'retry-after': '0' }).end('{"code":"unavailable"}');
    else response.end('{"title":"a"}');
  });
  const client = api.createClient({
    baseUrl: busy,
    onRequest: ({ method, attempt, headers }: Generated) => {
      headers.set('x-trace', `t${attempt}`);
      seen.push(`${method} ${attempt}`);
    },
    onResponse: ({ status, durationMs }: Generated, { attempt }: Generated) => seen.push(`${status} ${attempt} ${durationMs >= 0}`),
    onRetry: ({ code }: Generated, waitMs: number) => seen.push(`${code} ${waitMs}`),
  });
  expect(await client.thing.get({ id: 'a' })).toEqual({ title: 'a' });
  expect(seen).toEqual(['GET 1', '503 1 true', 'unavailable 0', 'GET 2', '503 2 true', 'unavailable 0', 'GET 3', '200 3 true']);
  expect(traces).toEqual(['t1', 't2', 't3']);
});

test('an error that a hook throws is the error of the call, as it is, and nothing is repeated', async () => {
  const url = await busyTwice();
  const wrong = new Error('no trace');
  const refuse = () => {
    throw wrong;
  };
  for (const hook of ['onRequest', 'onResponse', 'onRetry'])
    await expect(api.createClient({ baseUrl: url, [hook]: refuse }).thing.get({ id: 'a' })).rejects.toBe(wrong);
});

test('withResponse() has the status and headers beside the data, and its failure alone is to be handled', async () => {
  const url = await busyTwice();
  const { data, response } = await api.createClient({ baseUrl: url }).thing.get({ id: 'a' }).withResponse();
  expect([data, response.status, response.headers.get('x-request-id')]).toEqual([{ title: 'a' }, 200, 'r-3']);
  expect(api.etagOf(data)).toBe('"7"');
  const failed = api.createClient({ baseUrl: 'http://127.0.0.1:1', retries: 0 }).thing.get({ id: 'a' });
  await expect(failed.withResponse()).rejects.toMatchObject({ name: 'ConnectionFailed' });
});

test('each attempt can be printed as a curl command without credentials, with what became of it', async () => {
  const url = await busyTwice();
  const lines: string[] = [];
  const client = api.createClient({
    baseUrl: url,
    apiKey: 'kit_secret',
    bearer: () => 'other-secret',
    headers: { cookie: 'session=third-secret' },
    ...api.printCurl((line: string) => lines.push(line)),
  });
  await client.thing.get({ id: 'a' });
  expect(lines.join('\n')).not.toMatch(/secret/);
  expect(lines).toHaveLength(8);
  expect(lines[0]).toMatch(/^curl -X GET 'http.*\/v1\/things\/a' .*"authorization: Bearer \$AUTHORIZATION"/);
  expect(lines[1]).toMatch(/^# 503 in \d+ ms$/);
  expect(lines[2]).toBe('# Problem: The request failed with status 503. Again in 0 ms.');
  expect(lines[7]).toMatch(/^# 200 in \d+ ms$/);
});

test.skipIf(spawnSync('curl', ['--version']).status !== 0)('what is printed is the same request again, in a shell', async () => {
  const asked: unknown[] = [];
  const url = await server((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      asked.push([request.headers['x-api-key'], Buffer.concat(chunks).toString()]);
      response.end('{"title":"a"}');
    });
  });
  const lines: string[] = [];
  const client = api.createClient({ baseUrl: url, apiKey: 'mine', ...api.printCurl((line: string) => lines.push(line)) });
  await client.thing.create({ body: { title: `it's $HOME "here"` } });
  // Spawned, because the server answers in this process.
  const shell = spawn('sh', ['-c', lines[0]!], { env: { ...process.env, X_API_KEY: 'mine' }, stdio: 'ignore' });
  expect(await new Promise((resolve) => shell.on('close', resolve))).toBe(0);
  expect(asked[1]).toEqual(asked[0]);
});
