import { once } from 'node:events';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { Controller, route } from '../../http/index.ts';
import { allowAny } from '../../permissions/index.ts';
import { describeDatabases, testApp, type TestApp } from '../../testing/index.ts';
import type { Database, Db } from './db.ts';
import { continuesSql } from './sqlite/continues-sql.ts';

const PATIENCE = { timeout: 60_000, interval: 50 };
const permission = allowAny;
const soon = { deadlineMs: 50, reads: 'all of it' };

/** Does not end by itself. */
const endless = ({ dialect }: Db): string =>
  dialect === 'postgres'
    ? 'select pg_sleep(600) as slept'
    : `with recursive c(n) as (select 1 union all select n + 1 from c) select count(*) as n from c where ${continuesSql('n')}`;

async function put(tx: Db, name: string): Promise<void> {
  await tx.query('insert into written (name) values ($1)', [name]);
}

describeDatabases('a transaction of a request', (database) => {
  let db: Database;
  let kit: TestApp;
  /** A transaction that the time of its route caught. */
  let caught: Promise<unknown> = Promise.resolve();

  class WriteController extends Controller {
    atomic = route.post('/atomic', { permission, atomic: true }, async ({ tx }) => {
      await put(tx, 'atomic');
      await tx.query(endless(tx), [], { long: soon });
    });
    own = route.post('/own', { permission }, async () => {
      await db.transaction(async (tx) => {
        await put(tx, 'own');
        await tx.query(endless(tx), [], { long: soon });
      });
    });
    savepoint = route.post('/savepoint', { permission, atomic: true }, async ({ tx }) => {
      await put(tx, 'around');
      const inner = tx.transaction(async (savepoint) => {
        await put(savepoint, 'inside');
        await savepoint.query(endless(tx), [], { long: soon });
      });
      await inner.catch(() => undefined);
    });
    marked = route.post('/marked', { permission, atomic: true, timeoutMs: 1_000 }, async ({ tx }) => {
      await put(tx, 'marked');
      await tx.query(endless(tx), [], { mayBeLong: 'all of it' });
    });
    quick = route.post('/quick', { permission, atomic: true }, async ({ tx }) => {
      await put(tx, 'quick');
      await tx.query('select count(*) as n from written', [], { mayBeLong: 'a few' });
    });
    late = route.post('/late', { permission, timeoutMs: 50 }, async ({ signal }) => {
      caught = db.transaction(async (tx) => {
        await put(tx, 'late');
        await once(signal, 'abort');
        await new Promise((turned) => setImmediate(turned));
      });
      await caught;
    });
    after = route.post('/after', { permission, timeoutMs: 50 }, async ({ signal }) => {
      await once(signal, 'abort');
      await new Promise((turned) => setImmediate(turned));
      caught = db.transaction((tx) => put(tx, 'after'));
      await caught;
    });
    waits = route.post('/waits', { permission, atomic: true, timeoutMs: 300 }, async ({ tx }) => {
      await put(tx, 'waits');
      await tx.query(endless(tx), []);
    });
    shorter = route.post('/shorter', { permission, atomic: true }, async ({ tx }) => {
      await tx.query(`set local statement_timeout = '20ms'`);
      await tx.query(endless(tx), [], { long: { deadlineMs: 600_000 } });
    });
  }

  beforeAll(async () => {
    db = database.db;
    await db.query('create table written (name text not null)');
    kit = await testApp({ database: db, migrate: false, mount: { '/v1': { '/writes': WriteController } } });
  });
  afterAll(() => kit.close());

  const post = async (path: string) => {
    const { statusCode, body, headers } = await kit.inject({ method: 'POST', url: `/v1/writes${path}` });
    const { code } = JSON.parse(body || '{}') as { code?: string };
    return { status: statusCode, code, retryAfter: headers['retry-after'] };
  };
  const written = async () => (await db.query<{ name: string }>('select name from written')).map(({ name }) => name);
  const TIMEOUT = { status: 503, code: 'statement_timeout', retryAfter: undefined };

  test.each(['/atomic', '/own'])(
    'whose read passes its deadline is 503 statement_timeout, and nothing of it is saved: %s',
    async (path) => {
      expect(await post(path)).toEqual(TIMEOUT);
      expect(await written()).toEqual([]);
      await vi.waitFor(() => expect(db.pool.used).toBe(0), PATIENCE);
      const failure = kit.records.findLast((each) => each['code'] === 'statement_timeout');
      expect(JSON.stringify(failure?.['err'])).toContain('(all of it)');
    },
  );

  test('whose read passes the time of the route is 503, and nothing of it is saved', async () => {
    const { status, code } = await post('/marked');
    expect(status).toBe(503);
    // On a busy machine the time of the route is over before the answer is there.
    expect(['statement_timeout', 'deadline_exceeded']).toContain(code);
    await vi.waitFor(() => expect(db.pool.used).toBe(0), PATIENCE);
    expect(await written()).toEqual([]);
  });

  test('goes on when only a savepoint passed its deadline, and its COMMIT has none', async () => {
    expect(await post('/savepoint')).toMatchObject({ status: 204 });
    expect(await post('/quick')).toMatchObject({ status: 204 });
    expect(await written()).toEqual(['around', 'quick']);
    await db.query('delete from written');
    if (db.dialect === 'sqlite') return;
    const limits = await Promise.all(Array.from({ length: 8 }, () => db.query<{ statement_timeout: string }>('show statement_timeout')));
    expect(limits.flat()).toEqual(limits.map(() => ({ statement_timeout: '0' })));
  });

  test.each(['/late', '/after'])('saves nothing once the time of its route is over: %s', async (path) => {
    expect(await post(path)).toMatchObject({ status: 503, code: 'deadline_exceeded' });
    await vi.waitFor(() => expect(caught).rejects.toMatchObject({ code: 'deadline_exceeded' }), PATIENCE);
    expect(await written()).toEqual([]);
    await vi.waitFor(() => expect(db.pool.used).toBe(0), PATIENCE);
  });

  test.runIf(database.dialect === 'postgres')(
    'whose statement waits is stopped on the server when the time of its route is over',
    async () => {
      expect(await post('/waits')).toMatchObject({ status: 503, code: 'deadline_exceeded' });
      const sleeping = `select 1 from pg_stat_activity where state = 'active' and query like '%slept%' and pid <> pg_backend_pid()`;
      await vi.waitFor(async () => expect(await db.query(sleeping)).toEqual([]), PATIENCE);
      await vi.waitFor(() => expect(db.pool.used).toBe(0), PATIENCE);
      expect(await written()).toEqual([]);
    },
  );

  test.runIf(database.dialect === 'postgres')('a shorter limit that it has already stays', async () => {
    expect(await post('/shorter')).toEqual(TIMEOUT);
  });
});
