import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { TicketController, ticketModule } from '../../../test/crud/live.ts';
import { createApp } from '../../app/assemble/create-app.ts';
import { generateClient } from './generate-client.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- the generated client is not known to the compiler
type Generated = any;

const folder = mkdtempSync(join(tmpdir(), 'kit-live-calls-'));
let api: Generated;

beforeAll(async () => {
  const { routes } = createApp({
    database: 'sqlite::memory:',
    tenant: () => 'north',
    modules: [ticketModule],
    mount: { '/v1': { '/tickets': TicketController } },
  });
  const file = join(folder, 'api.ts');
  writeFileSync(file, generateClient(routes, { language: 'typescript', title: 'Tickets', version: '1' }));
  api = await import(file);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
afterEach(() => void vi.useRealTimers());

/** One connection, as the server sends it. */
class Connection {
  readonly headers: Headers;
  readonly response: Response;
  #body: ReadableStreamDefaultController<Uint8Array> | undefined;

  constructor(init: RequestInit) {
    this.headers = new Headers(init.headers);
    const body = new ReadableStream<Uint8Array>({ start: (controller) => void (this.#body = controller) });
    init.signal?.addEventListener('abort', () => this.#body?.error(init.signal?.reason));
    this.response = new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  }

  send(event: string, data: object = {}, id?: string): void {
    this.raw(`event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`);
  }

  raw(text: string): void {
    this.#body?.enqueue(new TextEncoder().encode(text));
  }

  end(): void {
    this.#body?.close();
  }
}

/** A client, and its connections one after the other. */
function connected(options: object = {}): {
  readonly live: AsyncGenerator<Generated>;
  readonly next: () => Promise<Connection>;
  readonly count: () => number;
} {
  const connections: Connection[] = [];
  const asked: ((connection: Connection) => void)[] = [];
  const fetch = (_url: string, init: RequestInit): Promise<Response> => {
    const connection = new Connection(init);
    const waiting = asked.shift();
    if (waiting === undefined) connections.push(connection);
    else waiting(connection);
    count += 1;
    return Promise.resolve(connection.response);
  };
  let count = 0;
  const live = api.createClient({ baseUrl: 'http://127.0.0.1', fetch, ...options }).ticket.live();
  const next = () => {
    const [ready] = connections.splice(0, 1);
    return ready === undefined ? new Promise<Connection>((resolve) => asked.push(resolve)) : Promise.resolve(ready);
  };
  return { live, next, count: () => count };
}

const row = (id: string, title: string) => ({ key: id, item: { id, title, version: 1 } });
const eventsOf = async (live: AsyncGenerator<Generated>): Promise<string[]> => {
  const found: string[] = [];
  for (;;) {
    const { value } = await live.next();
    found.push([value.event, value.item?.title ?? value.key].filter(Boolean).join(' '));
    if (value.event === 'ready') return found;
  }
};

test('of a batch that is cut nothing is given; the next connection begins behind the last whole one', async () => {
  const { live, next } = connected();
  const first = eventsOf(live);
  const one = await next();
  expect([one.headers.get('accept'), one.headers.get('last-event-id')]).toEqual(['text/event-stream', null]);
  one.send('upsert', row('1', 'a'));
  one.send('ready', {}, 'p1');
  expect(await first).toEqual(['upsert a', 'ready']);
  const second = eventsOf(live);
  one.send('remove', { key: '1' });
  one.send('upsert', row('2', 'half'));
  one.end();
  const two = await next();
  expect(two.headers.get('last-event-id')).toBe('p1');
  two.send('an event of a later release', {});
  two.send('upsert', row('2', 'whole'));
  two.send('ready', {}, 'p2');
  expect(await second).toEqual(['upsert whole', 'ready']);
  await live.return(undefined);
});

test('without a position the next connection is a new list: what the caller has is reset first', async () => {
  const { live, next } = connected();
  const first = eventsOf(live);
  const one = await next();
  one.send('upsert', row('1', 'a'));
  one.send('ready', {}, '');
  expect(await first).toEqual(['upsert a', 'ready']);
  const second = eventsOf(live);
  one.end();
  const two = await next();
  expect(two.headers.has('last-event-id')).toBe(false);
  two.send('ready', {}, 'p2');
  expect(await second).toEqual(['reset', 'ready']);
  await live.return(undefined);
});

test('a connection that is silent is opened again; comments are a sign of life, and a slow caller is no silence', async () => {
  vi.useFakeTimers();
  const { live, next, count } = connected();
  const first = eventsOf(live);
  const one = await next();
  one.send('upsert', row('1', 'a'));
  one.send('ready', {}, 'p1');
  expect(await first).toEqual(['upsert a', 'ready']);
  // Nobody waits.
  await vi.advanceTimersByTimeAsync(600_000);
  const second = eventsOf(live);
  for (let beat = 0; beat < 10; beat += 1) {
    await vi.advanceTimersByTimeAsync(30_000);
    one.raw(':\n\n');
  }
  await vi.advanceTimersByTimeAsync(30_000);
  expect(count()).toBe(1);
  await vi.advanceTimersByTimeAsync(60_000);
  const two = await next();
  expect(two.headers.get('last-event-id')).toBe('p1');
  two.send('ready', {}, 'p2');
  expect(await second).toEqual(['ready']);
  await live.return(undefined);
});

test('a credential that ran out is asked for again; one that was revoked ends the list, and so does a lost permission', async () => {
  let token = 'old';
  const { live, next } = connected({ bearer: () => token });
  const first = eventsOf(live);
  const one = await next();
  one.send('ready', {}, 'p1');
  await first;
  token = 'new';
  const second = eventsOf(live);
  one.send('error', { status: 401, code: 'invalid_token', detail: 'Expired.' });
  const two = await next();
  expect([one.headers.get('authorization'), two.headers.get('authorization')]).toEqual(['Bearer old', 'Bearer new']);
  two.send('ready', {}, 'p2');
  expect(await second).toEqual(['ready']);
  const third = eventsOf(live);
  two.send('error', { status: 503, code: 'unavailable', detail: 'The server stops.' });
  const three = await next();
  three.send('error', { status: 403, code: 'permission_denied', detail: 'No.' });
  await expect(third).rejects.toMatchObject({ name: 'Problem', status: 403, code: 'permission_denied' });
});

test('a server that asks for a pause of days ends the list with its error, and so does a pause beyond the deadline of the call', async () => {
  for (const [retryAfter, deadlineMs] of [
    ['432000', undefined],
    ['30', 20_000],
  ] as const) {
    let count = 0;
    const fetch = (): Promise<Response> => {
      count += 1;
      const headers = { 'content-type': 'text/event-stream' };
      if (count === 1) return Promise.resolve(new Response('event: ready\nid: p1\ndata: {}\n\n', { headers }));
      return Promise.resolve(Response.json({ code: 'request_quota_exceeded' }, { status: 429, headers: { 'retry-after': retryAfter } }));
    };
    const client = api.createClient({ baseUrl: 'http://127.0.0.1', fetch });
    const live = client.ticket.live({}, deadlineMs === undefined ? {} : { deadlineMs });
    expect(await eventsOf(live)).toEqual(['ready']);
    const begin = performance.now();
    await expect(eventsOf(live)).rejects.toMatchObject({
      name: 'Problem',
      code: 'request_quota_exceeded',
      retryAfterMs: Number(retryAfter) * 1000,
    });
    expect(performance.now() - begin).toBeLessThan(15_000);
    expect(count).toBe(2);
  }
});
