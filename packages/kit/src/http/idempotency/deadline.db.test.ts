import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import type { Authenticator } from '../../auth/request/authenticator.ts';
import type { Db } from '../../db/engine/db.ts';
import { continuesSql } from '../../db/engine/sqlite/continues-sql.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { testApp, type TestApp } from '../../testing/test-app.ts';
import { Controller } from '../compile/controller.ts';
import { route } from '../declare/route.ts';

const ann: Authenticator = {
  name: 'test',
  securityScheme: { type: 'http', scheme: 'bearer' },
  authenticate: () => ({
    user: { id: 'ann', username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false },
    scheme: 'test',
    scopes: null,
  }),
};

/** Of the first attempt with a key, so that the retry is fast: what the handler does after it has written its row. */
const first = new Map<string, (tx: Db) => unknown>();
const TIME_MS = 150;

class Orders extends Controller {
  create = route.post(
    '/:key',
    {
      permission: isAuthenticated,
      atomic: true,
      idempotent: true,
      timeoutMs: TIME_MS,
      params: z.object({ key: z.string() }),
      response: z.object({ key: z.string() }),
    },
    async ({ tx, params: { key } }) => {
      await tx.query('insert into placed (key) values ($1)', [key]);
      const work = first.get(key);
      first.delete(key);
      await work?.(tx);
      return { key };
    },
  );
}

const endless = {
  sqlite: `with recursive each(n) as (select 1 union all select n + 1 from each) select count(*) as n from each where ${continuesSql('n')}`,
  postgres: 'select pg_sleep(600) as n',
} as const;

describeDatabases('an operation with an idempotency key that is cut by its deadline', (database) => {
  let kit: TestApp;
  beforeAll(async () => {
    await database.db.query('create table placed (key text not null)');
    kit = await testApp({ database: database.db, authenticators: [ann], mount: { '/v1': { '/orders': Orders } } });
  });
  afterAll(() => kit.close());

  const send = async (key: string) => {
    const response = await kit.inject({ method: 'POST', url: `/v1/orders/${key}`, headers: { 'idempotency-key': key } });
    return { status: response.statusCode, code: response.json<{ code?: string }>().code };
  };
  /** As a client does: again while the first attempt goes on, or has failed. */
  const repeat = (key: string) => vi.waitUntil(async () => (await send(key)).status === 200, { timeout: 60_000, interval: 20 });
  const placed = async (key: string) => (await database.db.query('select key from placed where key = $1', [key])).length;

  test.each<[string, string, (tx: Db) => unknown]>([
    [
      'its read passes its deadline',
      'statement_timeout',
      (tx) => tx.query(endless[tx.dialect], [], { long: { deadlineMs: 20, reads: 'all of it' } }),
    ],
    ['its handler passes the time of its route', 'deadline_exceeded', () => new Promise((done) => setTimeout(done, 2 * TIME_MS))],
  ])('saves nothing when %s, and the next attempt with the key does it, once', async (name, code, work) => {
    const key = name.replaceAll(' ', '-');
    first.set(key, work);
    expect(await send(key)).toEqual({ status: 503, code });
    expect(await placed(key)).toBe(0);
    await repeat(key);
    expect(await send(key)).toEqual({ status: 200, code: undefined });
    expect(await placed(key)).toBe(1);
  });

  test('is done once, whichever side of its commit the deadline falls on', async () => {
    const keys = Array.from({ length: 24 }, (_, index) => `near-${index}`);
    for (const [index, key] of keys.entries()) {
      first.set(key, () => new Promise((done) => setTimeout(done, TIME_MS - 12 + index)));
      const { status } = await send(key);
      expect([200, 503]).toContain(status);
      await repeat(key);
    }
    expect(await Promise.all(keys.map(placed))).toEqual(keys.map(() => 1));
  });
});
