import Database from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeForeignLibrary, newOrder, stored } from '../../../../../test/webhooks/foreign-library.ts';
import { sqliteLibrary } from '../../../../../test/webhooks/sqlite-library.ts';
import { publish, publishSync } from '../publish.ts';
import { betterSqlite3Transaction } from '../../../../db/engine/foreign/better-sqlite3.ts';

describeForeignLibrary(
  'better-sqlite3',
  {
    dialects: ['sqlite'],
    tellsTransactionsApart: [],
    open: ({ path }) => {
      const database = new Database(path);
      return sqliteLibrary(database, (options) => betterSqlite3Transaction(database, options));
    },
  },
  (_library, database) => {
    let file: Database.Database;
    beforeAll(() => {
      file = new Database(database.url.slice('sqlite:'.length));
    });
    afterAll(() => file.close());
    const insert = (order: number) => file.prepare('insert into orders values (?, ?)').run(order, '12.00');

    test('publishSync writes within a transaction function', async () => {
      const order = newOrder();
      const pay = file.transaction(() => {
        insert(order);
        return publishSync(betterSqlite3Transaction(file), 'order.paid', { order }, { owner: 'ada' });
      });
      expect(pay()).toMatchObject({ created: true, deliveries: 1 });
      expect(await stored(database, order)).toEqual({ orders: 1, events: 1, deliveries: 1 });
    });

    test('publishSync leaves nothing behind a transaction function that throws', async () => {
      const order = newOrder();
      const pay = file.transaction(() => {
        insert(order);
        publishSync(betterSqlite3Transaction(file), 'order.paid', { order }, { owner: 'ada' });
        throw new Error('refused');
      });
      expect(pay).toThrow('refused');
      expect(await stored(database, order)).toEqual({ orders: 0, events: 0, deliveries: 0 });
    });

    test('a refusal of publishSync is thrown at once and rolls the transaction function back', async () => {
      const order = newOrder();
      const pay = file.transaction(() => {
        insert(order);
        publishSync(betterSqlite3Transaction(file), 'order.paid', { order }, {});
      });
      expect(pay).toThrow(expect.objectContaining({ code: 'audience_missing' }));
      expect(await stored(database, order)).toEqual({ orders: 0, events: 0, deliveries: 0 });
    });

    test('an async transaction function, which the library refuses, leaves nothing, neither now nor later', async () => {
      const order = newOrder();
      let published: Promise<unknown> | undefined;
      const pay = file.transaction(async () => {
        insert(order);
        published = publish(betterSqlite3Transaction(file), 'order.paid', { order }, { owner: 'ada' });
        await published;
      });
      expect(pay).toThrow('cannot return a promise');
      await published;
      expect(await stored(database, order)).toEqual({ orders: 0, events: 0, deliveries: 0 });
    });
  },
);
