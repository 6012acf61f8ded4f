import type { ChildProcess } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { createPostgresDatabase } from 'kit/testing';
import { REDIS_SERVER, startRedis, type Broker } from '../../../test/provision/broker.ts';
import { freePort } from '../../../test/provision/free-port.ts';
import { openDatabase } from '../src/db/open/open-database.ts';
import type { Database } from '../src/db/index.ts';
import { KitProgram, sourceOf } from './cli/kit-program.ts';

// What must be right however many processes serve an application: the program itself, started twice by its own command, on one database.

/** The config is in a folder of its own, where no packages are installed. */
const packageOf = (name: string): string => JSON.stringify(pathToFileURL(createRequire(import.meta.url).resolve(name)).href);

const CONFIG = `import { createApp, Controller, route } from ${sourceOf('index.ts')};
import { setTimeout as wait } from 'node:timers/promises';
import { createClient } from ${packageOf('redis')};
import { z } from ${packageOf('zod')};
import { accounts } from ${sourceOf('contrib/accounts/index.ts')};
import { ApiKeyController, apiKeys } from ${sourceOf('contrib/apikeys/index.ts')};
import { job, jobs } from ${sourceOf('contrib/jobs/index.ts')};
import { WebhookEndpointController, webhooks } from ${sourceOf('contrib/webhooks/index.ts')};
import { CrudController, resource } from ${sourceOf('crud/index.ts')};
import { createTable, migration, model, t } from ${sourceOf('db/index.ts')};
import { responseCache } from ${sourceOf('middleware/index.ts')};
import { isAuthenticated } from ${sourceOf('permissions/index.ts')};
import { redisStorage, sqlStorage, userThrottle } from ${sourceOf('throttle/index.ts')};

const columns = { id: t.uuidv7().pk(), title: t.text(80) };
const notes = model('notes', columns);
class NoteController extends CrudController(resource(notes, { unscoped: true }), { permission: isAuthenticated }) {}
class LimitedController extends Controller {
  limited = route.get('/', { permission: isAuthenticated, throttles: [userThrottle('10/min', { name: 'limited' })] }, () => undefined);
}
class StreamController extends Controller {
  ticks = route.stream('/', { response: z.object({}), permission: isAuthenticated }, async function* ({ signal }) {
    for (;;) {
      yield { event: 'tick', data: {} };
      await wait(200, undefined, { signal });
    }
  });
}
const tick = job('tick', { input: z.object({}), schedule: { cron: '* * * * * *', input: {} }, run: () => Promise.resolve() });
const person = {
  name: 'test',
  securityScheme: { type: 'http', scheme: 'none' },
  async authenticate({ headers, db }) {
    if (headers['x-user'] === undefined) return null;
    const [user] = await db.query('select id, username, email, is_active, is_staff, is_superuser from users where username = $1', [headers['x-user']]);
    return user === undefined ? null : { user, scheme: 'test', scopes: null, recentLogin: true };
  },
};
const redis = process.env.REDIS === undefined ? null : createClient({ url: process.env.REDIS });
await redis?.connect();
export default createApp({
  database: process.env.DATABASE_URL,
  modules: [
    { name: 'notes', models: [notes], migrations: [migration('0001_initial', [createTable('notes', columns)])] },
    accounts(),
    apiKeys({ cache: { maxAgeMs: 300_000 } }),
    webhooks({ worker: true, endpointsPerOwnerMax: 5 }),
    jobs({ jobs: [tick], worker: true }),
  ],
  authenticators: [person],
  middleware: [responseCache({ routes: ({ controller }) => controller === 'NoteController' && { maxAgeMs: 60_000 } })],
  throttleStorage: redis === null ? sqlStorage({ onFailure: 'refuse' }) : redisStorage(redis, { onFailure: 'refuse' }),
  mount: { '/v1': { '/notes': NoteController, '/limited': LimitedController, '/ticks': StreamController, '/keys': ApiKeyController, '/hooks': WebhookEndpointController } },
  log: { level: 'warn' },
});
`;

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, never>>;
}

async function call(
  url: string,
  { body, method, headers = {} }: { body?: object; method?: string; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const response = await fetch(url, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text.startsWith('{') ? (JSON.parse(text) as Answer['body']) : {} };
}

const ANN = { 'x-user': 'ann' };
const BOB = { 'x-user': 'bob' };

describe.each(['SQL', 'Redis'])('two processes with throttles in %s', (storage) => {
  describe.runIf(storage === 'SQL' || REDIS_SERVER !== undefined)('on PostgreSQL', () => {
    let folder: string;
    let program: KitProgram;
    let database: Awaited<ReturnType<typeof createPostgresDatabase>>;
    let redis: Broker | null = null;
    let db: Database;
    const children: ChildProcess[] = [];
    let [here, there] = ['', ''];

    const serve = async (): Promise<string> => {
      const port = await freePort();
      const child = program.start(['start', '--port', String(port)]);
      children.push(child);
      let printed = '';
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (printed += text.toString()));
      await vi.waitFor(() => expect(child.exitCode !== null || printed.includes('listens on')).toBe(true), { timeout: 300_000 });
      expect(printed).toContain('listens on');
      return `http://127.0.0.1:${port}/v1`;
    };

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'kit-two-'));
      await writeFile(join(folder, 'kit.config.ts'), CONFIG);
      database = await createPostgresDatabase(inject('postgresUrl'));
      if (storage === 'Redis') redis = await startRedis();
      program = new KitProgram(folder, { DATABASE_URL: database.url, ...(redis === null ? {} : { REDIS: redis.url }) });
      db = await openDatabase(database.url);
    }, 600_000);
    afterAll(async () => {
      for (const child of children) child.kill('SIGKILL');
      await program?.close();
      await db?.close();
      await database?.remove();
      await redis?.close();
      await rm(folder, { recursive: true, force: true });
    });

    test('migrations that two processes apply at the same moment are applied once, and both succeed', async () => {
      const runs = await Promise.all([program.spawn(['migrate']), program.spawn(['migrate'])]);
      expect(runs.map(({ code, stderr }) => [code, code === 0 ? '' : stderr])).toEqual([
        [0, ''],
        [0, ''],
      ]);
      const applied = await db.query<{ name: string; count: number }>(
        'select module, name, count(*) as count from kit_migrations group by module, name',
      );
      expect(applied.filter(({ count }) => count !== 1)).toEqual([]);
      for (const [name, id] of [
        ['ann', '00000000-0000-7000-8000-000000000001'],
        ['bob', '00000000-0000-7000-8000-000000000002'],
      ])
        await db.query(
          `insert into users (id, username, is_active, is_staff, is_superuser, created_at, updated_at) values ($1, $2, true, false, false, now(), now())`,
          [id, name],
        );
      [here, there] = await Promise.all([serve(), serve()]);
    }, 600_000);

    test('a budget is one budget: of 60 requests at once exactly 10 pass', async () => {
      const answers = await Promise.all(
        Array.from({ length: 60 }, (_, n) => call(`${n % 2 === 0 ? here : there}/limited`, { headers: ANN })),
      );
      const statuses = answers.map(({ status }) => status);
      expect([statuses.filter((status) => status < 300).length, statuses.filter((status) => status === 429).length]).toEqual([10, 50]);
    });

    test('a response that one has cached is not served after a write by the other', async () => {
      const titles = async (url: string): Promise<string[]> =>
        ((await call(`${url}/notes`, { headers: ANN })).body['items'] as unknown as { title: string }[]).map(({ title }) => title);
      for (let n = 0; n < 5; n++) {
        expect(await titles(here)).toHaveLength(n);
        expect(await titles(there)).toHaveLength(n);
        expect((await call(`${n % 2 === 0 ? here : there}/notes`, { body: { title: `n ${n}` }, headers: ANN })).status).toBe(201);
        // The notification is on its way: the promise is a moment, not maxAgeMs (a minute).
        for (const url of [here, there]) await vi.waitFor(async () => expect(await titles(url)).toContain(`n ${n}`), { timeout: 5000 });
      }
    });

    test('a key that is revoked in one is rejected by the other, which has it in its cache, and its open stream ends', async () => {
      const { body, status } = await call(`${here}/keys`, { body: { name: 'script', scopes: [] }, headers: BOB });
      expect(status).toBe(201);
      const key = { 'x-api-key': String(body['key']) };
      for (const url of [here, there]) expect((await call(`${url}/notes`, { headers: key })).status).toBe(200);
      const stream = await fetch(`${there}/ticks`, { headers: key });
      expect(stream.status).toBe(200);
      const streamed = stream.text();
      expect((await call(`${here}/keys/${String(body['id'])}`, { method: 'DELETE', headers: BOB })).status).toBe(204);
      await vi.waitFor(async () => expect((await call(`${there}/notes`, { headers: key })).status).toBe(401), {
        timeout: 5000,
        interval: 20,
      });
      expect(await streamed).toContain('invalid_credentials');
    });

    test('a recurring job is started once per tick, whichever process is first', async () => {
      const count = async (): Promise<number> =>
        Number((await db.query<{ n: number }>(`select count(*) as n from jobs where name = 'tick'`))[0]?.n);
      const [before, began] = [await count(), Date.now()];
      await vi.waitFor(async () => expect(await count()).toBeGreaterThanOrEqual(before + 3), { timeout: 60_000 });
      await new Promise((done) => setTimeout(done, 3000));
      const started = (await count()) - before;
      expect(started).toBeLessThanOrEqual(Math.ceil((Date.now() - began) / 1000) + 1);
    });

    test('a quota is one quota: of 20 endpoints that are created at once, 5 exist', async () => {
      const create = (n: number): Promise<Answer> =>
        call(`${n % 2 === 0 ? here : there}/hooks`, { body: { url: `https://example.com/${n}`, events: ['*'] }, headers: BOB });
      const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => create(n)));
      expect(answers.filter(({ status }) => status === 201)).toHaveLength(5);
      expect((await db.query('select id from webhook_endpoints')).length).toBe(5);
    });

    test('a request that is repeated at the other process is done once', async () => {
      const headers = { ...BOB, 'idempotency-key': 'k-1' };
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, n) => call(`${n % 2 === 0 ? here : there}/notes`, { body: { title: 'once' }, headers })),
      );
      expect(answers.every(({ status }) => status === 201 || status === 409)).toBe(true);
      expect(await db.query(`select id from notes where title = 'once'`)).toHaveLength(1);
    });
  });
});
