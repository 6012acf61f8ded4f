import { kyselyOf } from '../kysely/index.ts';
import { existsSync, rmSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { describeDatabases } from '../../testing/databases.ts';
import { t } from '../declare/column.ts';
import { openDatabase } from '../open/open-database.ts';
import { migrate, pendingMigrations } from './migrate.ts';
import { migration, type Migration } from './migration.ts';
import {
  addCheck,
  addColumn,
  alterColumn,
  code,
  createIndex,
  createTable,
  dropCheck,
  dropColumn,
  dropIndex,
  dropTable,
  renameColumn,
  renameTable,
  sql,
} from './operation.ts';

let counter = 0;
/** Tables and modules of their own for every test, on one database. */
const unique = (word: string): string => `${word}_${++counter}`;

describeDatabases('migrations', (database) => {
  const columnsOf = async (table: string): Promise<string[]> => {
    const text =
      database.dialect === 'sqlite'
        ? 'select name from pragma_table_info($1) order by name'
        : 'select column_name as name from information_schema.columns where table_name = $1 order by column_name';
    return (await database.db.query<{ name: string }>(text, [table])).map((row) => row.name);
  };

  test('pending migrations run once, in order, and are remembered', async () => {
    const [module, table] = [unique('shop'), unique('orders')];
    const migrations = [
      migration('0001_initial', [createTable(table, { id: t.uuidv7().pk(), label: t.text(20) })]),
      migration('0002_total', [addColumn(table, 'total', t.decimal(12, 2).dbDefault('0'))]),
    ];
    const modules = [{ name: module, migrations }];
    expect(await pendingMigrations(database.db, modules)).toEqual([`${module}/0001_initial`, `${module}/0002_total`]);
    const first = await migrate(database.db, modules);
    expect(first).toMatchObject({ applied: [`${module}/0001_initial`, `${module}/0002_total`], backups: [] });
    expect(await pendingMigrations(database.db, modules)).toEqual([]);
    expect(await migrate(database.db, modules)).toMatchObject({ applied: [] });
    expect(await columnsOf(table)).toEqual(['id', 'label', 'total']);
    const history = await database.db.query('select name, applied_at from kit_migrations where module = $1 order by name', [module]);
    expect(history).toEqual([
      { name: '0001_initial', applied_at: expect.any(Date) },
      { name: '0002_total', applied_at: expect.any(Date) },
    ]);
  });

  test('a dry run prints the SQL and changes nothing', async () => {
    const [module, table] = [unique('dry'), unique('dry_orders')];
    const modules = [{ name: module, migrations: [migration('0001_initial', [createTable(table, { id: t.uuidv7().pk() })])] }];
    const report = await migrate(database.db, modules, { dryRun: true });
    expect(report.statements[`${module}/0001_initial`]?.[0]).toContain(`create table "${table}"`);
    expect(await columnsOf(table)).toEqual([]);
    expect(await pendingMigrations(database.db, modules)).toHaveLength(1);
  });

  test('a migration edited after it was applied is refused with a sentence', async () => {
    const [module, table] = [unique('edited'), unique('edited_orders')];
    const before = [migration('0001_initial', [createTable(table, { id: t.uuidv7().pk() })])];
    const after = [migration('0001_initial', [createTable(table, { id: t.uuidv7().pk(), extra: t.text() })])];
    await migrate(database.db, [{ name: module, migrations: before }]);
    const refused = /was changed after it was applied .* put its text back and write a new migration/;
    await expect(migrate(database.db, [{ name: module, migrations: after }])).rejects.toThrow(refused);
    await expect(pendingMigrations(database.db, [{ name: module, migrations: after }])).rejects.toThrow(refused);
  });

  test('a new migration that sorts before an applied one is refused', async () => {
    const [module, table] = [unique('order'), unique('order_orders')];
    const second = migration('0002_initial', [createTable(table, { id: t.uuidv7().pk() })]);
    await migrate(database.db, [{ name: module, migrations: [second] }]);
    const late = migration('0001_late', [sql({ sqlite: 'select 1', postgres: 'select 1' })]);
    await expect(migrate(database.db, [{ name: module, migrations: [late, second] }])).rejects.toThrow('give it a later number');
  });

  test('migrations applied by a newer version are reported, not undone', async () => {
    const [module, table] = [unique('newer'), unique('newer_orders')];
    const one = migration('0001_initial', [createTable(table, { id: t.uuidv7().pk() })]);
    const two = migration('0002_more', [addColumn(table, 'more', t.text().nullable())]);
    await migrate(database.db, [{ name: module, migrations: [one, two] }]);
    const report = await migrate(database.db, [{ name: module, migrations: [one] }]);
    expect(report.unknown).toContain(`${module}/0002_more`);
    expect(await columnsOf(table)).toEqual(['id', 'more']);
  });

  test('another process that migrates is waited for as long as said, then named', async () => {
    const [module, table] = [unique('blocked'), unique('blocked_orders')];
    const modules = [{ name: module, migrations: [migration('0001_initial', [createTable(table, { id: t.uuidv7().pk() })])] }];
    const other = await database.open();
    const holding = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const held = migrate(other, [
      {
        name: unique('other'),
        migrations: [
          migration('0001_initial', [
            code('wait', async () => {
              holding.resolve();
              await release.promise;
            }),
          ]),
        ],
      },
    ]);
    await holding.promise;
    const waiting = migrate(database.db, modules, { lockWaitMs: 50 });
    waiting.catch(() => undefined);
    await expect(waiting).rejects.toMatchObject({ cause: { code: 'database_busy' } });
    release.resolve();
    await held;
    expect((await migrate(database.db, modules, { lockWaitMs: 50 })).applied).toEqual([`${module}/0001_initial`]);
  });

  test('a failing migration leaves nothing half done and the ones before it stay', async () => {
    const [module, table, other] = [unique('failing'), unique('failing_orders'), unique('failing_other')];
    const one = migration('0001_initial', [createTable(table, { id: t.uuidv7().pk(), label: t.text() })]);
    const fill = code('fill', async (tx) => {
      await tx.query(`insert into ${table} (id, label) values ($1, $2)`, ['00000000-0000-7000-8000-000000000001', 'kept?']);
    });
    const two = migration('0002_breaks', [
      createTable(other, { id: t.uuidv7().pk() }),
      addColumn(table, 'more', t.text().nullable()),
      alterColumn(table, 'label', t.text().nullable()),
      fill,
      sql({ sqlite: 'insert into nowhere values (1)', postgres: 'insert into nowhere values (1)' }),
    ]);
    const modules = [{ name: module, migrations: [one, two] }];
    await expect(migrate(database.db, modules)).rejects.toThrow(`Migration ${module}/0002_breaks failed and was rolled back`);
    expect(await columnsOf(table)).toEqual(['id', 'label']);
    expect(await columnsOf(other)).toEqual([]);
    expect(await database.db.query(`select * from ${table}`)).toEqual([]);
    expect(await pendingMigrations(database.db, modules)).toEqual([`${module}/0002_breaks`]);
    const isEnforced = database.dialect === 'sqlite' ? 'pragma foreign_keys' : 'select 1 as foreign_keys';
    expect(await database.db.query(isEnforced)).toEqual([{ foreign_keys: 1 }]);
  });

  test('columns change kind, nullability, default, length, values and reference, and rows keep their values', async () => {
    const [module, users, orders] = [unique('alter'), unique('alter_users'), unique('alter_orders')];
    const migrations = [
      migration('0001_initial', [
        createTable(users, { id: t.uuidv7().pk() }),
        createTable(orders, {
          id: t.uuidv7().pk(),
          label: t.text(5).nullable(),
          amount: t.int(),
          state: t.enum(['draft', 'paid']).dbDefault('draft'),
          owner_id: t.ref(users, { onDelete: 'cascade' }),
        }),
      ]),
      migration('0002_alter', [
        alterColumn(orders, 'label', t.text(40), { backfill: `'none'` }),
        alterColumn(orders, 'amount', t.bigint().dbDefault(7n)),
        alterColumn(orders, 'state', t.enum(['draft', 'paid', 'void']).dbDefault('draft')),
        alterColumn(orders, 'owner_id', t.ref(users).nullable()),
        addColumn(orders, 'price', t.decimal(12, 2), { backfill: { sqlite: `amount || '.00'`, postgres: 'amount::numeric' } }),
        addColumn(orders, 'made_at', t.timestamp().dbDefault('now')),
        addColumn(orders, 'code', t.text().nullable().unique()),
        addCheck(orders, 'amount_positive', 'amount >= 0'),
        renameColumn(orders, 'amount', 'quantity'),
        createIndex(orders, { columns: ['owner_id', '-made_at'], where: 'owner_id is not null' }),
      ]),
    ];
    await migrate(database.db, [{ name: module, migrations: migrations.slice(0, 1) }]);
    const user = '00000000-0000-7000-8000-000000000001';
    await database.db.query(`insert into ${users} (id) values ($1)`, [user]);
    await database.db.query(`insert into ${orders} (id, label, amount, owner_id) values ($1, $2, $3, $4), ($5, null, 2, $4)`, [
      user,
      'five5',
      1,
      user,
      user.replace(/1$/, '2'),
    ]);
    await migrate(database.db, [{ name: module, migrations }], { backup: false });
    const rows = await database.db.query(`select * from ${orders} order by id`);
    expect(rows).toEqual([
      { id: user, label: 'five5', quantity: 1n, state: 'draft', owner_id: user, price: '1.00', made_at: expect.any(Date), code: null },
      {
        id: user.replace(/1$/, '2'),
        label: 'none',
        quantity: 2n,
        state: 'draft',
        owner_id: user,
        price: '2.00',
        made_at: expect.any(Date),
        code: null,
      },
    ]);
    const insertOrder = (values: Record<string, unknown>): Promise<unknown> =>
      kyselyOf<Record<string, Record<string, unknown>>>(database.db)
        .insertInto(orders)
        .values({ label: 'x', price: '1', ...values })
        .execute();
    await insertOrder({ id: user.replace(/1$/, '3'), state: 'void', owner_id: null, code: 'a' });
    expect(await database.db.query(`select quantity, state from ${orders} where code = 'a'`)).toEqual([{ quantity: 7n, state: 'void' }]);
    await expect(insertOrder({ id: user.replace(/1$/, '4'), quantity: -1 })).rejects.toThrow(/amount_positive/);
    await expect(insertOrder({ id: user.replace(/1$/, '4'), code: 'a' })).rejects.toThrow(/unique/i);
    await expect(insertOrder({ id: user.replace(/1$/, '4'), state: 'gone' })).rejects.toThrow(/check/i);
    await expect(insertOrder({ id: user.replace(/1$/, '4'), owner_id: user.replace(/1$/, '9') })).rejects.toThrow(/foreign key/i);
    await expect(database.db.query(`delete from ${users} where id = $1`, [user])).rejects.toThrow(/foreign key/i); // restrict now
  });

  test('tables, columns and indexes are renamed and dropped, and later migrations find them under their new names', async () => {
    const [module, users, people, orders] = [unique('rename'), unique('rename_users'), unique('rename_people'), unique('rename_orders')];
    const migrations = [
      migration('0001_initial', [
        createTable(users, { id: t.uuidv7().pk(), kind: t.enum(['a', 'b']), email: t.text().unique() }),
        createTable(orders, { id: t.uuidv7().pk(), user_id: t.ref(users, { onDelete: 'cascade' }), gone: t.text().nullable() }),
      ]),
      migration('0002_rename', [renameTable(users, people), renameColumn(orders, 'user_id', 'person_id'), dropColumn(orders, 'gone')]),
      migration('0003_again', [
        alterColumn(people, 'kind', t.enum(['a', 'b', 'c'])),
        alterColumn(orders, 'person_id', t.ref(people, { onDelete: 'set null' }).nullable()),
        dropIndex(people, `${users}_email_unique`),
        addCheck(people, 'mail', `email <> ''`),
        dropCheck(people, 'mail'),
      ]),
    ];
    await migrate(database.db, [{ name: module, migrations: migrations.slice(0, 1) }]);
    const id = '00000000-0000-7000-8000-000000000001';
    await database.db.query(`insert into ${users} (id, kind, email) values ($1, 'a', 'x')`, [id]);
    await database.db.query(`insert into ${orders} (id, user_id) values ($1, $1)`, [id]);
    await migrate(database.db, [{ name: module, migrations }], { backup: false });
    await database.db.query(`insert into ${people} (id, kind, email) values ($1, 'c', 'x')`, [id.replace(/1$/, '2')]);
    expect(await columnsOf(orders)).toEqual(['id', 'person_id']);
    await database.db.query(`delete from ${people} where id = $1`, [id]);
    expect(await database.db.query(`select * from ${orders}`)).toEqual([{ id, person_id: null }]);
    const drop = migration('0004_drop', [dropTable(orders), dropTable(people)]);
    await migrate(database.db, [{ name: module, migrations: [...migrations, drop] }], { backup: false });
    expect(await columnsOf(people)).toEqual([]);
  });

  test('random changes to a table with cascading children keep every row of all of them', async () => {
    const change = fc.constantFrom('null', 'not null', 'add', 'add default', 'widen', 'check', 'drop');
    const people = fc.array(fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 4 }), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 4 }), people, async (changes, rows) => {
        const [module, parents, children, leaves] = [unique('tree'), unique('parents'), unique('children'), unique('leaves')];
        const initial = migration('0001_initial', [
          createTable(
            parents,
            { id: t.int().pk(), label: t.text(10), boss_id: t.ref(parents, { type: t.int(), onDelete: 'cascade' }).nullable() },
            { indexes: [{ columns: ['label'] }] },
          ),
          createTable(children, { id: t.int().pk(), parent_id: t.ref(parents, { type: t.int(), onDelete: 'cascade' }) }),
          createTable(leaves, { id: t.int().pk(), child_id: t.ref(children, { type: t.int(), onDelete: 'cascade' }) }),
        ]);
        await migrate(database.db, [{ name: module, migrations: [initial] }]);
        let child = 0;
        let leaf = 0;
        for (const [index, kids] of rows.entries()) {
          await database.db.query(`insert into ${parents} (id, label, boss_id) values ($1, $2, $3)`, [
            index,
            `p${index}`,
            index === 0 ? null : index - 1,
          ]);
          for (const count of kids) {
            await database.db.query(`insert into ${children} (id, parent_id) values ($1, $2)`, [++child, index]);
            for (let each = 0; each < count; each++)
              await database.db.query(`insert into ${leaves} (id, child_id) values ($1, $2)`, [++leaf, child]);
          }
        }
        const snapshot = async (): Promise<unknown[]> => [
          await database.db.query(`select id, label, boss_id from ${parents} order by id`),
          await database.db.query(`select * from ${children} order by id`),
          await database.db.query(`select * from ${leaves} order by id`),
        ];
        const before = await snapshot();
        const migrations = [
          initial,
          ...changes.map((each, index) => migration(`000${index + 2}_change`, operations(each, index, parents))),
        ];
        await migrate(database.db, [{ name: module, migrations }], { backup: false });
        expect(await snapshot()).toEqual(before);
        await database.db.query(`delete from ${parents} where id = 0`); // cascades still work
        expect(await database.db.query(`select id from ${leaves}`)).toEqual([]);
      }),
      { numRuns: 12 },
    );
  });

  test('a migration that would leave dangling references is refused as a whole', async () => {
    const [module, parents, children] = [unique('dangle'), unique('dangle_parents'), unique('dangle_children')];
    const initial = migration('0001_initial', [
      createTable(parents, { id: t.int().pk(), label: t.text().nullable() }),
      createTable(children, { id: t.int().pk(), parent_id: t.ref(parents, { type: t.int() }) }),
    ]);
    await migrate(database.db, [{ name: module, migrations: [initial] }]);
    await database.db.query(`insert into ${parents} (id) values (1), (2)`);
    await database.db.query(`insert into ${children} (id, parent_id) values (1, 1)`);
    const bad = migration('0002_bad', [
      alterColumn(parents, 'label', t.text().dbDefault('x'), { backfill: `'x'` }),
      sql({ sqlite: `delete from ${parents}`, postgres: `delete from ${parents}` }),
    ]);
    await expect(migrate(database.db, [{ name: module, migrations: [initial, bad] }], { backup: false })).rejects.toThrow(
      /refer|foreign key/,
    );
    expect(await database.db.query(`select id from ${parents}`)).toHaveLength(2);
    const drop = migration('0002_drop', [dropTable(parents)]);
    await expect(migrate(database.db, [{ name: module, migrations: [initial, drop] }])).rejects.toThrow(
      `"${parents}" is referenced by "${children}.parent_id"`,
    );
  });

  test("a user's own indexes, triggers and views survive the changes", async () => {
    const [module, table, trigger] = [unique('own'), unique('own_orders'), unique('own_trigger')];
    const initial = migration('0001_initial', [createTable(table, { id: t.int().pk(), label: t.text().nullable() })]);
    await migrate(database.db, [{ name: module, migrations: [initial] }]);
    await database.db.query(`create index ${table}_mine on ${table} (label, id)`);
    await database.db.query(`create view ${table}_view as select id, label from ${table}`);
    if (database.dialect === 'sqlite')
      await database.db.query(
        `create trigger ${trigger} after insert on ${table} begin update ${table} set label = 'touched' where id = new.id; end`,
      );
    await database.db.query(`insert into ${table} (id, label) values (1, 'a')`);
    await migrate(
      database.db,
      [{ name: module, migrations: [initial, migration('0002_change', [alterColumn(table, 'label', t.text(), { backfill: `''` })])] }],
      { backup: false },
    );
    const indexes = await database.db.query(
      database.dialect === 'sqlite'
        ? `select name from sqlite_master where name in ($1, $2)`
        : `select indexname from pg_indexes where indexname in ($1, $2)`,
      [`${table}_mine`, trigger],
    );
    expect(indexes).toHaveLength(database.dialect === 'sqlite' ? 2 : 1);
    expect(await database.db.query(`select id from ${table}_view`)).toEqual([{ id: 1 }]);
  });

  test('statements prepared before a migration see the new columns after it, on this handle and on others', async () => {
    const [module, table] = [unique('stale'), unique('stale_orders')];
    const other = await database.open();
    const initial = migration('0001_initial', [createTable(table, { id: t.int().pk() })]);
    await migrate(database.db, [{ name: module, migrations: [initial] }]);
    await database.db.query(`insert into ${table} (id) values (1)`);
    for (let each = 0; each < 3; each++)
      for (const db of [database.db, other]) expect(await db.query(`select * from ${table}`)).toEqual([{ id: 1 }]);
    await migrate(database.db, [
      { name: module, migrations: [initial, migration('0002_more', [addColumn(table, 'more', t.bigint().dbDefault(5n))])] },
    ]);
    for (const db of [database.db, other]) expect(await db.query(`select * from ${table}`)).toEqual([{ id: 1, more: 5n }]);
  });

  test('a copy of an SQLite file is kept before a table with rows is rebuilt', async () => {
    const [module, table] = [unique('backup'), unique('backup_orders')];
    const initial = migration('0001_initial', [createTable(table, { id: t.int().pk(), label: t.text() })]);
    await migrate(database.db, [{ name: module, migrations: [initial] }]);
    await database.db.query(`insert into ${table} (id, label) values (1, 'before')`);
    const { backups } = await migrate(database.db, [
      { name: module, migrations: [initial, migration('0002_drop', [dropColumn(table, 'label')])] },
    ]);
    expect(backups).toHaveLength(database.dialect === 'sqlite' ? 1 : 0);
    for (const path of backups) {
      expect(existsSync(path)).toBe(true);
      const copy = await openDatabase(`sqlite:${path}`);
      expect(await copy.query(`select * from ${table}`)).toEqual([{ id: 1, label: 'before' }]);
      await copy.close();
      rmSync(path);
    }
  });
});

function operations(change: string, index: number, table: string): Migration['operations'] {
  switch (change) {
    case 'null':
      return [alterColumn(table, 'label', t.text(10).nullable())];
    case 'not null':
      return [alterColumn(table, 'label', t.text(10), { backfill: `''` })];
    case 'add':
      return addColumn(table, `added_${index}`, t.text(), { backfill: 'label' });
    case 'add default':
      return addColumn(table, `added_${index}`, t.timestamp().dbDefault('now'));
    case 'widen':
      return [alterColumn(table, 'label', t.text())];
    case 'check':
      return [addCheck(table, `check_${index}`, 'id >= 0')];
    default:
      return [...addColumn(table, `passing_${index}`, t.int().dbDefault(0)), dropColumn(table, `passing_${index}`)];
  }
}
