import { defineEntity, p } from '@mikro-orm/core';
import { MikroORM as PostgresOrm } from '@mikro-orm/postgresql';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { MikroORM as SqliteOrm } from '@mikro-orm/sqlite';
import { expect, test } from 'vitest';
import { describeForeignLibrary, newOrder, stored, type BusinessTransaction } from '../../../../../test/webhooks/foreign-library.ts';
import { publish } from '../publish.ts';
import { mikroOrmTransaction } from '../../../../db/engine/foreign/mikro-orm.ts';

const Order = defineEntity({
  name: 'Order',
  tableName: 'orders',
  properties: { id: p.integer().primary(), total: p.string() },
});

describeForeignLibrary(
  'MikroORM',
  {
    commitHook: true,
    open: async ({ dialect, url, path }) => {
      const orm =
        dialect === 'postgres'
          ? await PostgresOrm.init({ clientUrl: url, entities: [Order] })
          : await SqliteOrm.init({ dbName: path, entities: [Order] });
      const business = (em: SqlEntityManager): BusinessTransaction => ({
        executor: (options) => mikroOrmTransaction(em, options),
        nested: (work) => em.transactional((inner) => work(business(inner))),
      });
      return {
        transact: (order, work) =>
          orm.em.fork().transactional(async (em) => {
            em.create(Order, { id: order, total: '12.00' });
            return work(business(em));
          }),
        outside: () => mikroOrmTransaction(orm.em.fork()),
        close: () => orm.close(),
      };
    },
  },
  (library, database) => {
    test('a queue is refused within a savepoint, whose release MikroORM reports as a commit', async () => {
      const [outer, inner] = [newOrder(), newOrder()];
      await library().transact(outer, (tx) =>
        expect(
          tx.nested((savepoint) => publish(savepoint.executor(), 'order.paid', { order: inner }, { owner: 'ada', task: () => undefined })),
        ).rejects.toMatchObject({ code: 'no_commit_hook' }),
      );
      expect(await stored(database, inner)).toEqual({ orders: 0, events: 0, deliveries: 0 });
    });

    test('a queue waits for the outermost commit, past savepoints that are released', async () => {
      const order = newOrder();
      const seen: string[] = [];
      await library().transact(order, async (tx) => {
        await publish(tx.executor(), 'order.paid', { order }, { owner: 'ada', task: (id) => seen.push(id) });
        await tx.nested(async () => undefined);
        expect(seen).toEqual([]);
      });
      expect(seen).toHaveLength(1);
    });
  },
);
