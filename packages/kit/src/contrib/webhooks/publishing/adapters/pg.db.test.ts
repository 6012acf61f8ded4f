import { Client, Pool } from 'pg';
import { expect, test } from 'vitest';
import { describeForeignLibrary, type BusinessTransaction } from '../../../../../test/webhooks/foreign-library.ts';
import { pgTransaction } from '../../../../db/engine/foreign/pg.ts';

describeForeignLibrary(
  'pg',
  {
    dialects: ['postgres'],
    open: async ({ url }) => {
      const client = new Client({ connectionString: url });
      await client.connect();
      const within = async <T>(start: string, end: string, undo: string, work: () => Promise<T>): Promise<T> => {
        await client.query(start);
        try {
          const result = await work();
          await client.query(end);
          return result;
        } catch (error) {
          await client.query(undo);
          throw error;
        }
      };
      const business: BusinessTransaction = {
        executor: (options) => pgTransaction(client, options),
        nested: (work) => within('savepoint s', 'release savepoint s', 'rollback to savepoint s', () => work(business)),
      };
      return {
        transact: (order, work) =>
          within('begin', 'commit', 'rollback', async () => {
            await client.query('insert into orders values ($1, $2)', [order, '12.00']);
            return work(business);
          }),
        outside: () => pgTransaction(client),
        close: () => client.end(),
      };
    },
  },
  () => {
    test('a pool is refused', async () => {
      const pool = new Pool({ connectionString: 'postgres://unreachable@127.0.0.1:1/none' });
      expect(() => pgTransaction(pool)).toThrow('A pool has no transaction');
      await pool.end();
    });
  },
);
