import { DataSource, EntitySchema, type EntityManager } from 'typeorm';
import { expect, test } from 'vitest';
import { describeForeignLibrary, newOrder, type BusinessTransaction } from '../../../../../test/webhooks/foreign-library.ts';
import { publish } from '../publish.ts';
import { typeOrmTransaction } from '../../../../db/engine/foreign/typeorm.ts';

const Order = new EntitySchema<{ id: number; total: string }>({
  name: 'Order',
  tableName: 'orders',
  columns: { id: { type: Number, primary: true }, total: { type: 'text' } },
});

describeForeignLibrary(
  'TypeORM',
  {
    commitHook: true,
    open: async ({ dialect, url, path }) => {
      const entities = [Order];
      const source = new DataSource(
        dialect === 'postgres' ? { type: 'postgres', url, entities } : { type: 'better-sqlite3', database: path, entities },
      );
      await source.initialize();
      const business = (manager: EntityManager): BusinessTransaction => ({
        executor: (options) => typeOrmTransaction(manager, options),
        nested: (work) => manager.transaction((inner) => work(business(inner))),
      });
      return {
        transact: (order, work) =>
          source.transaction(async (manager) => {
            await manager.insert(Order, { id: order, total: '12.00' });
            return work(business(manager));
          }),
        outside: () => typeOrmTransaction(source.manager),
        close: () => source.destroy(),
      };
    },
  },
  (library) => {
    test('a queue waits for the outermost commit and forgets what a savepoint rolled back', async () => {
      const seen: string[] = [];
      const announce = (tx: BusinessTransaction, name: string) =>
        publish(tx.executor(), `order.${name}`, {}, { owner: 'ada', task: () => seen.push(name) });
      await library().transact(newOrder(), async (tx) => {
        await tx.nested(async (released) => void (await announce(released, 'released')));
        await announce(tx, 'outer');
        const dropped = tx.nested(async (savepoint) => {
          await announce(savepoint, 'dropped');
          await savepoint.nested(async (deeper) => void (await announce(deeper, 'dropped-deeper')));
          throw new Error('undo');
        });
        await expect(dropped).rejects.toThrow('undo');
        expect(seen).toEqual([]);
      });
      expect(seen).toEqual(['released', 'outer']);
    });
  },
);
