import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import Database from 'better-sqlite3';
import { sql } from 'drizzle-orm';
import { drizzle as betterSqlite3Drizzle } from 'drizzle-orm/better-sqlite3';
import { drizzle as nodePostgresDrizzle } from 'drizzle-orm/node-postgres';
import { integer as pgInteger, pgTable, text as pgText } from 'drizzle-orm/pg-core';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { drizzle as proxyDrizzle } from 'drizzle-orm/sqlite-proxy';
import { Pool } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  describeForeignLibrary,
  newOrder,
  stored,
  type BusinessTransaction,
  type ForeignLibrary,
} from '../../../../../test/webhooks/foreign-library.ts';
import { publishSync } from '../publish.ts';
import { drizzleTransaction } from '../../../../db/engine/foreign/drizzle.ts';

const pgOrders = pgTable('orders', { id: pgInteger().primaryKey(), total: pgText().notNull() });
const orders = sqliteTable('orders', { id: integer().primaryKey(), total: text().notNull() });

describeForeignLibrary(
  'Drizzle',
  {
    tellsTransactionsApart: ['postgres'],
    open: ({ dialect, url, path }) => (dialect === 'postgres' ? onPostgres(url) : onAsyncSqlite(path)),
  },
  (_library, database) => {
    if (database.dialect === 'postgres') {
      test('publishSync is refused on a driver that answers with promises', async () => {
        const pool = new Pool({ connectionString: database.url });
        await nodePostgresDrizzle(pool).transaction(async (tx) => {
          const publishing = () => publishSync(drizzleTransaction(tx, sql) as never, 'order.paid', {}, { owner: 'ada' });
          expect(publishing).toThrow(expect.objectContaining({ code: 'not_synchronous' }));
        });
        await pool.end();
      });
      return;
    }

    let file: Database.Database;
    beforeAll(() => {
      file = new Database(database.url.slice('sqlite:'.length));
    });
    afterAll(() => file.close());

    test('on better-sqlite3 publishSync commits with the transaction', async () => {
      const order = newOrder();
      const event = betterSqlite3Drizzle(file).transaction((tx) => {
        tx.insert(orders).values({ id: order, total: '12.00' }).run();
        return publishSync(drizzleTransaction(tx, sql), 'order.paid', { order }, { owner: 'ada' });
      });
      expect(event).toMatchObject({ created: true, deliveries: 1 });
      expect(await stored(database, order)).toEqual({ orders: 1, events: 1, deliveries: 1 });
    });

    test('on better-sqlite3 publishSync is refused after the transaction has ended', async () => {
      const order = newOrder();
      const kept: Parameters<typeof publishSync>[0][] = [];
      const pay = () =>
        betterSqlite3Drizzle(file).transaction((tx) => {
          kept.push(drizzleTransaction(tx, sql));
          tx.rollback();
        });
      expect(pay).toThrow('Rollback');
      for (const tx of kept)
        expect(() => publishSync(tx, 'order.paid', { order }, { owner: 'ada' })).toThrow(
          expect.objectContaining({ code: 'no_transaction' }),
        );
      expect(kept).toHaveLength(1);
      expect(await stored(database, order)).toEqual({ orders: 0, events: 0, deliveries: 0 });
    });

    test('on better-sqlite3 publishSync is rolled back with the transaction', async () => {
      const order = newOrder();
      const pay = () =>
        betterSqlite3Drizzle(file).transaction((tx) => {
          tx.insert(orders).values({ id: order, total: '12.00' }).run();
          publishSync(drizzleTransaction(tx, sql), 'order.paid', { order }, { owner: 'ada' });
          tx.rollback();
        });
      expect(pay).toThrow('Rollback');
      expect(await stored(database, order)).toEqual({ orders: 0, events: 0, deliveries: 0 });
    });
  },
);

function onPostgres(url: string): ForeignLibrary {
  const pool = new Pool({ connectionString: url });
  const db = nodePostgresDrizzle(pool);
  type Transaction = Parameters<Parameters<typeof db.transaction>[0]>[0];
  const business = (tx: Transaction): BusinessTransaction => ({
    executor: (options) => drizzleTransaction(tx, sql, options),
    nested: (work) => tx.transaction((inner) => work(business(inner))),
  });
  return {
    transact: (order, work) =>
      db.transaction(async (tx) => {
        await tx.insert(pgOrders).values({ id: order, total: '12.00' });
        return work(business(tx));
      }),
    outside: () => drizzleTransaction(db as never, sql),
    close: () => pool.end(),
  };
}

/** One of Drizzle's asynchronous SQLite drivers; this one leaves the connection to the application. */
function onAsyncSqlite(path: string): ForeignLibrary {
  const file = new DatabaseSync(path);
  const db = proxyDrizzle(async (query, parameters, method) => {
    const statement = file.prepare(query);
    statement.setReturnArrays(true);
    const rows = statement.all(...(parameters as SQLInputValue[])) as unknown as unknown[][];
    return { rows: method === 'get' ? (rows[0] ?? []) : rows };
  });
  type Transaction = Parameters<Parameters<typeof db.transaction>[0]>[0];
  const business = (tx: Transaction): BusinessTransaction => ({
    executor: (options) => drizzleTransaction(tx, sql, options),
    nested: (work) => tx.transaction((inner) => work(business(inner))),
  });
  return {
    transact: (order, work) =>
      db.transaction(async (tx) => {
        await tx.insert(orders).values({ id: order, total: '12.00' });
        return work(business(tx));
      }),
    outside: () => drizzleTransaction(db as never, sql),
    close: () => file.close(),
  };
}
