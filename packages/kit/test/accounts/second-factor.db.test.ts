import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { logIn, resetSecondFactor } from '../../src/contrib/accounts/index.ts';
import { confirmSecondFactor } from '../../src/contrib/accounts/factors/second-factor.ts';
import { lockUser } from '../../src/contrib/accounts/users/store.ts';
import type { Db } from '../../src/db/engine/db.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { type Answer, LoginApp, PASSWORD } from './login-app.ts';

describeDatabases(
  'one-time codes',
  (database) => {
    let shop: LoginApp;
    beforeAll(async () => {
      shop = await new LoginApp(database.db).ready();
    });
    beforeEach(() => shop.unthrottle());
    afterAll(() => shop.app.close());

    const nextStep = () => shop.clock.advance(30_000);
    const staffWithCodes = async (given = {}) => {
      const user = await shop.newUser({ is_staff: true, ...given });
      const browser = await shop.loggedIn(user.username);
      const { secret, recovery } = await shop.setUpCodes(browser);
      nextStep();
      return { user, browser, secret, recovery };
    };

    describe('staff', () => {
      test('has no staff rights with a password alone, learns why, and gets them with the codes', async () => {
        const user = await shop.newUser({ is_staff: true, is_superuser: true });
        const browser = shop.browser();
        expect((await browser.logIn(user.username)).body).toMatchObject({
          user: { is_staff: false, is_superuser: false },
          second_factor: 'setup_required',
        });
        for (const path of ['/desk/staff', '/desk/superuser'])
          expect(await browser.get(path)).toMatchObject({ status: 403, body: { code: 'second_factor_required' } });
        expect((await browser.get('/desk/anyone')).status).toBe(204);
        expect((await browser.get('/account/factor')).body).toEqual({ enabled: false, required: true, recovery_codes_left: 0 });
        const before = browser.cookie;
        await shop.setUpCodes(browser);
        expect(browser.cookie).not.toBe(before);
        for (const path of ['/desk/staff', '/desk/superuser']) expect((await browser.get(path)).status).toBe(204);
        expect((await browser.get('/account/me')).body).toMatchObject({ user: { is_staff: true }, second_factor: 'verified' });
      });

      test('with codes opens no session without one, and one with one', async () => {
        const { user, secret } = await staffWithCodes();
        const browser = shop.browser();
        const asked = await browser.logIn(user.username);
        expect(asked).toMatchObject({ status: 401, body: { code: 'one_time_code_required' } });
        expect(asked.headers['set-cookie']).toBeUndefined();
        expect((await browser.logIn(user.username, shop.code(secret), 'wrong password')).body).toMatchObject({
          code: 'invalid_credentials',
        });
        expect((await browser.logIn(user.username, shop.code(secret))).body).toMatchObject({
          user: { is_staff: true },
          second_factor: 'verified',
        });
        expect((await browser.get('/desk/staff')).status).toBe(204);
      });

      test('keeps the other sessions out: they end when codes are set up', async () => {
        const user = await shop.newUser({ is_staff: true });
        const planted = await shop.loggedIn(user.username);
        const own = await shop.loggedIn(user.username);
        await shop.setUpCodes(own);
        expect((await planted.get('/desk/anyone')).status).toBe(401);
      });

      test('is not asked where codes are optional, and users may have them', async () => {
        const other = await new LoginApp(await database.open(), { secondFactor: 'optional' }, shop.clock).ready();
        const user = await shop.newUser({ is_staff: true });
        const browser = await other.loggedIn(user.username);
        expect((await browser.get('/desk/staff')).status).toBe(204);
        await other.setUpCodes(browser);
        expect((await other.browser().logIn(user.username)).body.code).toBe('one_time_code_required');
        await other.app.close();
      });
    });

    describe('a code', () => {
      test('is good for one login, also when twenty arrive together and after an earlier step', async () => {
        const { user, secret } = await staffWithCodes();
        const code = shop.code(secret);
        const racing = await Promise.all(Array.from({ length: 5 }, () => shop.browser().logIn(user.username, code)));
        expect(racing.filter(({ status }) => status === 200)).toHaveLength(1);
        expect((await shop.browser().logIn(user.username, code)).body.code).toMatch(/invalid_one_time_code|throttled/);
      });

      test('that confirmed the setup, or an earlier one, opens no login', async () => {
        const user = await shop.newUser();
        const browser = await shop.loggedIn(user.username);
        const { secret } = (await browser.post('/account/factor')).body;
        const earlier = shop.code(secret);
        nextStep();
        const used = shop.code(secret);
        expect((await browser.post('/account/factor/confirm', { code: used })).status).toBe(200);
        for (const code of new Set([used, earlier]))
          expect((await shop.browser().logIn(user.username, code)).body.code).toBe('invalid_one_time_code');
      });

      test('is guessed at most five times in 15 minutes, whatever the number of processes, and then not accepted even if right', async () => {
        const { user, secret } = await staffWithCodes();
        const second = await new LoginApp(await database.open(), {}, shop.clock).ready();
        const right = shop.code(secret);
        const wrong = ['000000', '111111', '222222', '333333', '444444', '555555', '666666', '777777', '888888', '999999'].filter(
          (code) => code !== right && ![-1, 1].some((step) => shopCode(secret, step) === code),
        );
        const tries = wrong.flatMap((code, index) => (index % 2 === 0 ? shop : second).browser().logIn(user.username, code));
        const codes = (await Promise.all(tries)).map(({ body }) => body.code as string);
        expect(codes.filter((code) => code === 'invalid_one_time_code')).toHaveLength(5);
        expect(codes.filter((code) => code === 'throttled')).toHaveLength(wrong.length - 5);
        shop.unthrottle();
        const refused = await shop.browser().logIn(user.username, right);
        expect(refused).toMatchObject({ status: 429, body: { detail: 'Too many wrong one-time codes. Try again in 15 minutes.' } });
        shop.clock.advance(15 * 60_000);
        shop.unthrottle();
        expect((await shop.browser().logIn(user.username, shop.code(secret))).status).toBe(200);
        await second.app.close();
      });

      const shopCode = (secret: string, steps: number): string => {
        shop.clock.advance(steps * 30_000);
        const code = shop.code(secret);
        shop.clock.advance(-steps * 30_000);
        return code;
      };

      test('asked for is not a failed guess of the password', async () => {
        const { user, secret } = await staffWithCodes();
        for (let index = 0; index < 12; index++)
          expect((await shop.browser().logIn(user.username)).body.code).toBe('one_time_code_required');
        expect((await shop.browser().logIn(user.username, shop.code(secret))).status).toBe(200);
      });
    });

    describe('recovery codes', () => {
      test('replace a code once each, in any spelling, and are stored as digests only', async () => {
        const { user, recovery } = await staffWithCodes();
        expect(recovery).toHaveLength(10);
        const [first = '', second = ''] = recovery;
        expect((await shop.browser().logIn(user.username, first)).status).toBe(200);
        expect((await shop.browser().logIn(user.username, first)).body.code).toBe('invalid_one_time_code');
        const racing = await Promise.all(
          Array.from({ length: 4 }, () => shop.browser().logIn(user.username, ` ${second.toLowerCase().replaceAll('-', ' ')} `)),
        );
        expect(racing.filter(({ status }) => status === 200)).toHaveLength(1);
        const stored = JSON.stringify(await database.db.query('select code_digest from user_recovery_codes'));
        for (const code of recovery) for (const form of [code, code.replaceAll('-', '')]) expect(stored).not.toContain(form);
      });

      test('are replaced together, by a present user', async () => {
        const { user, browser, recovery } = await staffWithCodes();
        const renewed = await browser.post('/account/factor/recovery-codes');
        expect(renewed.body.recovery_codes).toHaveLength(10);
        expect((await shop.browser().logIn(user.username, recovery[3])).body.code).toBe('invalid_one_time_code');
        expect((await shop.browser().logIn(user.username, renewed.body.recovery_codes[3])).status).toBe(200);
        shop.clock.advance(601_000);
        expect((await browser.post('/account/factor/recovery-codes')).body.code).toBe('recent_login_required');
      });
    });

    describe('setting up', () => {
      test('replaces a factor only once the new one is confirmed', async () => {
        const { user, browser, secret } = await staffWithCodes();
        const begun = (await browser.post('/account/factor')).body;
        expect(begun.uri).toContain(`secret=${begun.secret}`);
        expect((await shop.browser().logIn(user.username, shop.code(secret))).status).toBe(200);
        nextStep();
        expect((await browser.post('/account/factor/confirm', { code: shop.code(begun.secret) })).status).toBe(200);
        nextStep();
        expect((await shop.browser().logIn(user.username, shop.code(secret))).body.code).toBe('invalid_one_time_code');
        expect((await shop.browser().logIn(user.username, shop.code(begun.secret))).status).toBe(200);
      });

      test('without having begun, or with a wrong code, changes nothing', async () => {
        const user = await shop.newUser();
        const browser = await shop.loggedIn(user.username);
        // Nothing is pending, so nothing is guessed.
        for (let index = 0; index < 6; index++)
          expect(await browser.post('/account/factor/confirm', { code: '123456' })).toMatchObject({
            status: 409,
            body: { code: 'no_pending_factor' },
          });
        const { secret } = (await browser.post('/account/factor')).body;
        const wrong = shop.code(secret) === '000000' ? '000001' : '000000';
        for (let index = 0; index < 5; index++) await browser.post('/account/factor/confirm', { code: wrong });
        expect((await browser.post('/account/factor/confirm', { code: shop.code(secret) })).status).toBe(429);
        expect((await browser.get('/account/factor')).body.enabled).toBe(false);
      });

      test('and removing need presence; removing ends every session, and staff rights with it', async () => {
        const { user, browser, secret } = await staffWithCodes();
        shop.clock.advance(601_000);
        for (const [method, path] of [
          ['POST', '/account/factor'],
          ['POST', '/account/factor/confirm'],
          ['DELETE', '/account/factor'],
        ] as const)
          expect((await browser.send(method, path, path.endsWith('confirm') ? { code: '1' } : undefined)).body.code).toBe(
            'recent_login_required',
          );
        expect((await browser.post('/account/presence', { password: PASSWORD })).body.code).toBe('one_time_code_required');
        expect((await browser.post('/account/presence', { password: PASSWORD, code: shop.code(secret) })).status).toBe(200);
        const removed = await browser.send('DELETE', '/account/factor');
        expect(removed.body).toMatchObject({ second_factor: 'setup_required', user: { is_staff: false } });
        expect((await browser.get('/desk/staff')).status).toBe(403);
        expect((await shop.browser().logIn(user.username)).status).toBe(200);
      });

      test('lost: an operator resets it, and all sessions end', async () => {
        const { user, browser } = await staffWithCodes();
        expect(await resetSecondFactor(database.db, user, 'cli')).toBe(true);
        expect(await resetSecondFactor(database.db, user, 'cli')).toBe(false);
        expect((await browser.get('/desk/anyone')).status).toBe(401);
        expect((await shop.browser().logIn(user.username)).body).toMatchObject({ second_factor: 'setup_required' });
        const entries = await database.db.query(
          'select action from audit_inbox where target_id = $1 union all select action from audit_entries where target_id = $1',
          [user.id],
        );
        expect(entries).toContainEqual({ action: 'user.second_factor_removed' });
      });
    });

    describe('a change of the factor', () => {
      /** Runs the change while the request waits for the user, which is locked: everything it has looked at before is out of date then. */
      const meanwhile = async (userId: string, change: (tx: Db) => Promise<unknown>, request: () => Promise<Answer>): Promise<Answer> => {
        const locked = Promise.withResolvers<void>();
        const sent = locked.promise.then(request);
        await database.db.transaction(async (tx) => {
          await lockUser(tx, userId);
          locked.resolve();
          await new Promise((resolve) => setTimeout(resolve, 300));
          await change(tx);
        });
        return sent;
      };
      const sessionsOf = (userId: string) => database.db.query('select id from sessions where user_id = $1', [userId]);

      test('refuses a login that has proved the former one', async () => {
        const { user, secret } = await staffWithCodes();
        const late = await meanwhile(
          user.id,
          (tx) => resetSecondFactor(tx, user, 'cli'),
          () => shop.browser().logIn(user.username, shop.code(secret)),
        );
        expect(late.body.second_factor).not.toBe('verified');
        const rights = await database.db.query<{ second_factor: boolean }>('select second_factor from sessions where user_id = $1', [
          user.id,
        ]);
        expect(rights.filter(({ second_factor }) => second_factor)).toEqual([]);
      });

      test('refuses a login that was not asked for a code', async () => {
        const user = await shop.newUser();
        const browser = await shop.loggedIn(user.username);
        const { secret } = (await browser.post('/account/factor')).body;
        const late = await meanwhile(
          user.id,
          (tx) => confirmSecondFactor(tx, user, shop.code(secret), { actor: 'test' }),
          () => shop.browser().logIn(user.username),
        );
        expect(late.body.code).toBe('one_time_code_required');
        expect(await sessionsOf(user.id)).toHaveLength(1);
      });

      test('ends the session that a login is about to open without a code', async () => {
        const user = await shop.newUser();
        const browser = await shop.loggedIn(user.username);
        const { secret } = (await browser.post('/account/factor')).body;
        const locked = Promise.withResolvers<void>();
        const confirming = locked.promise.then(() => browser.post('/account/factor/confirm', { code: shop.code(secret) }));
        await logIn(database.db, {
          login: user.username,
          password: PASSWORD,
          previousToken: null,
          async admit() {
            locked.resolve();
            await new Promise((resolve) => setTimeout(resolve, 300));
          },
        });
        expect((await confirming).status).toBe(200);
        expect(await sessionsOf(user.id)).toHaveLength(1);
      });

      test('refuses a change of the account in a session that it has ended', async () => {
        const newPassword = { current_password: PASSWORD, new_password: 'another good password' };
        for (const [method, path, body] of [
          ['POST', '/account/password', newPassword],
          ['DELETE', '/account/factor', undefined],
          ['POST', '/account/factor/recovery-codes', undefined],
        ] as const) {
          const { user, browser } = await staffWithCodes();
          const late = await meanwhile(
            user.id,
            (tx) => tx.query('delete from sessions where user_id = $1', [user.id]),
            () => browser.send(method, path, body),
          );
          expect({ path, status: late.status }).toEqual({ path, status: 401 });
          expect(await sessionsOf(user.id)).toEqual([]);
          expect((await shop.browser().logIn(user.username)).body.code).toBe('one_time_code_required');
        }
      });

      test('leaves ten recovery codes, also when two replace them together', async () => {
        const { browser, user } = await staffWithCodes();
        await Promise.all(Array.from({ length: 4 }, () => browser.post('/account/factor/recovery-codes')));
        const stored = await database.db.query('select id from user_recovery_codes where user_id = $1', [user.id]);
        expect(stored).toHaveLength(10);
      });
    });

    test('neither secrets nor codes are in the log, and metrics count the outcomes', async () => {
      const { user, secret, recovery } = await staffWithCodes();
      await shop.browser().logIn(user.username, recovery[0]);
      const everything = shop.logged.join('\n');
      for (const hidden of [secret, ...recovery, PASSWORD]) expect(everything).not.toContain(hidden);
      const { body: scraped } = await shop.app.inject('/metrics');
      expect(scraped).toMatch(/kit_accounts_codes_total\{outcome="accepted"\} \d/);
      expect(scraped).toMatch(/kit_accounts_codes_total\{outcome="throttled"\} \d/);
      expect(scraped).toMatch(/kit_accounts_logins_total\{outcome="code_required"\} \d/);
    });
  },
  { template: 'logins', prepare: (db) => LoginApp.migrate(db) },
);
