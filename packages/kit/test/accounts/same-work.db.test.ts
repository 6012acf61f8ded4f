import { createHook } from 'node:async_hooks';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { deactivateUser } from '../../src/contrib/accounts/index.ts';
import { accountsOf } from '../../src/contrib/accounts/users/accounts.ts';
import { decoyHash } from '../../src/contrib/accounts/users/password.ts';
import { countQueries } from '../../src/db/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { LoginApp } from './login-app.ts';

// Who has an account must not show in the time that a login takes. Times depend on the machine; the work does not: the statements, and the
// hashes, which take nearly all of the time of a login.

describeDatabases(
  'a login that fails',
  (database) => {
    let shop: LoginApp;
    let hashes = 0;
    const hook = createHook({
      init(_id, type) {
        if (type === 'SCRYPTREQUEST') hashes += 1;
      },
    });
    beforeAll(async () => {
      shop = await new LoginApp(database.db).ready();
      hook.enable();
    });
    beforeEach(() => shop.unthrottle());
    afterAll(async () => {
      hook.disable();
      await shop.app.close();
    });

    test('does the same work and answers the same bytes for known, unknown, deactivated and password-less users, with a factor or not', async () => {
      const [known, inactive, machine, withCodes] = [
        await shop.newUser(),
        await shop.newUser(),
        await shop.newUser({ password: null }),
        await shop.newUser(),
      ];
      await deactivateUser(database.db, inactive.id);
      await shop.setUpCodes(await shop.loggedIn(withCodes.username));
      const people = [known, inactive, machine, withCodes];
      const seen = new Map<string, string[]>();
      for (const login of [...people.flatMap(({ username, email }) => [username, email ?? '']), 'nobody', 'no@body.example']) {
        const before = hashes;
        const { result, queries } = await countQueries(() => shop.browser().logIn(login, undefined, 'wrong wrong wrong'));
        const { status, text, headers } = result;
        const work = {
          status,
          text: text.replace(/"request_id":"[^"]*"/, ''),
          headers: Object.keys(headers).toSorted(),
          // An address is looked for in another column.
          statements: queries.map(({ sql }) => sql.replaceAll(/\b(?:username|email) = /g, '<login> = ')),
          hashes: hashes - before,
        };
        expect(work).toMatchObject({ status: 401, hashes: 1 });
        const key = JSON.stringify(work);
        seen.set(key, [...(seen.get(key) ?? []), login]);
      }
      expect([...seen.values()]).toHaveLength(1);
    });

    test('hashes with the parameters of the users’ own hashes', async () => {
      const { passwordCost } = accountsOf(shop.app.db).settings;
      const user = await shop.newUser();
      const [row] = await database.db.query<{ password_hash: string }>('select password_hash from users where id = $1', [user.id]);
      const parameters = (hash: string) => hash.split('$').slice(0, 3).join('$');
      expect(parameters(decoyHash(passwordCost))).toBe(parameters(row?.password_hash ?? ''));
    });
  },
  { template: 'logins', prepare: (db) => LoginApp.migrate(db) },
);
