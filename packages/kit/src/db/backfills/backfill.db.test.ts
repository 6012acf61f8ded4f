import { expect, test } from 'vitest';
import { describeDatabases } from '../../testing/databases.ts';
import { t } from '../declare/column.ts';
import { model } from '../declare/model.ts';
import type { Database } from '../engine/db.ts';
import { migrate } from '../migrations/migrate.ts';
import { migration } from '../migrations/migration.ts';
import { alterColumn, createTable } from '../migrations/operation.ts';
import { openDatabase } from '../open/open-database.ts';
import { insertMany, list, update } from '../rows/repository.ts';
import { runBackfills } from '../rollout/run-backfills.ts';
import { backfillStatus } from '../rollout/declared-backfills.ts';
import { backfill, type BackfillOptions } from './backfill.ts';
import { changeState, readStates } from './backfill-state.ts';

const people = model('people', { id: t.int().pk(), first: t.text(), full_name: t.text().nullable(), touched: t.int() });
const initial = migration('0001_initial', [createTable('people', people.columns)]);
const required = migration('0003_require', [alterColumn('people', 'full_name', t.text())], { backfills: ['0002_full_name'] });
const key = { module: 'shop', name: '0002_full_name' };

const shopOf = (options: Partial<BackfillOptions<typeof people>> = {}) => ({
  name: 'shop',
  migrations: [initial, required],
  backfills: [
    backfill('0002_full_name', {
      model: people,
      batch: 10,
      async run(tx, rows) {
        for (const { id, first, touched } of rows) await update(tx, people, id, { full_name: `${first}!`, touched: touched + 1 });
      },
      ...options,
    }),
  ],
});

/** Only what comes before the back-fill. */
const before = { name: 'shop', migrations: [initial] };

describeDatabases('back-fills', (database) => {
  const fill = async (rows: number): Promise<Database> => {
    const { db } = database;
    for (const table of ['people', 'kit_backfills', 'kit_migrations']) await db.query(`drop table if exists ${table}`);
    await migrate(db, [before]);
    await insertMany(
      db,
      people,
      Array.from({ length: rows }, (_, id) => ({ id, first: `p${id}`, full_name: null, touched: 0 })),
    );
    return db;
  };
  const stateOf = async (db: Database) => (await readStates(db)).get('shop/0002_full_name');

  test('every row is done exactly once, and the progress is that of the rows', async () => {
    const db = await fill(35);
    const batches: number[] = [];
    expect(await runBackfills(db, [shopOf()], { onProgress: (_id, rows) => batches.push(rows) })).toEqual(['shop/0002_full_name']);
    expect(batches).toEqual([10, 10, 10, 5]);
    const rows = await list(db, people, { orderBy: ['id'] });
    expect(rows.map(({ full_name: name, touched }) => [name, touched])).toEqual(rows.map(({ first }) => [`${first}!`, 1]));
    expect(await stateOf(db)).toMatchObject({ state: 'finished', rowsDone: 35, rowsTotal: 35, waitsFor: null });
    expect((await backfillStatus(db, [shopOf()]))[0]?.progress).toMatchObject({ state: 'finished', share: 1, secondsLeft: null });
  });

  test('a finished back-fill does nothing, unless it is run again', async () => {
    const db = await fill(12);
    const shop = shopOf();
    await runBackfills(db, [shop]);
    expect(await runBackfills(db, [shop])).toEqual([]);
    await runBackfills(db, [shop], { only: ['shop/0002_full_name'] });
    expect((await list(db, people, { where: { touched: 1 } })).length).toBe(12);
    await runBackfills(db, [shop], { only: ['shop/0002_full_name'], again: true });
    expect((await list(db, people, { where: { touched: 2 } })).length).toBe(12);
  });

  test('rows that `where` does not select stay as they are', async () => {
    const db = await fill(25);
    await runBackfills(db, [shopOf({ where: { id: { gte: 20 } } })]);
    expect((await list(db, people, { where: { touched: 1 }, orderBy: ['id'] })).map(({ id }) => id)).toEqual([20, 21, 22, 23, 24]);
    expect(await stateOf(db)).toMatchObject({ rowsDone: 5, rowsTotal: 5 });
  });

  test('a batch that fails changes nothing; the next run goes on with it', async () => {
    const db = await fill(30);
    const failing = shopOf({
      async run(tx, rows) {
        for (const { id } of rows) {
          if (id === 15) throw new Error('no such name');
          await update(tx, people, id, { touched: 1 });
        }
      },
    });
    await expect(runBackfills(db, [failing])).rejects.toThrow('no such name');
    expect((await list(db, people, { where: { touched: 1 } })).length).toBe(10);
    expect(await stateOf(db)).toMatchObject({ state: 'failed', rowsDone: 10 });
    await runBackfills(db, [
      shopOf({ run: async (tx, rows) => Promise.all(rows.map(({ id, touched }) => update(tx, people, id, { touched: touched + 1 }))) }),
    ]);
    expect((await list(db, people, { where: { touched: 1 } })).length).toBe(30);
  });

  test('two runners at once do every row once', async () => {
    const db = await fill(200);
    const other = await openDatabase(database.url);
    try {
      await Promise.all([runBackfills(db, [shopOf()]), runBackfills(other, [shopOf()]), runBackfills(other, [shopOf()])]);
    } finally {
      await other.close();
    }
    expect((await list(db, people, { where: { touched: 1 } })).length).toBe(200);
    expect(await stateOf(db)).toMatchObject({ state: 'finished', rowsDone: 200 });
  });

  test('a paused back-fill stands still until it is resumed; a stopped one goes on later', async () => {
    const db = await fill(100);
    const waits: (string | null)[] = [];
    let paused: Promise<boolean> | undefined;
    const run = runBackfills(db, [shopOf()], {
      onProgress: (_id, _rows, waitsFor) => {
        waits.push(waitsFor);
        paused ??= changeState(db, key, ['running'], 'paused');
      },
    });
    await expect.poll(() => waits.at(-1)).toBe('paused');
    const { rowsDone } = (await stateOf(db)) ?? { rowsDone: 100 };
    expect(rowsDone).toBeLessThan(100);
    expect((await backfillStatus(db, [shopOf()]))[0]?.progress).toMatchObject({ state: 'paused', share: rowsDone / 100 });
    await changeState(db, key, ['paused'], 'running');
    await run;
    expect((await list(db, people, { where: { touched: 1 } })).length).toBe(100);

    await fill(50);
    const stop = new AbortController();
    expect(await runBackfills(db, [shopOf()], { signal: stop.signal, onProgress: () => stop.abort() })).toEqual([]);
    expect(await stateOf(db)).toMatchObject({ state: 'running', rowsDone: 10 });
    await runBackfills(db, [shopOf()]);
    expect((await list(db, people, { where: { touched: 1 } })).length).toBe(50);
  });

  test('a migration that requires a back-fill fails with the command, and runs when it is finished', async () => {
    const db = await fill(30);
    const sentence =
      'Migration shop/0003_require requires the back-fill shop/0002_full_name, which is not finished (not started). Run: npx kit backfill run 0002_full_name, then npx kit migrate.';
    await expect(migrate(db, [shopOf()])).rejects.toThrow(sentence);
    const stop = new AbortController();
    await runBackfills(db, [shopOf()], { signal: stop.signal, onProgress: () => stop.abort() });
    await expect(migrate(db, [shopOf()])).rejects.toThrow('which is not finished (running at 33 %)');
    await runBackfills(db, [shopOf()]);
    expect((await migrate(db, [shopOf()], { backup: false })).applied).toEqual(['shop/0003_require']);
  });

  test('a new database has nothing to do: its migrations run without the back-fill', async () => {
    const { db } = database;
    for (const table of ['people', 'kit_backfills', 'kit_migrations']) await db.query(`drop table if exists ${table}`);
    expect((await migrate(db, [shopOf()])).applied).toEqual(['shop/0001_initial', 'shop/0003_require']);
  });

  test('a back-fill waits for the migration before it', async () => {
    const { db } = database;
    for (const table of ['people', 'kit_backfills', 'kit_migrations']) await db.query(`drop table if exists ${table}`);
    await expect(runBackfills(db, [shopOf()])).rejects.toThrow(
      'Back-fill shop/0002_full_name comes after migration shop/0001_initial. Run: npx kit migrate',
    );
  });

  test('keys of several columns and of every kind are continued where the last batch ended', async () => {
    const { db } = database;
    const prices = model(
      'prices',
      { shop: t.text(20), big: t.bigint(), at: t.timestamp(), n: t.int() },
      { primaryKey: ['shop', 'big', 'at'] },
    );
    await db.query('drop table if exists kit_backfills');
    await migrate(db, [
      {
        name: 'prices',
        migrations: [migration('0001_initial', [createTable('prices', prices.columns, { primaryKey: ['shop', 'big', 'at'] })])],
      },
    ]);
    const rows = Array.from({ length: 40 }, (_, index) => ({
      shop: index % 2 === 0 ? 'a' : 'b',
      big: BigInt(index % 4) * 10n ** 15n,
      at: new Date(1_000_000 * index + 7),
      n: 0,
    }));
    await insertMany(db, prices, rows);
    const each = backfill('0002_count', {
      model: prices,
      batch: 3,
      run: async (tx, found) => {
        for (const { shop, big, at, n } of found) await update(tx, prices, { shop, big, at }, { n: n + 1 });
      },
    });
    await runBackfills(db, [{ name: 'prices', migrations: [], backfills: [each] }]);
    expect((await list(db, prices, { where: { n: 1 } })).length).toBe(40);
  });
});
