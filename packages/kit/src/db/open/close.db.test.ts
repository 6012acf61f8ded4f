import { expect, test } from 'vitest';
import { describeDatabases } from '../../testing/databases.ts';

describeDatabases('closing', (database) => {
  test('a database closed twice is closed once, without waiting for itself', async () => {
    const db = await database.open();
    await db.query('select 1');
    await Promise.all([db.close(), db.close()]);
    await db.close();
    await expect(db.query('select 1')).rejects.toThrow(Error);
  });
});
