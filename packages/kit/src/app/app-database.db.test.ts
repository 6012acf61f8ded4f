import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { isBehindPooler } from '../../../../test/provision/behind-pooler.ts';
import { currentTransactionOn } from '../db/engine/ambient.ts';
import { engineOf } from '../db/engine/handle.ts';
import { kyselyOf } from '../db/kysely/kysely-of.ts';
import { describeDatabases } from '../testing/databases.ts';
import { createApp } from './assemble/create-app.ts';
import { appDatabase } from './data/app-database.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kit-app-database-'));
  for (const name of ['DATABASE_URL', 'DATABASE_URL_FILE']) vi.stubEnv(name, undefined);
  vi.stubEnv('DATABASE_PREPARE', isBehindPooler() ? 'off' : undefined);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

const appOn = (database: ReturnType<typeof appDatabase>) => {
  const app = createApp({ database, log: { level: 'silent' }, mount: {} });
  onTestFinished(() => app.close());
  return app;
};

describeDatabases('a database before the app', (place) => {
  test('knows its dialect and address before it connects, runs statements and transactions from the first on, and is closed by the app', async () => {
    const there = await place.open();
    await there.execute('create table things (id integer, name text)');
    vi.stubEnv('DATABASE_URL', place.url);
    const database = appDatabase();
    expect([database.dialect, database.url, database.pool.used]).toEqual([there.dialect, there.url, 0]);
    const kysely = kyselyOf<{ things: { id: number; name: string } }>(database);
    const app = appOn(database);
    await database.execute('insert into things (name, id) values ($2, $1)', [1, 'lamp']);
    await database.transaction(async (tx) => {
      expect(currentTransactionOn(database)).toBe(tx);
      await tx.execute('insert into things (id, name) values ($1, $2)', [2, 'chair']);
    });
    await kysely.transaction().execute((tx) => tx.insertInto('things').values({ id: 3, name: 'desk' }).execute());
    expect(await there.query('select id, name from things order by id')).toEqual([
      { id: 1, name: 'lamp' },
      { id: 2, name: 'chair' },
      { id: 3, name: 'desk' },
    ]);
    await app.openDatabases();
    expect(app.db).toBe(database);
    await app.close();
    expect(database.closed).toBe(true);
    await expect(database.query('select 1')).rejects.toThrow(/not open|closed/);
  });

  test('the first statements may be a transaction, several at once, or a stream', async () => {
    await place.open();
    vi.stubEnv('DATABASE_URL', place.url);
    const one = { n: 1 };
    const transaction = appDatabase();
    expect(await transaction.transaction(async (tx) => tx.query('select 1 as n'))).toEqual([one]);
    const several = appDatabase();
    expect(await Promise.all([1, 2, 3].map(() => several.query('select 1 as n')))).toEqual([[one], [one], [one]]);
    const streamed = appDatabase();
    const chunks = [];
    for await (const chunk of streamed.stream('select 1 as n')) chunks.push(chunk);
    expect(chunks).toEqual([[one]]);
    await Promise.all([transaction, several, streamed].map((each) => each.close()));
  });

  test('once open, its statements go to the engine itself, with the shares of callers', async () => {
    const eager = await place.open();
    vi.stubEnv('DATABASE_URL', place.url);
    const lazy = appDatabase();
    await lazy.query('select 1');
    expect(engineOf(lazy).constructor).toBe(engineOf(eager).constructor);
    expect(lazy.pool).toEqual({ ...eager.pool, used: lazy.pool.used });
    await lazy.close();
  });

  // A pooler in transaction mode loses what is prepared.
  const named = isBehindPooler() ? [] : [['on', true] as const];
  test.skipIf(place.dialect === 'sqlite').each([...named, ['off', false] as const])(
    'with DATABASE_PREPARE=%s statements have names: %s',
    async (prepare, hasNames) => {
      vi.stubEnv('DATABASE_URL', place.url);
      vi.stubEnv('DATABASE_PREPARE', prepare);
      const database = appDatabase({ poolMax: 1 });
      for (const value of [1, 2, 3]) await database.query('select $1::int as n', [value]);
      const names = await database.query("select name from pg_prepared_statements where statement like '%$1::int as n%'");
      expect(names.length > 0).toBe(hasNames);
      await database.close();
    },
  );

  test('its address may come from a file, and a database closed before its first statement stays closed', async () => {
    await place.open();
    writeFileSync(join(folder, 'url'), `${place.url}\n`);
    vi.stubEnv('DATABASE_URL_FILE', join(folder, 'url'));
    const database = appDatabase({ defaultUrl: 'sqlite::memory:' });
    expect(await database.query('select 1 as n')).toEqual([{ n: 1 }]);
    await database.close();
    const closed = appDatabase();
    await closed.close();
    await expect(closed.query('select 1')).rejects.toMatchObject({ code: 'database_unavailable' });
  });

  test('a database that is closed while it opens leaves nothing open', async () => {
    await place.open();
    vi.stubEnv('DATABASE_URL', place.url);
    const database = appDatabase();
    const opening = database.query('select 1').catch(() => undefined);
    await database.close();
    await opening;
    expect([database.closed, database.pool.used]).toEqual([true, 0]);
    await expect(database.query('select 1')).rejects.toThrow(/not open|closed/);
  });
});

test('an app on an unreachable server is created, closes, and says so only when it opens', async () => {
  vi.stubEnv('DATABASE_URL', 'postgres://app:secret@127.0.0.1:1/app');
  const database = appDatabase();
  expect([database.dialect, database.url]).toEqual(['postgres', expect.not.stringContaining('secret')]);
  await expect(appOn(database).ready()).rejects.toMatchObject({ code: 'database_unavailable' });
  const again = appDatabase();
  await expect(again.query('select 1')).rejects.toMatchObject({ code: 'database_unavailable' });
  await expect(again.query('select 1')).rejects.toMatchObject({ code: 'database_unavailable' });
  await appOn(again).close();
});

test('looking at an app creates no SQLite file, its first statement does', async () => {
  const file = join(folder, 'data', 'app.db');
  const app = appOn(appDatabase({ defaultUrl: `sqlite:${file}` }));
  await app.openDatabases({ createFiles: false });
  expect(await app.db.query('select 1 as n')).toEqual([{ n: 1 }]);
  await app.close();
  expect(existsSync(file)).toBe(false);
  const other = appDatabase({ defaultUrl: `sqlite:${file}` });
  expect(existsSync(file)).toBe(false);
  await other.query('select 1');
  await other.close();
  expect(existsSync(file)).toBe(true);
});

test('what is wrong with its address is said with the name of the setting, never with its value', () => {
  expect(() => appDatabase()).toThrow(/The app has no database\. Set DATABASE_URL or appDatabase/);
  expect(() => appDatabase({ defaultUrl: 'mysql://app:secret@h/app' })).toThrow(/^(?!.*secret).*defaultUrl is not the address/s);
  vi.stubEnv('DATABASE_URL', 'mysql://app:secret@h/app');
  expect(() => appDatabase()).toThrow(/^(?!.*secret).*DATABASE_URL is not the address/s);
  vi.stubEnv('DATABASE_URL_FILE', '/nowhere');
  expect(() => appDatabase()).toThrow(/DATABASE_URL and DATABASE_URL_FILE are both set/);
  vi.stubEnv('DATABASE_URL_FILE', undefined);
  vi.stubEnv('DATABASE_URL', 'sqlite::memory:');
  vi.stubEnv('DATABASE_PREPARE', 'loud');
  expect(() => appDatabase()).toThrow(/DATABASE_PREPARE is "loud"/);
});
