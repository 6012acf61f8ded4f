import Database from 'better-sqlite3';
import { CamelCasePlugin, Kysely, MysqlAdapter, PostgresDialect, SqliteDialect } from 'kysely';
import { Pool } from 'pg';
import { expect, test } from 'vitest';
import { describeForeignLibrary, newOrder, stored, type BusinessTransaction } from '../../../../../test/webhooks/foreign-library.ts';
import { publish } from '../publish.ts';
import { kyselyTransaction } from '../../../../db/engine/foreign/kysely.ts';

interface Tables {
  orders: { id: number; total: string };
}

const dialectOf = (dialect: string, url: string, path: string) =>
  dialect === 'postgres'
    ? new PostgresDialect({ pool: new Pool({ connectionString: url }) })
    : new SqliteDialect({ database: new Database(path) });

describeForeignLibrary(
  'Kysely',
  {
    savepoints: false,
    open: ({ dialect, url, path }) => {
      const db = new Kysely<Tables>({ dialect: dialectOf(dialect, url, path), plugins: [new CamelCasePlugin()] });
      const business = (trx: Parameters<typeof kyselyTransaction>[0]): BusinessTransaction => ({
        executor: (options) => kyselyTransaction(trx, options),
        nested: () => Promise.reject(new Error('only controlled transactions have savepoints; tested below')),
      });
      return {
        transact: (order, work) =>
          db.transaction().execute(async (trx) => {
            await trx.insertInto('orders').values({ id: order, total: '12.00' }).execute();
            return work(business(trx));
          }),
        outside: () => kyselyTransaction(db),
        close: () => db.destroy(),
      };
    },
  },
  (_library, database) => {
    test('a controlled transaction and its savepoints', async () => {
      const db = new Kysely<Tables>({ dialect: dialectOf(database.dialect, database.url, database.url.slice('sqlite:'.length)) });
      const [kept, dropped] = [newOrder(), newOrder()];
      const trx = await db.startTransaction().execute();
      await trx.insertInto('orders').values({ id: kept, total: '12.00' }).execute();
      await publish(kyselyTransaction(trx), 'order.paid', { order: kept }, { owner: 'ada' });
      const savepoint = await trx.savepoint('s').execute();
      await publish(kyselyTransaction(savepoint), 'order.paid', { order: dropped }, { owner: 'ada' });
      await savepoint.rollbackToSavepoint('s').execute();
      await trx.commit().execute();
      await db.destroy();
      expect(await stored(database, kept)).toEqual({ orders: 1, events: 1, deliveries: 1 });
      expect(await stored(database, dropped)).toEqual({ orders: 0, events: 0, deliveries: 0 });
    });

    test('a dialect that is neither is refused, unless it is said which it speaks', () => {
      const trx = {
        isTransaction: true,
        getExecutor: () => ({ adapter: new MysqlAdapter() }),
        executeQuery: async () => ({ rows: [] }),
      };
      expect(() => kyselyTransaction(trx)).toThrow(expect.objectContaining({ code: 'database_unsupported' }));
      expect(kyselyTransaction(trx, { dialect: 'postgres' }).dialect).toBe('postgres');
    });
  },
);
