import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createApp } from '../../src/app/index.ts';
import { accounts } from '../../src/contrib/accounts/index.ts';
import { encryptFactorSecrets } from '../../src/contrib/accounts/factors/factor-secrets.ts';
import { generateFernetKey } from '../../src/db/sealing/fernet.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { LoginApp } from './login-app.ts';

const [FIRST, SECOND] = [generateFernetKey(), generateFernetKey()];

describeDatabases(
  'secrets of one-time codes',
  (database) => {
    let plain: LoginApp;
    const apps: LoginApp[] = [];
    /** A process with these keys, on the same database. */
    const withKeys = async (...keys: string[]) => {
      const app = await new LoginApp(await database.open(), {}, plain.clock, { accountSecretKeys: keys.join(',') }).ready();
      apps.push(app);
      return app;
    };
    const warnings = (app: LoginApp) => app.logged.filter((line) => line.includes('W025'));
    const stored = async (id: string) =>
      (
        await database.db.query<{ secret: string; pending_secret: string }>(
          'select secret, pending_secret from user_factors where user_id = $1',
          [id],
        )
      )[0];

    beforeAll(async () => {
      plain = await new LoginApp(database.db).ready();
    });
    beforeEach(() => plain.unthrottle());
    afterAll(async () => {
      for (const { app } of apps) await app.close();
      await plain.app.close();
    });

    test('are stored encrypted, pending or in use, and nothing in the table gives a code', async () => {
      const shop = await withKeys(FIRST);
      const user = await plain.newUser();
      const browser = await shop.loggedIn(user.username);
      const { secret } = (await browser.post('/account/factor')).body;
      expect((await stored(user.id))?.pending_secret).toMatch(/^fernet:/);
      expect((await browser.post('/account/factor/confirm', { code: shop.code(secret) })).status).toBe(200);
      const rows = JSON.stringify(await database.db.query('select * from user_factors where user_id = $1', [user.id]));
      expect(rows).toContain('fernet:');
      expect(rows).not.toContain(secret);
      shop.clock.advance(30_000);
      expect((await shop.browser().logIn(user.username, shop.code(secret))).status).toBe(200);
    });

    test('stored before there was a key work on, are warned of, and are encrypted by one command', async () => {
      const user = await plain.newUser();
      const { secret } = await plain.setUpCodes(await plain.loggedIn(user.username));
      expect((await stored(user.id))?.secret).toBe(secret);
      const unprotected = await new LoginApp(await database.open(), {}, plain.clock).ready();
      apps.push(unprotected);
      await unprotected.app.start();
      expect(warnings(unprotected)).toHaveLength(1);
      const shop = await withKeys(FIRST);
      await shop.app.start();
      expect(warnings(shop)).toEqual([]);
      shop.clock.advance(30_000);
      expect((await shop.browser().logIn(user.username, shop.code(secret))).status).toBe(200);
      const { encrypted } = await encryptFactorSecrets(shop.app.db);
      expect(encrypted).toBeGreaterThan(0);
      expect((await stored(user.id))?.secret).toMatch(/^fernet:/);
      expect(await encryptFactorSecrets(shop.app.db)).toMatchObject({ encrypted: 0, unavailable: [] });
      shop.clock.advance(30_000);
      expect((await shop.browser().logIn(user.username, shop.code(secret))).status).toBe(200);
    });

    test('move to a new key, and the old one can go', async () => {
      const old = await withKeys(FIRST);
      const user = await plain.newUser();
      const { secret } = await old.setUpCodes(await old.loggedIn(user.username));
      const both = await withKeys(SECOND, FIRST);
      expect((await encryptFactorSecrets(both.app.db)).unavailable).toEqual([]);
      const next = await withKeys(SECOND);
      next.clock.advance(30_000);
      expect((await next.browser().logIn(user.username, next.code(secret))).status).toBe(200);
    });

    test('that no key decrypts do not lock their users out: 503 for codes, with a line for the operator; recovery codes work', async () => {
      const owner = await withKeys(FIRST);
      const user = await plain.newUser();
      const { secret, recovery } = await owner.setUpCodes(await owner.loggedIn(user.username));
      for (const keys of [[], [SECOND]]) {
        const shop = await withKeys(...keys);
        shop.clock.advance(30_000);
        expect((await shop.browser().logIn(user.username, shop.code(secret))).body).toMatchObject({
          status: 503,
          code: 'second_factor_unavailable',
        });
        expect(shop.logged.join('\n')).toContain('the secret of one-time codes cannot be read');
        expect(shop.logged.join('\n')).not.toContain(secret);
        expect((await shop.browser().logIn(user.username, recovery[keys.length])).status).toBe(200);
      }
      const shop = await withKeys(SECOND);
      expect((await encryptFactorSecrets(shop.app.db)).unavailable).toContain(user.id);
    });
  },
  { template: 'logins', prepare: (db) => LoginApp.migrate(db) },
);

test('a key that cannot be used fails the start, and is not part of the message', async () => {
  const app = createApp({
    database: 'sqlite::memory:',
    modules: [accounts()],
    mount: {},
    log: { level: 'silent' },
    settings: { accountSecretKeys: `${FIRST}, not-a-key` },
  });
  await expect(app.ready()).rejects.toThrow(/E011 {2}Key 2 of 2 in ACCOUNT_SECRET_KEYS .* `kit user generate-key`/);
  await expect(app.ready()).rejects.not.toThrow('not-a-key');
  await app.close();
});
