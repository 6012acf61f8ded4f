import { DatabaseSync } from 'node:sqlite';
import { Client, Pool } from 'pg';
import { expect, test } from 'vitest';
import { migrateWebhooks } from '../../../../test/webhooks/outbox.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { publish } from '../publish.ts';
import { findEvent } from '../store.ts';
import { nodeSqliteTransaction } from './node-sqlite.ts';
import { pgTransaction } from './pg.ts';

describeDatabases(
  "publish in another library's transaction",
  (database) => {
    /** Runs `work` with an executor on a connection of its own. */
    async function withConnection(
      work: (run: (sql: string) => Promise<unknown>, executor: () => Parameters<typeof publish>[0]) => Promise<void>,
    ) {
      if (database.dialect === 'postgres') {
        const client = new Client({ connectionString: database.url });
        await client.connect();
        try {
          await work(
            (sql) => client.query(sql),
            () => pgTransaction(client),
          );
        } finally {
          await client.end();
        }
        return;
      }
      const file = new DatabaseSync(database.url.slice('sqlite:'.length));
      await work(
        async (sql) => file.exec(sql),
        () => nodeSqliteTransaction(file),
      ).finally(() => file.close());
    }

    test('an event exists exactly when the business transaction was committed', async () => {
      await withConnection(async (run, executor) => {
        await run('begin');
        const lost = await publish(executor(), 'order.paid', { n: 1 }, { owner: 'ada' });
        await run('rollback');
        await run('begin');
        const kept = await publish(executor(), 'order.paid', { n: 2 }, { owner: 'ada', orderingKey: 'k', idempotencyKey: 'once' });
        const again = await publish(executor(), 'order.paid', { n: 2 }, { owner: 'ada', idempotencyKey: 'once' });
        await run('commit');
        expect(await findEvent(database.db, lost.id)).toBeNull();
        expect(await findEvent(database.db, kept.id)).toMatchObject({ type: 'order.paid', data: '{"n":2}', owner_id: 'ada' });
        expect(again).toEqual({ id: kept.id, created: false, deliveries: 0 });
      });
    });

    test('without an open transaction nothing is written', async () => {
      await withConnection(async (_run, executor) => {
        await expect(publish(executor(), 'order.paid', {}, { owner: 'ada' })).rejects.toMatchObject({ code: 'no_transaction' });
      });
    });

    test('a pool of pg is refused', async () => {
      const pool = new Pool({ connectionString: 'postgres://nobody@127.0.0.1:1/none' });
      expect(() => pgTransaction(pool)).toThrow('A pool has no transaction');
      await pool.end();
    });
  },
  { prepare: async (db) => void (await migrateWebhooks(db)) },
);
