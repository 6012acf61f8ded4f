import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect as dial, createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { freePort } from '../../../../../test/provision/free-port.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { Controller } from '../../http/compile/controller.ts';
import { filePart, multipart } from '../../http/input/multipart.ts';
import { raw } from '../../http/declare/raw.ts';
import { route } from '../../http/declare/route.ts';
import { responseVersions } from '../../middleware/response-versions.ts';
import { allowAny } from '../../permissions/built-ins.ts';
import { testApp, type TestApp } from '../../testing/test-app.ts';
import { clientPlan } from './client-plan.ts';
import { typescriptClient } from './typescript-client.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- the generated client is not known to the compiler
type Generated = any;

const Received = z.strictObject({ bytes: z.int(), title: z.string() });
const Event = z.strictObject({ at: z.iso.datetime(), ended: z.iso.datetime().nullable(), get parts() { return z.array(Event); } }).meta({ id: 'Event' }); // prettier-ignore
let stops = 0;

class ThingController extends Controller {
  numbers = route.stream(
    '/numbers',
    { permission: allowAny, response: z.strictObject({ number: z.int() }) },
    async function* ({ request, signal }) {
      for (let number = Number(request.headers['last-event-id'] ?? 0) + 1; number <= 30; number += 1) {
        yield { id: String(number), data: { number } };
        await wait(2, undefined, { signal });
      }
    },
  );

  /** Stops like a server that is being replaced, twice. */
  restarted = route.stream(
    '/restarted',
    { permission: allowAny, response: z.strictObject({ number: z.int() }) },
    async function* ({ request }) {
      const number = Number(request.headers['last-event-id'] ?? 0) + 1;
      yield { id: String(number), data: { number } };
      if (number < 3) throw coreErrors.unavailable();
    },
  );

  unnumbered = route.stream('/unnumbered', { permission: allowAny, response: z.strictObject({ number: z.int() }) }, async function* () {
    stops += 1;
    yield { data: { number: 1 } };
    throw coreErrors.unavailable();
  });

  dated = route.post(
    '/dated',
    {
      permission: allowAny,
      query: z.strictObject({ after: z.iso.datetime() }),
      body: Event,
      response: z.strictObject({
        event: Event,
        byName: z.record(z.string(), Event),
        either: z.union([z.strictObject({ at: z.iso.datetime() }), z.strictObject({ text: z.string() })]),
        after: z.string(),
        list: z.array(z.iso.datetime()),
        entry: z.tuple([z.string(), z.iso.datetime()]).rest(Event),
      }),
    },
    ({ body, query }) => ({
      event: body,
      byName: { a: body },
      either: { at: body.at },
      after: query.after,
      list: [body.at],
      entry: [body.at, body.at, body] as [string, string, typeof body],
    }),
  );

  form = route.post(
    '/form',
    {
      permission: allowAny,
      body: multipart({ file: filePart({ bytesMax: 4_000_000, mediaTypes: ['text/plain'] }), title: z.string() }, { bytesMax: 5_000_000 }),
      response: Received,
    },
    ({ body }) => ({ bytes: body.file.bytes.length, title: body.title }),
  );

  /** Each call has an effect, and no event has an id. */
  started = route.stream(
    '/started',
    { permission: allowAny, throttled: false, method: 'POST', response: z.strictObject({ number: z.int() }) },
    async function* () {
      yield { data: { number: 1 } };
    },
  );

  /** Finite, with ids as far as it has them. */
  finite = route.stream('/finite', { permission: allowAny, ends: true, response: z.strictObject({ number: z.int() }) }, async function* () {
    yield { id: '1', data: { number: 1 } };
    yield { id: '2', event: 'end', data: { number: 2 } };
    yield { id: '3', data: { number: 3 } };
  });
  bare = route.stream('/bare', { permission: allowAny, ends: true, response: z.strictObject({ number: z.int() }) }, async function* () {
    yield { data: { number: 1 } };
  });
  replace = route.put('/replace', { permission: allowAny, body: z.strictObject({ text: z.string() }), response: Received }, () => ({
    bytes: 0,
    title: '',
  }));
  perhaps = route.get('/perhaps', { permission: allowAny, response: Received.nullable() }, () => null);
  either = route.get('/either', { permission: allowAny, response: Received, responses: { 204: { description: 'Nothing.' } } }, () => ({
    bytes: 0,
    title: '',
  }));
  file = route.post('/file', { permission: allowAny, body: raw(['text/plain', 'multipart/form-data']), response: z.string() }, ({ body }) =>
    body.toString(),
  );

  query = route.query('/', { permission: allowAny, body: z.strictObject({ text: z.string() }), response: Received }, ({ body }) => ({
    bytes: 0,
    title: body.text,
  }));
  queryAlias = route.post(
    '/query',
    { permission: allowAny, throttled: false, body: z.strictObject({ text: z.string() }), response: Received },
    ({ body }) => ({ bytes: 0, title: body.text }),
  );

  letter = route.get(
    '/letter',
    { permission: allowAny, query: z.strictObject({ body: z.string().optional() }), response: z.string() },
    ({ query }) => query.body ?? 'none',
  );
  noon = route.get('/noon', { permission: allowAny, response: z.iso.datetime() }, () => '2026-01-31T12:00:00.000Z');
  noons = route.stream('/noons', { permission: allowAny, response: z.iso.datetime() }, async function* () {
    yield { id: '1', data: '2026-01-31T12:00:00.000Z' };
  });

  report = route.get('/report/:id', { permission: allowAny, response: raw('text/plain') }, ({ params }) => params.id);
  versioned = route.get('/versioned', { permission: allowAny, response: z.strictObject({ title: z.string() }) }, () => ({ title: 'new' }));

  content = route.put(
    '/content',
    { permission: allowAny, body: raw(['text/plain'], { bytesMax: 4_000_000 }), response: Received },
    ({ body }) => ({
      bytes: body.length,
      title: 'content',
    }),
  );
}

const folder = mkdtempSync(join(tmpdir(), 'kit-ts-client-'));
let kit: TestApp;
let url: string;
let api: Generated;

beforeAll(async () => {
  kit = await testApp({
    mount: { '/v1': { '/things': ThingController } },
    middleware: [
      responseVersions({
        versions: [
          { version: '2' },
          { version: '1', changes: [{ appliesTo: ({ field }) => field === 'versioned', transform: ({ title }) => ({ name: title }) }] },
        ],
        default: '1',
      }),
    ],
  });
  url = await kit.listen();
  const file = join(folder, 'api.ts');
  writeFileSync(file, typescriptClient(clientPlan(kit.app.routes, { title: 'Things', version: '1' })));
  api = await import(file);
});
afterAll(async () => {
  await kit.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Passes bytes on, and cuts the first connections in the middle of their response. */
async function cuttingProxy(cuts: number): Promise<string> {
  const { port } = new URL(url);
  let left = cuts;
  const server = createServer((incoming: Socket) => {
    const isCut = (left -= 1) >= 0;
    let passed = 0;
    const outgoing = dial(Number(port), '127.0.0.1');
    for (const socket of [incoming, outgoing]) socket.on('error', () => undefined);
    incoming.on('data', (chunk) => outgoing.write(chunk));
    outgoing.on('data', (chunk) => {
      passed += chunk.length;
      if (isCut && passed > 700) incoming.resetAndDestroy();
      else incoming.write(chunk);
    });
    outgoing.on('close', () => incoming.destroy());
    incoming.on('close', () => outgoing.destroy());
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A server of its own kind, and the requests that it got. */
async function otherServer(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<{
  readonly url: string;
  readonly requests: IncomingMessage[];
}> {
  const requests: IncomingMessage[] = [];
  const server = createHttpServer((request, response) => {
    requests.push(request);
    answer(request, response);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

async function eventsOf(events: AsyncIterable<{ readonly data: unknown }>): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const { data } of events) found.push(data);
  return found;
}

test('a redirect does not take the credential to another host', async () => {
  const elsewhere = await otherServer((_request, response) => response.end('{"title":"elsewhere"}'));
  const redirecting = await otherServer((_request, response) =>
    response.writeHead(307, { location: elsewhere.url.replace('127.0.0.1', 'localhost') }).end(),
  );
  const client = api.createClient({ baseUrl: redirecting.url, apiKey: 'key' });
  for (const call of [client.thing.versioned, () => client.thing.content({ body: 'a' }), () => eventsOf(client.thing.numbers())])
    await expect(call()).rejects.toMatchObject({ status: 307, detail: 'The server redirects the request. Redirects are not followed.' });
  expect([elsewhere.requests.length, redirecting.requests.length]).toEqual([0, 3]);
});

test('a pause that cannot be read is the usual pause', async () => {
  const busy = await otherServer((_request, response) => response.writeHead(503, { 'retry-after': 'soon' }).end('{}'));
  const begin = performance.now();
  await expect(api.createClient({ baseUrl: busy.url, retries: 1 }).thing.versioned()).rejects.toMatchObject({ retryAfterMs: undefined });
  expect(busy.requests).toHaveLength(2);
  expect(performance.now() - begin).toBeGreaterThan(99);
});

test('a read that the database stopped after its deadline is not repeated: it would take as long again', async () => {
  const slow = await otherServer((_request, response) => response.writeHead(503).end('{"code":"statement_timeout","detail":"Too long."}'));
  await expect(api.createClient({ baseUrl: slow.url }).thing.versioned()).rejects.toMatchObject({ code: 'statement_timeout' });
  expect(slow.requests).toHaveLength(1);
});

test('a query by its POST alias is a read: it is repeated', async () => {
  const busy = await otherServer((_request, response) => response.writeHead(503, { 'retry-after': '0' }).end('{}'));
  await expect(api.createClient({ baseUrl: busy.url }).thing.query({ body: { text: 'a' } })).rejects.toMatchObject({ status: 503 });
  expect(busy.requests.map(({ method, url: path }) => `${method} ${path}`)).toEqual(Array(3).fill('POST /v1/things/query'));
});

test('a stream by POST that ends before its first event is not asked for again: it may have had an effect', async () => {
  const cutting = await otherServer((request) => request.socket.destroy());
  await expect(eventsOf(api.createClient({ baseUrl: cutting.url }).thing.started())).rejects.toThrow('fetch failed');
  expect(cutting.requests).toHaveLength(1);
});

test('a server that never answers a stream is given up after the time limit', async () => {
  const silent = await otherServer(() => undefined);
  const client = api.createClient({ baseUrl: silent.url, timeoutMs: 20, retries: 0 });
  await expect(eventsOf(client.thing.numbers())).rejects.toThrow('The request timed out.');
});

test('a page of a proxy instead of a result or a stream is a problem', async () => {
  const proxy = await otherServer((_request, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'));
  const client = api.createClient({ baseUrl: proxy.url });
  await expect(eventsOf(client.thing.numbers())).rejects.toThrow('The response is not an event stream.');
  const problem = { name: 'Problem', status: 200, code: 'http_200', detail: 'The response is not JSON.', isRetryable: true, attempts: 3 };
  await expect(client.thing.content({ body: 'four' })).rejects.toMatchObject(problem);
});

test('a body that is a stream is sent once', async () => {
  const stream = () => new Blob(['four']).stream();
  expect(await api.createClient({ baseUrl: url }).thing.content({ body: stream() })).toEqual({ bytes: 4, title: 'content' });
  const busy = await otherServer((request, response) => {
    request.resume().on('end', () => response.writeHead(503, { 'retry-after': '0' }).end('{}'));
  });
  await expect(api.createClient({ baseUrl: busy.url }).thing.content({ body: stream() })).rejects.toMatchObject({ status: 503 });
  expect(busy.requests).toHaveLength(1);
});

test('no time limit, and a query parameter that is called body', async () => {
  const client = api.createClient({ baseUrl: url, timeoutMs: Infinity });
  expect([await client.thing.letter(), await client.thing.letter({ body: 'a' })]).toEqual(['none', 'a']);
});

test('a stream that is cut goes on after the last event: every event comes once, in order', async () => {
  const client = api.createClient({ baseUrl: await cuttingProxy(3), retries: 3 });
  const numbers: number[] = [];
  for await (const { data } of client.thing.numbers()) numbers.push(data.number);
  expect(numbers).toEqual(Array.from({ length: 30 }, (_, index) => index + 1));
});

test('a stream of a server that stops goes on at the next one; without ids its end is an error', async () => {
  const client = api.createClient({ baseUrl: url });
  const numbers: number[] = [];
  for await (const { data } of client.thing.restarted()) numbers.push(data.number);
  expect(numbers).toEqual([1, 2, 3]);
  const failing = async () => {
    for await (const { data } of client.thing.unnumbered()) numbers.push(data.number);
  };
  await expect(failing()).rejects.toMatchObject({ code: 'unavailable' });
  expect([stops, numbers]).toEqual([1, [1, 2, 3, 1]]);
});

test('a response that is cut is an attempt that failed; one that is read by the caller may take its time', async () => {
  const calls: RequestInit[] = [];
  const cut = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode('{"bytes":'));
      controller.error(new TypeError('terminated'));
    },
  });
  const answers = [new Response(cut), new Response('{"bytes":1,"title":"a"}'), new Response('a file')];
  // Answers at once: the time limit cannot be over before the response begins.
  const fetch = (_url: string, init: RequestInit) => {
    calls.push(init);
    return Promise.resolve(answers[calls.length - 1]!);
  };
  const client = api.createClient({ baseUrl: 'http://127.0.0.1:1', fetch, timeoutMs: 60_000 });
  expect(await client.thing.content({ body: 'a' })).toEqual({ bytes: 1, title: 'a' });
  const response = await client.thing.report({ id: 'a' }, { timeoutMs: 1 });
  await wait(50);
  expect([calls.length, calls[2]!.signal!.aborted, await response.text()]).toEqual([3, false, 'a file']);
});

test('a call that was given up does not wait for the next attempt', async () => {
  const giveUp = new AbortController();
  const fetch = () => {
    giveUp.abort(new Error('given up'));
    return Promise.resolve(new Response('{}', { status: 503, headers: { 'retry-after': '50' } }));
  };
  const timers = vi.spyOn(globalThis, 'setTimeout');
  onTestFinished(() => timers.mockRestore());
  await expect(api.createClient({ fetch }).thing.report({ id: 'a' }, { signal: giveUp.signal })).rejects.toThrow('given up');
  expect(timers.mock.calls.map(([, ms]) => ms)).not.toContain(50_000);
});

test('a part of a path cannot become another path', async () => {
  const client = api.createClient({ baseUrl: url });
  for (const id of ['', '.', '..', undefined, null])
    await expect(client.thing.report({ id })).rejects.toThrow('which cannot be part of a URL');
  expect(await (await client.thing.report({ id: 'a/../b?c#d%2e' })).text()).toBe('a/../b?c#d%2e');
});

test('types describe the newest response version, so the client asks for it', async () => {
  expect(await api.createClient({ baseUrl: url }).thing.versioned()).toEqual({ title: 'new' });
  expect(await api.createClient({ baseUrl: url, headers: { 'Accept-Version': '1' } }).thing.versioned()).toEqual({ name: 'new' });
});

test('forms and raw bodies report their progress up to the last byte', async () => {
  const client = api.createClient({ baseUrl: url });
  const file = new Blob([new Uint8Array(1_500_000).fill(97)], { type: 'text/plain' });
  for (const [send, body] of [
    [client.thing.form, { file, title: 'a title' }],
    [client.thing.content, file],
  ] as const) {
    const seen: { sent: number; total: number }[] = [];
    const received = await send({ body }, { onProgress: (progress: { sent: number; total: number }) => seen.push(progress) });
    expect(received.bytes).toBe(1_500_000);
    expect(seen.length).toBeGreaterThan(1);
    expect(seen.at(-1)).toEqual({ sent: seen[0]!.total, total: seen[0]!.total });
    expect(seen.map(({ sent }) => sent)).toEqual(seen.map(({ sent }) => sent).toSorted((a, b) => a - b));
  }
});

test('with dates, points in time are Dates in arguments and results, at any depth; other texts stay texts', async () => {
  const file = join(folder, 'dated.ts');
  const text = typescriptClient(clientPlan(kit.app.routes, { title: 'Things', version: '1' }), { dates: true });
  writeFileSync(file, text);
  expect(text).toContain('readonly at: Date;');
  expect(text).toContain('readonly ended: Date | null;');
  const dated: Generated = await import(file);
  const at = new Date('2026-01-31T12:00:00.000Z');
  const body = { at, ended: null, parts: [{ at, ended: at, parts: [] }] };
  const result = await dated.createClient({ baseUrl: url }).thing.dated({ after: at, body });
  expect(result).toEqual({
    event: body,
    byName: { a: body },
    either: { at },
    after: at.toISOString(),
    list: [at],
    entry: [at.toISOString(), at, body],
  });
  expect(await dated.createClient({ baseUrl: url }).thing.noon()).toEqual(at);
  expect(await eventsOf(dated.createClient({ baseUrl: url }).thing.noons())).toEqual([at]);
});

/** What a server sends in the form of an event stream; the connection then ends as if all of it were there. */
const streaming = (...texts: readonly string[]) => {
  let count = 0;
  return otherServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(texts[Math.min(count, texts.length - 1)]);
    count += 1;
  });
};

test('a finite stream is complete with its event `end` only; one that says nothing of an end ends with its connection', async () => {
  const client = api.createClient({ baseUrl: url });
  expect([await eventsOf(client.thing.finite()), await eventsOf(client.thing.bare())]).toEqual([
    [{ number: 1 }, { number: 2 }],
    [{ number: 1 }],
  ]);
  const [first, second, end] = ['id: 1\ndata: {"number":1}\n\n', 'id: 2\ndata: {"number":2}\n\n', 'event: end\ndata: null\n\n'];
  const resumed = await streaming(first, second, end);
  expect(await eventsOf(api.createClient({ baseUrl: resumed.url }).thing.finite())).toEqual([{ number: 1 }, { number: 2 }]);
  expect(resumed.requests.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, '1', '2']);

  const lost = await streaming('data: {"number":1}\n\n');
  const found: unknown[] = [];
  const follow = async (method: 'bare' | 'numbers') => {
    for await (const { data } of api.createClient({ baseUrl: lost.url }).thing[method]()) found.push(data);
  };
  await expect(follow('bare')).rejects.toMatchObject({ name: 'ConnectionFailed', isRetryable: true });
  await follow('numbers');
  expect([found, lost.requests.length]).toEqual([[{ number: 1 }, { number: 1 }], 2]);
});

test('a finite stream that was only kept open is a break, and one without a byte was denied: it is not asked for again', async () => {
  const kept = await streaming(':\n\n');
  await expect(eventsOf(api.createClient({ baseUrl: kept.url, retries: 1 }).thing.finite())).rejects.toThrow('without the event `end`');
  const denied = await streaming('');
  expect(await eventsOf(api.createClient({ baseUrl: denied.url }).thing.finite())).toEqual([]);
  expect([kept.requests.length, denied.requests.length]).toEqual([2, 1]);
});

test.for([
  ['no body', '', 'The response has no body.'],
  ['null', 'null', 'The response is of type null instead of object.'],
  ['a list', '[]', 'The response is of type array instead of object.'],
])('a success with %s, where the type says object, is a problem and is asked for again where that is safe', async ([, body, detail]) => {
  let count = 0;
  const proxy = await otherServer((_request, response) => response.end((count += 1) === 2 ? '{"title":"whole"}' : body));
  const client = api.createClient({ baseUrl: proxy.url, retries: 1 });
  expect(await client.thing.versioned()).toEqual({ title: 'whole' });
  const failed = client.thing.form({ body: { title: 'a' } });
  await expect(failed).rejects.toBeInstanceOf(api.Problem);
  await expect(failed).rejects.toMatchObject({ detail, attempts: 1, mayHaveHappened: true });
  expect(proxy.requests).toHaveLength(3);
});

test('null and an empty body are results where the document has them', async () => {
  const other = await otherServer(({ url: path }, response) =>
    path === '/v1/things/perhaps' ? response.end('null') : response.writeHead(204).end(),
  );
  const client = api.createClient({ baseUrl: other.url, retries: 0 });
  expect([await client.thing.perhaps(), await client.thing.either()]).toEqual([null, undefined]);
  await expect(client.thing.perhaps()).resolves.toBe(null);
});

test('a write whose response was lost says so when a later attempt fails', async () => {
  const { requests, url: lossy } = await otherServer((request, response) => {
    if (requests.length === 1) request.socket.destroy();
    else response.writeHead(412, { 'content-type': 'application/json' }).end('{"code":"precondition_failed","detail":"Changed."}');
  });
  const client = api.createClient({ baseUrl: lossy });
  const replaced = client.thing.replace({ body: { text: 'a' } }, { ifMatch: '"1"' });
  await expect(replaced).rejects.toMatchObject({ code: 'precondition_failed', detail: 'Changed.', mayHaveHappened: true, attempts: 2 });
  await expect(replaced).rejects.toThrow('Changed. An earlier attempt got no response, so the change may have been made.');
  await expect(client.thing.replace({ body: { text: 'a' } })).rejects.toMatchObject({ mayHaveHappened: false, message: 'Changed.' });
  const nobody = api.createClient({ baseUrl: `http://127.0.0.1:${await freePort()}`, retries: 0 });
  await expect(nobody.thing.replace({ body: { text: 'a' } })).rejects.toMatchObject({ name: 'ConnectionFailed', mayHaveHappened: false });
});

test('a statement that took too long is not asked for again', async () => {
  const slow = await otherServer((_request, response) =>
    response.writeHead(503, { 'retry-after': '0' }).end('{"code":"statement_timeout"}'),
  );
  await expect(api.createClient({ baseUrl: slow.url }).thing.versioned()).rejects.toMatchObject({
    code: 'statement_timeout',
    isRetryable: false,
  });
  expect(slow.requests).toHaveLength(1);
});

test('a form as a raw body has the boundary of that form', async () => {
  const body = new FormData();
  body.append('file', new Blob(['a,b'], { type: 'text/csv' }), 'a.csv');
  const sent = await otherServer((request, response) => {
    request.resume().on('end', () => response.end('"read"'));
  });
  expect(await api.createClient({ baseUrl: sent.url }).thing.file({ body, contentType: 'multipart/form-data' })).toBe('read');
  expect(sent.requests[0]?.headers['content-type']).toMatch(/^multipart\/form-data; boundary=./);
});

test('each attempt asks for the credential; after a 401 it is refreshed once, also where a write is not repeated otherwise', async () => {
  const tokens: unknown[] = [];
  const server = await otherServer((request, response) => {
    request.resume();
    tokens.push(request.headers.authorization);
    if (request.headers.authorization !== 'Bearer 2') response.writeHead(401).end('{"code":"not_authenticated"}');
    else response.end('{"bytes":0,"title":""}');
  });
  let current = 1;
  const refresh = () => void (current += 1);
  const client = api.createClient({ baseUrl: server.url, bearer: () => String(current), refresh });
  expect(await client.thing.form({ body: { title: 'a' } })).toEqual({ bytes: 0, title: '' });
  expect(tokens).toEqual(['Bearer 1', 'Bearer 2']);
  current = 2;
  await expect(client.thing.form({ body: { title: 'a' } })).resolves.toEqual({ bytes: 0, title: '' });
  current = 3;
  await expect(client.thing.form({ body: { title: 'a' } })).rejects.toMatchObject({ status: 401, attempts: 2 });
  const fixed = api.createClient({ baseUrl: server.url, bearer: 'old' });
  await expect(fixed.thing.versioned()).rejects.toMatchObject({ status: 401, attempts: 1 });
});

test('every error of a call has one base, and says how it ended', async () => {
  const silent = await otherServer(() => undefined);
  const client = api.createClient({ baseUrl: silent.url, timeoutMs: 20, retries: 1 });
  const late = client.thing.versioned();
  await expect(late).rejects.toMatchObject({ name: 'TimeoutError', attempts: 2, isRetryable: true, mayHaveHappened: false });
  await expect(late).rejects.toBeInstanceOf(api.ClientError);
  const reason = new Error('enough');
  const aborted = client.thing.versioned({ signal: AbortSignal.abort(reason) });
  await expect(aborted).rejects.toBeInstanceOf(api.CallAborted);
  await expect(aborted).rejects.toMatchObject({ name: 'AbortError', message: 'enough', cause: reason, isRetryable: false });
});
