import { expect, test } from 'vitest';
import { describeDatabases } from '../../testing/databases.ts';
import { t } from '../declare/column.ts';
import { model } from '../declare/model.ts';
import type { Database } from '../engine/db.ts';
import { migrate } from '../migrations/migrate.ts';
import { migration } from '../migrations/migration.ts';
import { createTable } from '../migrations/operation.ts';
import { openDatabase } from '../open/open-database.ts';
import { insertMany, list, update } from '../rows/repository.ts';
import { backfillStatus } from '../rollout/declared-backfills.ts';
import { runBackfills } from '../rollout/run-backfills.ts';
import { backfill } from './backfill.ts';
import { ReplicaLag } from './pressure.ts';

/** Longer than the bound of the back-fill. */
const WAITING = `select coalesce(max(clock_timestamp() - waitstart) > interval '60 milliseconds', false) as waiting from pg_locks where not granted`;

const counters = model('counters', { id: t.int().pk(), n: t.int() });
const shop = {
  name: 'shop',
  migrations: [migration('0001_initial', [createTable('counters', counters.columns)])],
  backfills: [
    backfill('0002_count', {
      model: counters,
      batch: 5,
      lockWaitMsMax: 50,
      run: async (tx, rows) => {
        for (const { id, n } of rows) await update(tx, counters, id, { n: n + 1 });
      },
    }),
  ],
};

describeDatabases('the budget of a back-fill', (database) => {
  const fresh = async (): Promise<Database> => {
    const { db } = database;
    for (const table of ['counters', 'kit_backfills', 'kit_migrations']) await db.query(`drop table if exists ${table}`);
    await migrate(db, [shop]);
    await insertMany(
      db,
      counters,
      Array.from({ length: 20 }, (_, id) => ({ id, n: 0 })),
    );
    return db;
  };

  test('rows that another transaction has locked are waited for, and done once', async () => {
    const db = await fresh();
    const runner = await openDatabase(database.url, { waitMsMax: 50 });
    const waits: (string | null)[] = [];
    try {
      let running: Promise<unknown> = Promise.resolve();
      await db.transaction(async (tx) => {
        await tx.query('update counters set n = 10 where id = 12');
        running = runBackfills(runner, [shop], { onProgress: (_id, _rows, waitsFor) => waits.push(waitsFor) });
        running.catch(() => undefined);
        await expect.poll(() => waits.at(-1)).toBe('rows are locked by other transactions');
      });
      await running;
    } finally {
      await runner.close();
    }
    expect((await list(db, counters, { orderBy: ['id'] })).map(({ id, n }) => (id === 12 ? n - 10 : n))).toEqual(
      Array.from({ length: 20 }, () => 1),
    );
  });

  test.runIf(database.dialect === 'postgres')('it stands still while a transaction waits for a lock, and shows why', async () => {
    const db = await fresh();
    const [holder, waiter] = [await openDatabase(database.url), await openDatabase(database.url)];
    const waits: (string | null)[] = [];
    const [locked, release] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
    try {
      const held = holder.transaction(async (tx) => {
        await tx.query('select pg_advisory_xact_lock(17)');
        locked.resolve(undefined);
        await release.promise;
      });
      await locked.promise;
      const waiting = waiter.transaction((tx) => tx.query('select pg_advisory_xact_lock(17)'));
      await expect.poll(() => db.query(WAITING)).toEqual([{ waiting: true }]);
      const running = runBackfills(db, [shop], { onProgress: (_id, _rows, waitsFor) => waits.push(waitsFor) });
      await expect.poll(() => waits.length).toBeGreaterThan(1);
      expect(waits.every((each) => /^a transaction has been waiting \d+\.\d s for a lock$/.test(each ?? ''))).toBe(true);
      expect(await list(db, counters, { where: { n: 1 } })).toEqual([]);
      await expect
        .poll(async () => (await backfillStatus(db, [shop]))[0]?.progress)
        .toMatchObject({
          state: 'waiting',
          waitsFor: expect.stringContaining('for a lock') as string,
        });
      release.resolve(undefined);
      await Promise.all([held, waiting, running]);
      expect((await list(db, counters, { where: { n: 1 } })).length).toBe(20);
      expect((await backfillStatus(db, [shop]))[0]?.progress).toMatchObject({ state: 'finished', waitsFor: null });
    } finally {
      release.resolve(undefined);
      await holder.close();
      await waiter.close();
    }
  });
});

test('the lag of a replica is the time since the log was where the replica has come to', () => {
  const lag = new ReplicaLag();
  expect(lag.lagMs(0, 100, 100)).toBe(0);
  expect(lag.lagMs(1000, 200, 100)).toBe(0);
  expect(lag.lagMs(3000, 300, 100)).toBe(2000);
  // It stopped: the server reports nothing new.
  expect(lag.lagMs(12_000, 300, 100)).toBe(11_000);
  expect(lag.lagMs(13_000, 400, 250)).toBe(10_000);
  expect(lag.lagMs(14_000, 400, 400)).toBe(0);
  // The replica is gone.
  expect(lag.lagMs(15_000, 500, 400)).toBe(0);
  expect(lag.lagMs(30_000, 500, null)).toBe(0);
});
