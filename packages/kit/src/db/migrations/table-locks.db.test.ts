import { expect, test } from 'vitest';
import { describeDatabases } from '../../testing/databases.ts';
import { t } from '../declare/column.ts';
import type { Database } from '../engine/db.ts';
import { openDatabase } from '../open/open-database.ts';
import { migrate, pendingMigrations } from './migrate.ts';
import { migration } from './migration.ts';
import { addColumn, createTable } from './operation.ts';

const initial = migration('0001_initial', [createTable('orders', { id: t.int().pk() })]);
const added = migration('0002_note', [addColumn('orders', 'note', t.text().nullable())]);
const shop = { name: 'shop', migrations: [initial, added] };

describeDatabases('a migration of a table that others use', (database) => {
  const held = async (work: (db: Database) => Promise<void>): Promise<void> => {
    const { db } = database;
    for (const table of ['orders', 'kit_migrations']) await db.query(`drop table if exists ${table}`);
    await migrate(db, [{ name: 'shop', migrations: [initial] }]);
    const reader = await openDatabase(database.url);
    const release = Promise.withResolvers<undefined>();
    const reading = Promise.withResolvers<undefined>();
    const report = reader.transaction(async (tx) => {
      await tx.query('select id from orders');
      reading.resolve(undefined);
      await release.promise;
    });
    try {
      await reading.promise;
      await work(db);
      release.resolve(undefined);
      await report;
    } finally {
      release.resolve(undefined);
      await reader.close();
    }
  };

  test.runIf(database.dialect === 'postgres')(
    'gives up after a short wait and is tried again, so that reads go on; it is applied afterwards',
    async () => {
      const tries: object[] = [];
      let migrating: Promise<unknown> = Promise.resolve();
      await held(async (db) => {
        const log = { warn: (fields: object) => void tries.push(fields), error: () => undefined };
        migrating = migrate(db, [shop], { lockTimeoutMs: 100, log });
        await expect.poll(() => tries.length).toBe(1);
        // Between two tries nothing waits: without the limit this read would wait behind the migration until the report ends.
        expect(await db.query('select id from orders')).toEqual([]);
      });
      await migrating;
      expect(tries[0]).toEqual({ migration: 'shop/0002_note', attempt: 1 });
      expect(await pendingMigrations(database.db, [shop])).toEqual([]);
    },
  );

  test.runIf(database.dialect === 'postgres')(
    'fails with who uses the table when the time for all tries is over, and changes nothing',
    async () => {
      await held(async (db) => {
        await expect(migrate(db, [shop], { lockTimeoutMs: 50, lockWaitMs: 500 })).rejects.toThrow(
          /^Migration shop\/0002_note did not get the locks of its tables within 1 s \(1 try\), and nothing of it was applied\. "orders" is in use by process \d+ \(idle in transaction for 0 s.*\)\. End the long transactions/,
        );
        expect(await pendingMigrations(db, [shop])).toEqual(['shop/0002_note']);
      });
    },
  );
});
