import { wholeDocument } from '../../../test/whole-document.ts';
import { get, type IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import type { Authenticator } from '../../auth/request/authenticator.ts';
import { createTable, migration, model, t } from '../../db/index.ts';
import { Controller, raw, route } from '../../http/index.ts';
import { HealthController } from '../../middleware/index.ts';
import { openApiDocument } from '../../openapi/document.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { describeDatabases, testApp, type TestApp } from '../../testing/index.ts';
import { CrudController, resource } from '../index.ts';

const pages = model('pages', { id: t.int().pk(), text: t.text() });
const pageTable = migration('0001_pages', [createTable('pages', pages.columns)]);
const pageResource = resource(pages, { unscoped: true });
const options = { permission: isAuthenticated, filters: { id: ['lte'] } } as const;
class PageController extends CrudController(pageResource, { ...options, export: ['csv', 'jsonl'] }) {}
class ImpatientController extends CrudController(pageResource, { ...options, export: { formats: ['csv'], idleMs: 1_000 } }) {}
class PatientController extends CrudController(pageResource, { ...options, export: { formats: ['csv'], idleMs: 4_000 } }) {}
class OwnController extends Controller {
  all = route.get('/', { response: raw('text/plain'), permission: isAuthenticated }, ({ db }) => {
    const lines = async function* () {
      for await (const rows of db.stream<{ text: string }>('select text from pages', [], 100)) yield rows.map(({ text }) => text).join('');
    };
    return Readable.from(lines(), { objectMode: false });
  });
}

const revoked = new Set<string>();
const byHeader: Authenticator = {
  name: 'header',
  securityScheme: {},
  authenticate: ({ headers }) =>
    headers['x-user'] === undefined || revoked.has(String(headers['x-user']))
      ? null
      : {
          user: { id: String(headers['x-user']), username: 'u', email: null, is_active: true, is_staff: false, is_superuser: false },
          scheme: 'header',
          scopes: null,
        },
};

/** More than the buffers of a loopback connection. */
const ROWS = 5_000;
const FILLED = {
  postgres: `insert into pages select n, repeat('x', 4000) from generate_series(1, ${ROWS}) n`,
  sqlite: `with recursive each(n) as (select 1 union all select n + 1 from each where n < ${ROWS}) insert into pages select n, printf('%.*c', 4000, 'x') from each`,
} as const;

describeDatabases('exports that are not read', (database) => {
  let kit: TestApp;
  let address: string;
  const open: IncomingMessage[] = [];
  const opened = (path: string, user: string) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      get(`${address}${path}`, { headers: { 'x-user': user }, agent: false }, (message) => {
        message.on('error', () => undefined);
        open.push(message);
        resolve(message);
      }).on('error', reject);
    });
  const problem = async (message: IncomingMessage): Promise<object> => {
    let text = '';
    for await (const chunk of message.setEncoding('utf8')) text += chunk as string;
    return { status: message.statusCode, retryAfter: message.headers['retry-after'], ...(JSON.parse(text) as object) };
  };
  const served = async (path: string, user = 'reader') => {
    const started = performance.now();
    const response = await kit.inject({ method: 'GET', url: path, headers: { 'x-user': user } });
    return { status: response.statusCode, isQuick: performance.now() - started < 5_000 };
  };
  const connectionsAre = (wanted: number) =>
    vi.waitFor(
      () =>
        new Promise<void>((done, fail) =>
          kit.app.fastify.server.getConnections((_, count) => (count === wanted ? done() : fail(new Error(`${count} connections`)))),
        ),
      { timeout: 30_000 },
    );

  beforeAll(async () => {
    kit = await testApp({
      database: database.db,
      authenticators: [byHeader],
      modules: [{ name: 'pages', models: [pages], migrations: [pageTable] }],
      mount: {
        '/': { '/': new HealthController() },
        '/v1': { '/pages': PageController, '/impatient': ImpatientController, '/patient': PatientController, '/own': OwnController },
      },
    });
    await database.db.execute(FILLED[database.dialect]);
    address = await kit.listen();
  });
  afterEach(() => {
    for (const message of open.splice(0)) message.destroy();
  });
  afterAll(() => kit.close());

  test('of 50 exports that nobody reads five are served and the others are 503; probes and reads go on', async () => {
    const heads = await Promise.all(Array.from({ length: 50 }, (_, n) => opened('/v1/pages/export', `user-${n}`)));
    const running = heads.filter(({ statusCode }) => statusCode === 200);
    expect(running).toHaveLength(5);
    const refused = heads.find(({ statusCode }) => statusCode !== 200);
    expect(await problem(refused as IncomingMessage)).toMatchObject({
      status: 503,
      retryAfter: '10',
      code: 'too_many_cursors',
      detail: 'Too many exports are running. Try again shortly.',
      cursors_max: 5,
    });
    const answers = await Promise.all([
      served('/ready'),
      ...Array.from({ length: 20 }, () => served('/v1/pages?limit=1')),
      served('/v1/pages/1'),
    ]);
    expect(answers).toEqual(answers.map(() => ({ status: 200, isQuick: true })));
  });

  test('exports that nobody reads end by themselves, and others get their connections', async () => {
    const running: IncomingMessage[] = [];
    for (let n = 0; n < 5; n += 1) running.push(await opened('/v1/impatient/export', `user-${n}`));
    await connectionsAre(0);
    await vi.waitFor(async () => expect((await served('/v1/pages/export?id__lte=1')).status).toBe(200), { timeout: 30_000 });
    for (const message of running) {
      message.resume();
      await new Promise<void>((done) => (message.closed ? done() : message.once('close', () => done())));
      expect(message.complete).toBe(false);
    }
  });

  test('one caller has three exports; another one is 429 until one of them ends, however it ended', async () => {
    const mine = [await opened('/v1/pages/export', 'ann'), await opened('/v1/pages/export?format=jsonl', 'ann')];
    mine.push(await opened('/v1/pages/export', 'ann'));
    expect(mine.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200]);
    expect(await problem(await opened('/v1/pages/export', 'ann'))).toMatchObject({
      status: 429,
      retryAfter: '10',
      code: 'too_many_exports',
      detail: 'You have too many exports running.',
      exports_max: 3,
    });
    expect((await opened('/v1/pages/export', 'bob')).statusCode).toBe(200);
    mine[0]?.destroy();
    await vi.waitFor(async () => expect((await served('/v1/pages/export?id__lte=1', 'ann')).status).toBe(200), { timeout: 30_000 });
    // One that was rejected does not count.
    for (let n = 0; n < 5; n += 1) expect((await served('/v1/pages/export?nope=1', 'cid')).status).toBe(422);
    expect((await served('/v1/pages/export?id__lte=1', 'cid')).status).toBe(200);
  });

  test('an export ends when its caller loses the credential; those of others go on', async () => {
    const [mine, other] = [await opened('/v1/pages/export', 'dan'), await opened('/v1/pages/export?format=jsonl', 'fay')];
    await connectionsAre(2);
    revoked.add('dan');
    await connectionsAre(1);
    revoked.clear();
    let bytes = 0;
    for await (const chunk of other) bytes += (chunk as Buffer).length;
    expect([other.complete, bytes > ROWS * 4000]).toEqual([true, true]);
    await expect(
      (async () => {
        for await (const _ of mine);
      })(),
    ).rejects.toThrow(/aborted/);
    expect(mine.complete).toBe(false);
  });

  test('the refusals of exports are documented at their operation, with members and Retry-After', () => {
    const document = wholeDocument(openApiDocument(kit.app.routes, { title: 'x', version: '1' }));
    const { responses } = document.paths['/v1/pages/export'].get as { responses: Record<string, Record<string, object>> };
    for (const [status, code, member] of [
      [429, 'too_many_exports', 'exports_max'],
      [503, 'too_many_cursors', 'cursors_max'],
    ] as const) {
      expect(responses[status]?.['x-error-codes']).toContain(code);
      expect(Object.keys(responses[status]?.['headers'] ?? {})).toContain('Retry-After');
      expect(JSON.stringify(responses[status])).toContain(`"${member}":{"type":"integer"`);
    }
  });

  test('a slow client that keeps reading gets its whole file', { timeout: 60_000 }, async () => {
    const message = await opened('/v1/patient/export', 'slow');
    const started = performance.now();
    let bytes = 0;
    for await (const chunk of message) {
      bytes += (chunk as Buffer).length;
      // About 4 MB per second: in all longer than the time for which it may take nothing.
      await delay((chunk as Buffer).length / 4_000);
    }
    expect(message.complete).toBe(true);
    expect(bytes).toBeGreaterThan(ROWS * 4000);
    expect(performance.now() - started).toBeGreaterThan(4_000);
  });

  test('streamed queries of handwritten routes leave connections for others too, and wait for one another', async () => {
    const heads = await Promise.all(Array.from({ length: 5 }, (_, n) => opened('/v1/own', `own-${n}`)));
    expect(heads.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200, 200, 200]);
    const first = database.db.stream('select id from pages', [], 10)[Symbol.asyncIterator]();
    const next = first.next();
    expect(await served('/ready')).toEqual({ status: 200, isQuick: true });
    await expect(database.db.stream('select id from pages', [], 10, { waitMsMax: 0 }).next()).rejects.toMatchObject({
      code: 'too_many_cursors',
    });
    heads[0]?.destroy();
    expect((await next).done).toBe(false);
    await first.return?.();
  });

  test('the client of a handwritten response is cut when it takes nothing, and its query ends', async () => {
    // oxlint-disable-next-line typescript/unbound-method -- called with its own `this`
    const { setTimeout: original } = ServerResponse.prototype;
    const spy = vi.spyOn(ServerResponse.prototype, 'setTimeout').mockImplementation(function short(this: ServerResponse, ms, callback) {
      expect(ms).toBe(60_000);
      return original.call(this, 200, callback);
    });
    const message = await opened('/v1/own', 'idle');
    spy.mockRestore();
    await connectionsAre(0);
    message.resume();
    await new Promise<void>((done) => (message.closed ? done() : message.once('close', () => done())));
    expect(message.complete).toBe(false);
    await vi.waitFor(() => expect(database.db.pool.used).toBe(0), { timeout: 30_000 });
  });
});
