import { expect, test } from 'vitest';
import { uploadApp } from '../../../test/uploads/upload-app.ts';
import { describeDatabases } from '../../testing/databases.ts';

describeDatabases('the scheduled clean-up', (database) => {
  test('expires an upload that never arrived, without a command', async () => {
    await using app = await uploadApp({ database: database.db, cleanEverySeconds: 1 });
    await app.test.app.start();
    const { id } = (await app.announce(Buffer.from('hello'))).body;
    app.clock.advance(3_600_000);
    const state = async () => (await database.db.query<{ state: string }>('select state from uploads where id = $1', [id]))[0]?.state;
    await expect.poll(state, { timeout: 60_000 }).toBe('expired');
  });
});
