import { expect, test } from 'vitest';
import { describeDatabases } from '../../testing/databases.ts';
import { t } from '../declare/column.ts';
import { model } from '../declare/model.ts';
import { backfill } from '../backfills/backfill.ts';
import { migrate, pendingMigrations } from '../migrations/migrate.ts';
import { migration } from '../migrations/migration.ts';
import { addCheck, addColumn, alterColumn, code, createIndex, createTable, dropColumn } from '../migrations/operation.ts';
import { explainMigrations } from './explain-migrations.ts';

const columns = { id: t.int().pk(), note: t.text().nullable(), old: t.text().nullable() };
const orders = model('orders', { id: t.int().pk(), note: t.text().nullable() });
const initial = migration('0001_initial', [createTable('orders', columns)]);
const fill = backfill('0002_note', { model: orders, where: { note: null }, run: () => Promise.resolve() });
const shop = {
  name: 'shop',
  models: [orders],
  backfills: [fill],
  migrations: [
    initial,
    migration('0003_index', [createIndex('orders', { columns: ['note'] }), ...addColumn('orders', 'more', t.int().dbDefault(0))]),
    migration('0004_lines', [
      createTable('lines', { id: t.int().pk() }),
      createIndex('lines', { columns: ['-id'] }),
      code('count', () => Promise.resolve()),
    ]),
    migration('0005_require', [alterColumn('orders', 'note', t.text())], { online: true, backfills: ['0002_note'] }),
    migration('0006_rules', [addCheck('orders', 'positive', 'id > 0'), dropColumn('orders', 'old')]),
  ],
};

describeDatabases('what kit migrate plan shows', (database) => {
  test('every pending operation has its lock, its work on the rows of today, its safe form, and what it does to running code', async () => {
    const { db } = database;
    await migrate(db, [{ name: 'shop', migrations: [initial] }]);
    await db.query(`insert into orders (id) values ${Array.from({ length: 500 }, (_, id) => `(${id + 1})`).join(', ')}`);
    if (db.dialect === 'postgres') await db.query('analyze orders');
    const { migrations } = await explainMigrations(db, [shop]);
    expect(migrations.map(({ id }) => id)).toEqual(['shop/0003_index', 'shop/0004_lines', 'shop/0005_require', 'shop/0006_rules']);
    const [index, lines, require, rules] = migrations;
    const isPostgres = db.dialect === 'postgres';
    expect(index?.operations[0]).toMatchObject({
      text: 'create index "orders_note_index"',
      tables: [{ table: 'orders', lock: isPostgres ? 'SHARE' : 'writer', waits: 'writes', work: 'index', rows: 500 }],
      safe: expect.stringContaining(isPostgres ? '{ online: true }' : 'at a quiet time') as string,
      runningCode: null,
    });
    // The lock of the added column stays until the migration commits; the index was built before it.
    expect(index?.blocked).toMatchObject([{ table: 'orders', waits: isPostgres ? 'reads and writes' : 'writes' }]);
    // Nobody uses a table that does not exist yet.
    expect(lines).toMatchObject({
      blocked: [],
      operations: [{ tables: [] }, { tables: [], safe: null }, { tables: null, text: 'code "count"' }],
    });
    expect(require).toMatchObject({
      online: true,
      requires: ['shop/0002_note'],
    });
    expect(rules?.operations.map(({ runningCode }) => runningCode)).toEqual([
      'writes to "orders" that contradict the check fail',
      'every read and write of "orders" fails if its model still has "old"',
    ]);
    expect(await pendingMigrations(db, [shop])).toHaveLength(4);
  });

  test('columns that no model has any more are listed until a migration drops them', async () => {
    const left = { name: 'shop', models: [orders], migrations: [initial] };
    expect((await explainMigrations(database.db, [left])).left).toEqual(['orders.old']);
  });
});
