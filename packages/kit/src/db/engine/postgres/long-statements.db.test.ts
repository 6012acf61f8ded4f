import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import type { Authenticator } from '../../../auth/request/authenticator.ts';
import { Controller, route } from '../../../http/index.ts';
import { isAuthenticated } from '../../../permissions/index.ts';
import { describeDatabases, testApp, type TestApp } from '../../../testing/index.ts';
import type { Database } from '../db.ts';
import { openDatabase } from '../../open/open-database.ts';
import { TcpProxy } from '../../../../../../test/provision/tcp-proxy.ts';

/** Longer than the tests take: it ends early or fails them. `nextval` counts how often it was begun, whatever became of it. */
const NAP = `select nextval('naps') as nap, pg_sleep(600) as slept`;
const permission = isAuthenticated;
const nap = { mayBeLong: 'a nap' };

class NapController extends Controller {
  short = route.get(
    '/short',
    { permission },
    async ({ db }) => void (await db.query(NAP, [], { long: { deadlineMs: 50, reads: 'a nap' } })),
  );
  long = route.get('/long', { permission, timeoutMs: 500_000 }, async ({ db }) => void (await db.query(NAP, [], nap)));
  key = route.get('/key', { permission }, async ({ db }) => void (await db.query('select 1', [], { pipelined: true })));
  search = route.get('/search', { permission, response: z.object({ pid: z.int() }) }, async ({ db }) => {
    const [row] = await db.query<{ pid: number }>('select pg_backend_pid() as pid', [], { mayBeLong: 'a search' });
    return row!;
  });
  workers = route.get('/workers', { permission, response: z.object({ workers: z.string() }) }, async ({ db }) => {
    const sql = `select current_setting('max_parallel_workers_per_gather') as workers`;
    const [row] = await db.query<{ workers: string }>(sql, [], { mayBeLong: 'a setting' });
    return row!;
  });
  write = route.post(
    '/write',
    { permission, atomic: true },
    async ({ tx }) => void (await tx.query('select 1', [], { mayBeLong: 'a read of a write' })),
  );
  own = route.get('/own', { permission }, async ({ db }) => {
    await db.transaction(async (tx) => {
      await tx.query(`set local statement_timeout = '20ms'`);
      await tx.query('select pg_sleep(600)');
    });
  });
}

const byHeader: Authenticator = {
  name: 'header',
  securityScheme: {},
  authenticate: ({ headers }) => ({
    user: { id: String(headers['x-user']), username: 'u', email: null, is_active: true, is_staff: false, is_superuser: false },
    scheme: 'header',
    scopes: null,
  }),
};

const PATIENCE = { timeout: 60_000, interval: 50 };

describeDatabases('reads that may be long', (database) => {
  describe.runIf(database.dialect === 'postgres')('of a request', () => {
    let kit: TestApp;
    let db: Database;
    let address: string;
    const sockets = new Set<AbortController>();

    beforeAll(async () => {
      // Two connections for one caller, three for all.
      db = await database.open({ poolMax: 4, callerWaitingMax: 3 });
      kit = await testApp({
        database: db,
        migrate: false,
        authenticators: [byHeader],
        mount: { '/v1': { '/naps': NapController } },
      });
      await database.db.query('create sequence naps');
      address = await kit.listen();
    });
    afterEach(async () => {
      for (const each of sockets) each.abort();
      sockets.clear();
      await asleep(0);
    });
    afterAll(async () => {
      await kit.close();
      await db.close();
    });

    const begin = (path: string, user: string, method = 'GET') => {
      const closing = new AbortController();
      sockets.add(closing);
      const answer = fetch(`${address}/v1/naps${path}`, { method, headers: { 'x-user': user }, signal: closing.signal }).then(
        async (response) => ({
          status: response.status,
          retryAfter: response.headers.get('retry-after'),
          ...((await bodyOf(response)) as { code?: string }),
        }),
        () => 'closed' as const,
      );
      return { answer, close: () => closing.abort() };
    };
    const bodyOf = async (response: Response): Promise<unknown> => JSON.parse((await response.text()) || '{}');
    const sleeping = async () =>
      Number(
        (
          await database.db.query<{ n: number }>(
            `select count(*) as n from pg_stat_activity where state = 'active' and query like '%slept%' and pid <> pg_backend_pid()`,
          )
        )[0]?.n,
      );
    const asleep = (count: number) => vi.waitFor(async () => expect(await sleeping()).toBe(count), PATIENCE);
    const begun = async () =>
      Number(
        (await database.db.query<{ n: number | bigint }>('select case when is_called then last_value else 0 end as n from naps'))[0]?.n,
      );

    test('one that is stopped by its deadline is logged with its operation and what it read', async () => {
      await begin('/short', 'ann').answer;
      const failure = () => kit.records.findLast((each) => each['code'] === 'statement_timeout');
      await vi.waitFor(() => expect(failure()).toMatchObject({ level: 50, operation: 'nap_short' }), PATIENCE);
      expect(JSON.stringify(failure()?.['err'])).toContain('(a nap)');
    });

    test('one that takes longer than its request has is 503 statement_timeout without Retry-After, and leaves nothing on the connection', async () => {
      expect(await begin('/short', 'ann').answer).toMatchObject({ status: 503, code: 'statement_timeout', retryAfter: null });
      await asleep(0);
      const settings = await Promise.all(
        Array.from({ length: 8 }, () => db.query<{ statement_timeout: string }>('show statement_timeout')),
      );
      expect(settings.flat()).toEqual(settings.map(() => ({ statement_timeout: '0' })));
    });

    test('a statement_timeout of the database itself is 503 statement_timeout', async () => {
      const answer = await begin('/own', 'ann').answer;
      expect(answer).toMatchObject({ status: 503, code: 'statement_timeout', retryAfter: null });
    });

    test('a client that goes away ends its read on the server, and its connection serves nobody else', async () => {
      const gone = begin('/long', 'ann');
      await asleep(1);
      gone.close();
      await asleep(0);
      const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => begin('/search', `user-${n}`).answer));
      expect(answers.map((each) => (each === 'closed' ? each : each.status))).toEqual(Array(20).fill(200));
      await vi.waitFor(() => expect(db.pool.used).toBe(0), PATIENCE);
    });

    test('one caller gets half of the connections; its others wait, more are 503 too_busy, and another caller is served', async () => {
      const before = await begun();
      const many = Array.from({ length: 8 }, () => begin('/long', 'greedy'));
      const refused: unknown[] = [];
      for (const { answer } of many) void answer.then((each) => refused.push(each));
      await vi.waitFor(() => expect(refused).toHaveLength(3), PATIENCE);
      expect(refused).toEqual(Array(3).fill(expect.objectContaining({ status: 503, code: 'too_busy', retryAfter: '2' })));
      await asleep(2);
      expect(await begun()).toBe(before + 2);
      expect(db.pool.waitingForShare).toEqual({ user: 3 });
      expect(await begin('/search', 'ann').answer).toMatchObject({ status: 200 });
      expect(await begin('/key', 'greedy').answer).toMatchObject({ status: 204 });
      expect(await begin('/write', 'greedy', 'POST').answer).toMatchObject({ status: 204 });
      for (const each of many) each.close();
      await asleep(0);
      // Those that waited for the others were never sent.
      expect(await begun()).toBe(before + 2);
    });

    test('one that runs beside others has no parallel workers of the server; alone it has them, and the setting does not stay', async () => {
      const [{ workers } = { workers: '' }] = await database.db.query<{ workers: string }>(
        `select current_setting('max_parallel_workers_per_gather') as workers`,
      );
      expect(Number(workers)).toBeGreaterThan(0);
      const nap = begin('/long', 'ann');
      await asleep(1);
      expect(await begin('/workers', 'bob').answer).toMatchObject({ workers: '0' });
      nap.close();
      await asleep(0);
      await vi.waitFor(async () => expect(await begin('/workers', 'bob').answer).toMatchObject({ workers }), PATIENCE);
    });

    test('a stream whose server falls silent ends a little after the deadline of its batch, and its connection is closed', async () => {
      const proxy = await TcpProxy.start(Number(new URL(database.url).port));
      // Nothing else closes silent connections here.
      const through = await openDatabase(proxy.through(database.url), { poolMax: 2, silenceMsMax: 0 });
      const rows = through.stream('select n from generate_series(1, 1000) n', [], 10, { long: { deadlineMs: 2000, reads: 'numbers' } });
      expect((await rows.next()).value).toHaveLength(10);
      proxy.silence();
      await expect(rows.next()).rejects.toMatchObject({
        code: 'database_unavailable',
        message: expect.stringContaining('numbers') as string,
      });
      await vi.waitFor(() => expect(through.pool.used).toBe(0), PATIENCE);
      expect(await through.query('select 1 as one')).toEqual([{ one: 1 }]);
      await through.close();
      await proxy.stop();
    });

    test('requests that were pipelined on a socket that is closed end with it: what waited is never sent', async () => {
      const before = await begun();
      const { hostname, port } = new URL(address);
      const socket = connect(Number(port), hostname);
      socket.on('error', () => undefined);
      socket.write('GET /v1/naps/long HTTP/1.1\r\nhost: a\r\nx-user: piper\r\n\r\n'.repeat(40));
      await asleep(2);
      socket.destroy();
      await asleep(0);
      await vi.waitFor(() => expect(db.pool).toMatchObject({ used: 0, waiting: 0, waitingForShare: {} }), PATIENCE);
      expect(await begun()).toBe(before + 2);
    });
  });
});
