import { expect, test } from 'vitest';
import { describeDatabases } from '../../testing/databases.ts';
import type { Db } from './db.ts';
import type { QueryEvent } from './query-observer.ts';
import { countQueries } from './query-observer.ts';

const prepare = async (db: Db): Promise<void> => {
  await db.query('create table entries (label text not null unique)');
};

describeDatabases(
  'observing a database',
  (database) => {
    test('an observer hears every statement, in and outside transactions, without values, until it is removed', async () => {
      const events: QueryEvent[] = [];
      const stop = database.db.observe({ onQuery: (event) => events.push(event) });
      await database.db.query('insert into entries (label) values ($1)', ['secret-1']);
      await database.db.transaction((tx) => tx.query('select label from entries where label = $1', ['secret-1']));
      for await (const rows of database.db.stream('select label from entries')) expect(rows).toHaveLength(1);
      await expect(database.db.query('insert into entries (label) values ($1)', ['secret-1'])).rejects.toThrow(/unique/i);
      stop();
      await database.db.query('select 1');
      expect(events.map(({ sql }) => sql.split(' ')[0])).toEqual(['insert', 'select', 'select', 'insert']);
      expect(events.map(({ failed }) => failed)).toEqual([false, false, false, true]);
      expect(events[3]?.errorType).toMatch(database.dialect === 'postgres' ? /^23505$/ : /^ERR_SQLITE/);
      expect(events.every(({ dialect, durationMs }) => dialect === database.dialect && durationMs >= 0)).toBe(true);
      expect(JSON.stringify(events)).not.toContain('secret-1');
    });

    test('a statement is reported once, whether it is answered at once or later', async () => {
      const { count } = await countQueries(async () => {
        await database.db.query('select 1');
        await database.db.transaction((tx) => tx.query('select 2'));
      });
      expect(count).toBe(2);
    });

    test('the pool says who uses a connection and who waits for one', async () => {
      const db = await database.open({ poolMax: 1 });
      const begun = Promise.withResolvers<void>();
      const end = Promise.withResolvers<void>();
      const holder = db.transaction(async (tx) => {
        await tx.query('select 1');
        begun.resolve();
        await end.promise;
      });
      await begun.promise;
      const waiter = db.query("insert into entries (label) values ('waited')");
      const held = db.pool;
      end.resolve();
      await Promise.all([holder, waiter]);
      expect(held).toMatchObject({ max: 1, used: 1, waiting: 1 });
      expect(db.pool).toMatchObject({ max: 1, used: 0, waiting: 0 });
      // A free connection is there: the statement does not wait for one.
      const served = db.query('select 1');
      expect(db.pool.waiting).toBe(0);
      await served;
    });

    // SQLite never retries: BEGIN IMMEDIATE takes the write lock first.
    if (database.dialect === 'sqlite') return;

    test('a transaction that is run again is reported as a retry', async () => {
      let retries = 0;
      let attempts = 0;
      const stop = database.db.observe({ onRetry: () => (retries += 1) });
      await database.db.transaction(
        async () => {
          attempts += 1;
          if (attempts < 3) throw Object.assign(new Error('conflict'), { code: '40001' });
        },
        { retries: 5 },
      );
      stop();
      expect([attempts, retries]).toEqual([3, 2]);
    });
  },
  { prepare },
);
