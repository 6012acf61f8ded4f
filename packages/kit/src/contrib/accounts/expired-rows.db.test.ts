import { expect, test } from 'vitest';
import { lockRows } from '../../../test/lock-rows.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { testApp } from '../../testing/test-app.ts';
import { createLink } from './mail/links.ts';
import { accounts } from './module.ts';
import { AccountController } from './serve/controller.ts';
import { createUser } from './users/manage-users.ts';

const PASSWORD = 'correct horse battery';
const YEAR_MS = 365 * 86_400_000;

describeDatabases('expired sessions and links', (database) => {
  test.skipIf(database.dialect === 'sqlite')('that another transaction has locked hold up neither a login nor a new link', async () => {
    const clock = fakeClock();
    await using app = await testApp({
      database: database.db,
      modules: [accounts({ passwordCost: { logN: 4, r: 8, p: 1 } })],
      mount: { '/v1': { '/account': AccountController } },
      clock,
    });
    const user = await createUser(app.app.db, { username: 'ann', email: 'ann@example.com', password: PASSWORD });
    const logIn = async () =>
      (await app.inject({ method: 'POST', url: '/v1/account/login', payload: { login: 'ann', password: PASSWORD } })).statusCode;
    const ids = async (table: string) =>
      (await database.db.query<{ id: string }>(`select id from ${table} order by id`)).map(({ id }) => id);
    expect(await logIn()).toBe(200);
    await createLink(app.app.db, user, 'reset');
    const [[session], [link]] = [await ids('sessions'), await ids('account_links')];
    clock.advance(YEAR_MS);
    const release = [await lockRows(database.db, 'sessions', [session ?? '']), await lockRows(database.db, 'account_links', [link ?? ''])];
    expect(await logIn()).toBe(200);
    await createLink(app.app.db, user, 'reset');
    expect([await ids('sessions'), await ids('account_links')]).toMatchObject([{ length: 2 }, { length: 2 }]);
    for (const each of release) await each();
    expect(await logIn()).toBe(200);
    await createLink(app.app.db, user, 'reset');
    expect(await ids('sessions')).not.toContain(session);
    expect(await ids('account_links')).not.toContain(link);
  });
});
