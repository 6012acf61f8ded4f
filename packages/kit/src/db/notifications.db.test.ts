import { expect, test } from 'vitest';
import { describeDatabases } from '../testing/databases.ts';

describeDatabases('notifications', (database) => {
  /** Resolves when `list` has `length` entries. */
  const arrived = async (list: readonly string[], length: number): Promise<void> => {
    for (let left = 200; list.length < length && left > 0; left--) await new Promise((done) => setTimeout(done, 10));
  };

  test('a notification arrives when its transaction commits, and never when it rolls back', async () => {
    const heard: string[] = [];
    const stop = await database.db.listen('orders', (payload) => heard.push(payload));
    await database.db
      .transaction(async (tx) => {
        await database.db.notify(tx, 'orders', 'rolled back');
        throw new Error('undo');
      })
      .catch(() => undefined);
    await database.db.transaction(async (tx) => {
      await database.db.notify(tx, 'orders', 'first');
      expect(heard).toEqual([]);
    });
    await database.db.notify(database.db, 'orders', 'second');
    await database.db.notify(database.db, 'other channel', 'unheard');
    await arrived(heard, 2);
    expect(heard).toEqual(['first', 'second']);
    await stop();
    await database.db.notify(database.db, 'orders', 'after the end');
    await database.db.notify(database.db, 'orders');
    await new Promise((done) => setTimeout(done, 50));
    expect(heard).toEqual(['first', 'second']);
  });

  test('several listeners of one channel all hear, and a failing one harms nobody', async () => {
    const heard: string[] = [];
    const logged: unknown[] = [];
    const db = await database.open({ log: { warn: () => undefined, error: (fields) => logged.push(fields) } });
    await db.listen('many', () => {
      throw new Error('broken listener');
    });
    await db.listen('many', (payload) => heard.push(`a ${payload}`));
    await db.listen('many', (payload) => heard.push(`b ${payload}`));
    await db.notify(db, 'many', '1');
    await arrived(heard, 2);
    expect(heard).toEqual(['a 1', 'b 1']);
    expect(logged).toHaveLength(1);
  });

  test('a payload that PostgreSQL could not carry is refused on both', async () => {
    await expect(database.db.notify(database.db, 'orders', 'x'.repeat(8000))).rejects.toThrow('at most 7,999 bytes');
  });
});
