import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { z } from 'zod';
import { createPostgresDatabase, type DatabasePlace } from 'kit/testing';
import { scaled } from '../../../test/provision/scale.ts';
import { TcpProxy } from '../../../test/provision/tcp-proxy.ts';
import type { Authenticator } from '../src/auth/request/authenticator.ts';
import { audit } from '../src/contrib/audit/index.ts';
import { job, jobs, startJob } from '../src/contrib/jobs/index.ts';
import { diskStore, UploadController, uploads } from '../src/contrib/uploads/index.ts';
import { createEndpoint, webhooks } from '../src/contrib/webhooks/index.ts';
import { CrudController, resource } from '../src/crud/index.ts';
import { createTable, migration, model, openDatabase, t, type Database } from '../src/db/index.ts';
import { Controller, route } from '../src/http/index.ts';
import { isAuthenticated } from '../src/permissions/index.ts';
import { testApp, type TestApp } from '../src/testing/test-app.ts';
import { LOOPBACK } from './webhooks/loopback.ts';
import { startReceiver, type Receiver } from './webhooks/receiver.ts';

/** Places at which each operation is cut, in each way. The full test cuts at every chunk that travels between the app and the database. */
const CUTS = scaled(2, Infinity);
/** Enough for a machine that is ten times busier. No request and no connection may need it. */
const SOON = { timeout: 60_000, interval: 10 };
/** Also of a delivery whose claim was cut, which another claim takes over when its lease ends. */
const FOLLOWED = { timeout: 300_000, interval: 100 };
const LINES = 300;
/** The server has 200 connections for all tests. */
const ABANDONED_MAX = 50;

const OWNER = 'ann';
const byName: Authenticator = {
  name: 'name',
  securityScheme: {},
  authenticate: () => ({
    user: { id: OWNER, username: OWNER, email: null, is_active: true, is_staff: false, is_superuser: false },
    scheme: 'name',
    scopes: null,
  }),
};

const letterColumns = { id: t.uuidv7().pk(), owner_id: t.text(64).readOnly(), title: t.text(80), stamps: t.int().dbDefault(0) };
const letters = model('letters', letterColumns);
const lineColumns = { id: t.uuidv7().pk(), file: t.text(80), text: t.text(2000) };
const lines = model('lines', lineColumns);
const effectColumns = { id: t.uuidv7().pk(), title: t.text(80) };
const effects = model('effects', effectColumns);

class LetterController extends CrudController(resource(letters, { owner: 'owner_id', events: true }), {
  permission: isAuthenticated,
  filters: { title: ['eq'] },
}) {}
class LineController extends CrudController(resource(lines, { unscoped: true }), {
  permission: isAuthenticated,
  filters: { file: ['eq'] },
  export: ['csv'],
  import: { formats: ['csv'], rowsMax: 10_000 },
}) {}
const work = job('vanishing.work', {
  input: z.object({ title: z.string() }),
  retry: { attempts: 20, backoff: 'fixed', firstDelaySeconds: 1 },
  run: ({ input, commit }) =>
    commit(async (tx) => void (await tx.query('insert into effects (id, title) values (gen_random_uuid(), $1)', [input.title]))),
});
/** No second attempt: one that fails is lost. */
const once = job('vanishing.once', {
  input: z.object({ title: z.string() }),
  retry: { attempts: 1 },
  result: z.object({ title: z.string() }),
  run: ({ input }) => ({ title: input.title }),
});
class WorkController extends Controller {
  start = route.post(
    '/',
    { body: z.object({ title: z.string() }), permission: isAuthenticated, csrf: false, atomic: true, idempotent: true, status: 202 },
    async ({ tx, body }) => {
      await startJob(tx, work, body);
      await startJob(tx, once, body);
    },
  );
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

interface Operation {
  /** As a client does it that repeats what failed with the same key. Returns the answers that were no success. */
  perform(key: string): Promise<readonly string[]>;
  /** What follows from it has happened. */
  hasFollowed?(key: string): Promise<boolean>;
  /** What is there, for each key. */
  outcome(key: string): Promise<unknown>;
  readonly expected: (key: string) => unknown;
}

/** What a client may be told: the database is away, the outcome is not known, or its first request is still at work. */
const UNDERSTOOD = /^(503 (database_unavailable|commit_unknown)|409 request_in_progress|cut)$/;

let place: DatabasePlace;
let direct: Database;
let proxy: TcpProxy;
let db: Database;
let receiver: Receiver;
let kit: TestApp;
let address: string;
let folder: string;
let longestMs = 0;

beforeAll(async () => {
  place = await createPostgresDatabase(inject('postgresUrl'));
  direct = await openDatabase(place.url);
  proxy = await TcpProxy.start(serverPort());
  db = await openDatabase(proxy.through(place.url), { connectMsMax: 500, silenceMsMax: 250, waitMsMax: 30_000 });
  receiver = await startReceiver();
  folder = await mkdtemp(join(tmpdir(), 'kit-vanishing-'));
  kit = await testApp({
    database: db,
    authenticators: [byName],
    modules: [
      {
        name: 'letters',
        models: [letters, lines, effects],
        migrations: [
          migration('0001_initial', [
            createTable('letters', letterColumns),
            createTable('lines', lineColumns),
            createTable('effects', effectColumns),
          ]),
        ],
      },
      audit(),
      jobs({ jobs: [work, once], worker: true }),
      webhooks({ worker: true, urlPolicy: LOOPBACK, secretKeys: [`${Buffer.alloc(32, 7).toString('base64url')}=`] }),
      uploads({ store: diskStore({ folder }), urlKeys: ['k'.repeat(32)] }),
    ],
    mount: { '/v1': { '/letters': LetterController, '/lines': LineController, '/work': WorkController, '/files': UploadController } },
  });
  address = await kit.listen();
  await createEndpoint(db, { owner: OWNER, url: receiver.url('/hook'), events: ['*'] });
  const text = `select gen_random_uuid(), 'export', repeat('~', 1000) from generate_series(1, 2000)`;
  await direct.query(`insert into lines (id, file, text) ${text}`);
}, 600_000);
afterAll(async () => {
  await kit?.close();
  await db?.close();
  await receiver?.close();
  await proxy?.stop();
  await direct?.close();
  await place?.remove();
  await rm(folder, { recursive: true, force: true });
});

const serverPort = (): number => Number(new URL(place.url).port);

async function ask(method: string, path: string, { key, body, type = 'application/json', headers = {} }: Asked = {}): Promise<Answer> {
  const began = performance.now();
  try {
    const response = await fetch(`${address}${path}`, {
      method,
      headers: {
        ...(body === undefined ? {} : { 'content-type': type }),
        ...(key === undefined ? {} : { 'idempotency-key': key }),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
      signal: AbortSignal.timeout(SOON.timeout),
    });
    return { status: response.status, text: await response.text() };
  } catch (error) {
    // A file whose rest cannot be read is cut, not ended: the client sees that it is not whole.
    if (error instanceof TypeError) return { status: 0, text: '' };
    throw error;
  } finally {
    longestMs = Math.max(longestMs, performance.now() - began);
  }
}

interface Asked {
  readonly key?: string;
  readonly body?: string;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const isSuccess = ({ status }: Answer): boolean => status >= 200 && status < 300;
const wordOf = ({ status, text }: Answer): string =>
  status === 0 ? 'cut' : `${status} ${text.startsWith('{') ? String((JSON.parse(text) as { code?: unknown }).code) : text}`;

/** Throws at what no client can do anything about. */
function understood(answer: Answer): string {
  const word = wordOf(answer);
  if (!UNDERSTOOD.test(word)) throw new Error(`The response was ${word}`);
  return word;
}

/** Repeats a request until it succeeds. */
async function insist(send: () => Promise<Answer>, failed: string[]): Promise<Answer> {
  for (;;) {
    const answer = await send();
    if (isSuccess(answer)) return answer;
    failed.push(understood(answer));
    await delay(25);
  }
}

async function numberOf(text: string, ...parameters: unknown[]): Promise<number> {
  return Number((await direct.query<{ n: number | bigint }>(text, parameters))[0]?.n);
}

const ENTRIES = `select target_id, action from audit_inbox union all select target_id, action from audit_entries`;
const idsOf = async (title: string): Promise<string[]> =>
  (await direct.query<{ id: string }>('select cast(id as text) as id from letters where title = $1', [title])).map(({ id }) => id);
const eventsAt = (id: string): string[] =>
  receiver.of('/hook').flatMap(({ headers, body }) => (body.includes(id) ? [String(headers['webhook-id'])] : []));

const writing: Operation = {
  async perform(key) {
    const failed: string[] = [];
    const body = JSON.stringify({ title: key });
    const created = await insist(() => ask('POST', '/v1/letters', { key, body }), failed);
    const { id } = JSON.parse(created.text) as { id: string };
    await insist(() => ask('PATCH', `/v1/letters/${id}`, { body: JSON.stringify({ stamps: 2 }) }), failed);
    const list = await insist(() => ask('GET', `/v1/letters?title=${key}`), failed);
    expect(JSON.parse(list.text)).toMatchObject({ items: [{ id, stamps: 2 }] });
    return failed;
  },
  async hasFollowed(key) {
    const [id = ''] = await idsOf(key);
    return new Set(eventsAt(id)).size >= 2;
  },
  async outcome(key) {
    const ids = await idsOf(key);
    const [id = ''] = ids;
    return {
      rows: ids.length,
      stamps: await numberOf('select stamps as n from letters where title = $1', key),
      entries: await numberOf(`select count(*) as n from (${ENTRIES}) e where target_id = $1`, id),
      stored: await numberOf('select count(*) as n from webhook_events where data like $1', `%${id}%`),
      // Attempts may be repeated, with the same id.
      received: new Set(eventsAt(id)).size,
    };
  },
  expected: () => ({ rows: 1, stamps: 2, entries: 2, stored: 2, received: 2 }),
};

const importing: Operation = {
  async perform(key) {
    const failed: string[] = [];
    const body = `file,text\n${Array.from({ length: LINES }, (_, line) => `${key},line ${line}\n`).join('')}`;
    await insist(() => ask('POST', '/v1/lines/import', { key, body, type: 'text/csv' }), failed);
    return failed;
  },
  outcome: (key) => numberOf('select count(*) as n from lines where file = $1', key),
  expected: () => LINES,
};

const exporting: Operation = {
  async perform() {
    const failed: string[] = [];
    const { text } = await insist(() => ask('GET', '/v1/lines/export?format=csv&file=export'), failed);
    expect(text.split('\r\n').filter((line) => line.includes('~'.repeat(1000)))).toHaveLength(2000);
    return failed;
  },
  outcome: async () => 'whole',
  expected: () => 'whole',
};

const uploading: Operation = {
  async perform(key) {
    const failed: string[] = [];
    const bytes = `a file called ${key}`;
    const announced = JSON.stringify({ filename: `${key}.txt`, content_type: 'text/plain', size: bytes.length });
    for (;;) {
      const { text } = await insist(() => ask('POST', '/v1/files', { body: announced }), failed);
      const { id, url, headers } = JSON.parse(text) as { id: string; url: string; headers: Record<string, string> };
      const { pathname, search } = new URL(url, address);
      const sent = await ask('PUT', `${pathname}${search}`, { body: bytes, headers, type: 'text/plain' });
      // The URL works once: whether it was used is not known.
      if (!isSuccess(sent)) {
        failed.push(understood(sent));
        continue;
      }
      await insist(() => ask('POST', `/v1/files/${id}/complete`), failed);
      const { url: from } = JSON.parse((await insist(() => ask('GET', `/v1/files/${id}?url=true`), failed)).text) as { url: string };
      const there = new URL(from, address);
      const fetched = await insist(() => ask('GET', `${there.pathname}${there.search}`), failed);
      expect(fetched.text).toBe(bytes);
      return failed;
    }
  },
  outcome: (key) => numberOf(`select count(*) as n from uploads where filename = $1 and state = 'complete'`, `${key}.txt`),
  expected: () => 1,
};

const working: Operation = {
  async perform(key) {
    const failed: string[] = [];
    await insist(() => ask('POST', '/v1/work', { key, body: JSON.stringify({ title: key }) }), failed);
    return failed;
  },
  hasFollowed: async (key) =>
    (await numberOf(`select count(*) as n from jobs where input like $1 and status = 'succeeded'`, `%"${key}"%`)) >= 2,
  async outcome(key) {
    const ended = await direct.query<{ name: string; status: string }>('select name, status from jobs where input like $1 order by name', [
      `%"${key}"%`,
    ]);
    return {
      effects: await numberOf('select count(*) as n from effects where title = $1', key),
      jobs: ended.map(({ name, status }) => `${name} ${status}`),
    };
  },
  expected: () => ({ effects: 1, jobs: ['vanishing.once succeeded', 'vanishing.work succeeded'] }),
};

const OPERATIONS: Readonly<Record<string, Operation>> = {
  'create, change and list, with audit entries, events and webhooks': writing,
  'import of a file': importing,
  'export of a file': exporting,
  'upload, completion and download': uploading,
  'start of jobs, their run and their results': working,
};

const WAYS: Readonly<Record<string, () => void>> = {
  'its connections are reset': () => proxy.reset(),
  'its connections fall silent': () => proxy.silence(),
  'it cannot be reached for half a second': () => {
    proxy.lead('nowhere');
    proxy.silence();
    setTimeout(() => proxy.lead(serverPort()), 500);
  },
};

describe('a database that vanishes', () => {
  describe.each(Object.entries(OPERATIONS))('in the middle of: %s', (name, operation) => {
    const nth = Object.keys(OPERATIONS).indexOf(name);

    test.each(Object.entries(WAYS))(
      '%s: nothing is lost or doubled, and every connection is replaced',
      async (way, cut) => {
        const keyOf = (index: number | string): string => `k${nth}-${Object.keys(WAYS).indexOf(way)}-${index}`;
        const followed = async (key: string, { timeout, interval } = FOLLOWED): Promise<boolean> =>
          vi
            .waitUntil(() => operation.hasFollowed?.(key) ?? true, { timeout, interval })
            .then(
              () => true,
              () => false,
            );
        let chunks = 0;
        proxy.onChunk = () => void (chunks += 1);
        expect(await operation.perform(keyOf('calm'))).toEqual([]);
        await followed(keyOf('calm'));
        proxy.onChunk = undefined;
        const places = Math.min(CUTS, chunks);
        const keys = [keyOf('calm')];
        const told = new Set<string>();
        for (let index = 0; index < places; index += 1) {
          const [key, at] = [keyOf(index), Math.ceil(((index + 0.5) * chunks) / places)];
          let passed = 0;
          let isCut = false;
          proxy.onChunk = () => {
            if ((passed += 1) !== at) return;
            isCut = true;
            cut();
          };
          for (const answer of await operation.perform(key)) told.add(answer);
          // What follows is cut, too, where the operation itself was not.
          await vi.waitUntil(async () => isCut || (await operation.hasFollowed?.(key)) !== false, FOLLOWED);
          proxy.onChunk = undefined;
          await vi.waitUntil(() => proxy.silentConnections === 0, SOON);
          // Until so many are there, the server has what they have left, as for two hours in a real network.
          if (proxy.abandonedConnections > ABANDONED_MAX) proxy.endAbandoned();
          keys.push(key);
        }
        expect([...told].filter((answer) => !UNDERSTOOD.test(answer))).toEqual([]);
        for (const key of keys) {
          await followed(key);
          expect([key, await operation.outcome(key)]).toEqual([key, operation.expected(key)]);
        }
        await vi.waitUntil(() => db.pool.used === 0 && db.pool.waiting === 0, SOON);
        expect(longestMs).toBeLessThan(SOON.timeout);
      },
      3_600_000,
    );
  });
});
