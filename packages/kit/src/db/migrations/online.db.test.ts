import { expect, test } from 'vitest';
import { describeDatabases } from '../../testing/databases.ts';
import { t } from '../declare/column.ts';
import type { Database } from '../engine/db.ts';
import { openDatabase } from '../open/open-database.ts';
import { stepsOf } from './apply-online.ts';
import { checkDrift } from './drift.ts';
import { migrate } from './migrate.ts';
import { migration } from './migration.ts';
import { addCheck, addColumn, alterColumn, createIndex, createTable, dropColumn, dropIndex, type Operation } from './operation.ts';
import { planMigrations } from './plan.ts';

const initial = migration('0001_initial', [
  createTable('owners', { id: t.int().pk() }),
  createTable(
    'orders',
    { id: t.int().pk(), note: t.text().nullable(), owner_id: t.int().nullable() },
    { indexes: [{ columns: ['owner_id'] }] },
  ),
]);
const CHANGES: readonly (readonly [string, readonly Operation[]])[] = [
  ['a new index', [createIndex('orders', { columns: ['note', '-id'] })]],
  ['a unique index', [createIndex('orders', { columns: ['id', 'note'], unique: true, where: 'note is not null' })]],
  ['an index that goes', [dropIndex('orders', 'orders_owner_id_index')]],
  ['a check', [addCheck('orders', 'positive', 'id > 0')]],
  ['a column that becomes required', [alterColumn('orders', 'note', t.text())]],
  ['a reference', [alterColumn('orders', 'owner_id', t.ref('owners', { type: t.int() }).nullable())]],
  ['a column with a reference', addColumn('orders', 'other_id', t.ref('owners', { type: t.int() }).nullable())],
  ['a column with values', addColumn('orders', 'state', t.enum(['open', "it's"]).nullable())],
];

describeDatabases('a migration with online: true', (database) => {
  const fresh = async (): Promise<Database> => {
    const { db } = database;
    for (const table of ['orders', 'owners', 'kit_migrations']) await db.query(`drop table if exists ${table}`);
    await migrate(db, [{ name: 'shop', migrations: [initial] }]);
    await db.query('insert into owners (id) values (1)');
    await db.query(`insert into orders (id, note, owner_id) values (1, 'a', 1), (2, 'b', 1)`);
    return db;
  };
  const shopWith = (operations: readonly Operation[]) => [
    { name: 'shop', migrations: [initial, migration('0002_change', operations, { online: true })] },
  ];

  test.each(CHANGES)('leads to the same tables as without: %s', async (_name, operations) => {
    const db = await fresh();
    const modules = shopWith(operations);
    expect((await migrate(db, modules, { backup: false })).applied).toEqual(['shop/0002_change']);
    expect(await checkDrift([{ name: 'shop', migrations: [initial, migration('0002_change', operations)] }], db)).toEqual({
      models: [],
      database: [],
      additions: [],
    });
    expect(await db.query('select id from orders order by id')).toEqual([{ id: 1 }, { id: 2 }]);
  });

  if (database.dialect === 'sqlite') return;

  test.each(CHANGES)('goes on when it was killed after any of its statements: %s', async (_name, operations) => {
    const modules = shopWith(operations);
    const [step] = planMigrations(modules).steps.slice(1);
    const statements = step === undefined ? [] : operations.flatMap((operation) => stepsOf(operation, step.before));
    expect(statements.length).toBeGreaterThan(0);
    for (let killedAfter = 1; killedAfter <= statements.length; killedAfter++) {
      const db = await fresh();
      for (const { sql } of statements.slice(0, killedAfter)) await db.query(sql);
      await migrate(db, modules);
      expect((await checkDrift(modules, db)).database).toEqual([]);
      expect(await db.query('select conname from pg_constraint where not convalidated')).toEqual([]);
      expect(await db.query(`select conname from pg_constraint where conname like '%required%'`)).toEqual([]);
    }
  });

  test('a unique index that rows contradict is built again, and valid, once they are corrected', async () => {
    const db = await fresh();
    await db.query(`update orders set note = 'a'`);
    const modules = shopWith([createIndex('orders', { columns: ['note'], unique: true })]);
    await expect(migrate(db, modules)).rejects.toThrow('Migration shop/0002_change failed');
    await db.query(`update orders set note = 'c' where id = 2`);
    await migrate(db, modules);
    expect(await db.query(`select indisvalid from pg_index where indexrelid = 'orders_note_unique'::regclass`)).toEqual([
      { indisvalid: true },
    ]);
  });

  test('reads and writes go on while an index waits for an old transaction', async () => {
    const db = await fresh();
    const [old, other] = [await openDatabase(database.url), await openDatabase(database.url)];
    const [written, release] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
    try {
      const holding = old.transaction(async (tx) => {
        await tx.query(`update orders set note = 'x' where id = 1`);
        written.resolve(undefined);
        await release.promise;
      });
      await written.promise;
      const migrating = migrate(db, shopWith([createIndex('orders', { columns: ['note'] })]));
      await expect
        .poll(() => other.query(`select count(*) as n from pg_stat_progress_create_index where phase like 'waiting%'`))
        .toEqual([{ n: 1 }]);
      await other.query(`insert into orders (id, note) values (3, 'c')`);
      expect(await other.query('select count(*) as n from orders')).toEqual([{ n: 3 }]);
      release.resolve(undefined);
      await holding;
      expect((await migrating).applied).toEqual(['shop/0002_change']);
    } finally {
      release.resolve(undefined);
      await old.close();
      await other.close();
    }
  });

  test('two processes that migrate wait for each other', async () => {
    const db = await fresh();
    const other = await openDatabase(database.url);
    const modules = shopWith([createIndex('orders', { columns: ['note'] })]);
    try {
      const reports = await Promise.all([migrate(db, modules), migrate(other, modules)]);
      expect(reports.flatMap(({ applied }) => applied)).toEqual(['shop/0002_change']);
    } finally {
      await other.close();
    }
  });
});

test.each<[string, () => unknown, string]>([
  [
    'two operations',
    () => migration('0002_a', [addCheck('orders', 'a', 'id > 0'), addCheck('orders', 'b', 'id > 1')], { online: true }),
    'it has 2 operations',
  ],
  ['a column that is dropped', () => online(dropColumn('orders', 'note')), 'online: true is for one createIndex'],
  ['a new type', () => online(alterColumn('orders', 'note', t.int().nullable())), 'online: true is for one createIndex'],
  ['values for old rows', () => online(alterColumn('orders', 'note', t.text(), { backfill: `''` })), 'online: true is for one createIndex'],
])('%s cannot be online, and says so before a database is opened', (_name, plan, sentence) => {
  expect(plan).toThrow(sentence);
});

function online(operation: Operation): unknown {
  return planMigrations([{ name: 'shop', migrations: [initial, migration('0002_change', [operation], { online: true })] }]);
}
