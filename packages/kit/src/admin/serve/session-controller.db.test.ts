import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { AdminApp, cookieOf, PASSWORD } from '../../../test/admin/admin-app.ts';
import { AccountController, deactivateUser, changeStaff } from '../../contrib/accounts/index.ts';
import { accountsOf } from '../../contrib/accounts/users/accounts.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { memoryStorage } from '../../throttle/index.ts';
import { auditLog } from '../../../test/audit-log.ts';

describeDatabases('the admin site', (database) => {
  let budgets = memoryStorage();
  let site: AdminApp;

  beforeAll(async () => {
    const throttleStorage = {
      take: (...args: Parameters<typeof budgets.take>) => budgets.take(...args),
      giveBack: (...args: Parameters<typeof budgets.giveBack>) => budgets.giveBack(...args),
    };
    site = await new AdminApp(database.db, [], { throttleStorage, mount: { '/v1': { '/account': AccountController } } }).ready();
  });
  beforeEach(() => {
    budgets = memoryStorage();
  });
  afterAll(() => site.close());

  const entries = (action: string) => auditLog(database.db, { action });
  const management = async () => accountsOf(site.app.db).management(null);

  describe('logging in', () => {
    test('a staff member gets a session, the CSRF token and what the site shows', async () => {
      const user = await site.newUser({ is_staff: true });
      const answer = await site.logIn(user.username);
      expect(answer.status).toBe(200);
      expect(answer.body).toMatchObject({
        user: { id: user.id, username: user.username },
        csrf_token: expect.stringMatching(/^[\w-]{43}$/),
        site: { title: 'Shop', version: '1.2.3', resources: expect.arrayContaining([expect.objectContaining({ name: 'users' })]) },
      });
      expect(answer.headers['cache-control']).toBe('no-store');
      expect(cookieOf(answer)).toMatch(/^__Host-kit_session=/);
      const session = await site.call('GET', 'api/session', { cookie: cookieOf(answer) });
      expect(session.body).toEqual(answer.body);
      expect((await entries('admin.login')).map((entry) => entry.target_id)).toContain(user.id);
    });

    test('the right password without the staff flag is 403 staff_only, opens no session and is recorded', async () => {
      const user = await site.newUser();
      const answer = await site.logIn(user.username);
      expect(answer).toMatchObject({ status: 403, body: { code: 'staff_only' } });
      expect(answer.headers['set-cookie']).toBeUndefined();
      expect(await database.db.query('select id from sessions where user_id = $1', [user.id])).toEqual([]);
      expect((await entries('admin.login_refused')).map((entry) => entry.target_id)).toEqual([user.id]);
    });

    test('a wrong password is the same 401 as for an unknown user, staff or not', async () => {
      const [staff, other] = [await site.newUser({ is_staff: true }), await site.newUser()];
      for (const login of [staff.username, other.username, 'nobody']) {
        expect(await site.logIn(login, 'wrong wrong wrong')).toMatchObject({ status: 401, body: { code: 'invalid_credentials' } });
      }
    });

    test('ten failed logins lock the account, also for the right password', async () => {
      const user = await site.newUser({ is_staff: true });
      for (let attempt = 0; attempt < 10; attempt += 1) await site.logIn(user.username, 'wrong wrong wrong');
      expect(await site.logIn(user.username)).toMatchObject({ status: 429, body: { code: 'throttled' } });
    });

    test('guesses here and at the application’s own login come from one budget', async () => {
      const user = await site.newUser({ is_staff: true });
      const guess = (path: string) => site.call('POST', path, {}, { login: user.username, password: 'wrong wrong wrong' });
      for (let attempt = 0; attempt < 5; attempt += 1)
        for (const path of ['/v1/account/login', 'api/login']) expect((await guess(path)).status).toBe(401);
      for (const path of ['/v1/account/login', 'api/login']) expect((await guess(path)).status).toBe(429);
    });

    test('takes no session that the browser brought along: it ends, and the new one has a token of its own', async () => {
      const planted = await site.browser();
      const user = await site.newUser({ is_staff: true });
      const answer = await site.logIn(user.username, PASSWORD, { cookie: planted.cookie });
      expect(cookieOf(answer)).not.toBe(planted.cookie);
      expect((await site.get(planted, 'session')).status).toBe(401);
    });

    test('a refused one is logged without what was typed, and recorded only for a user whose password it was', async () => {
      const before = await auditLog(database.db);
      await site.logIn('a-password-in-the-wrong-field', 'wrong wrong wrong');
      expect(await auditLog(database.db)).toEqual(before);
      expect(site.logged.join('\n')).toContain('admin: a login was refused');
      expect(site.logged.join('\n')).not.toContain('a-password-in-the-wrong-field');
    });

    test('from a page of another site is refused', async () => {
      const user = await site.newUser({ is_staff: true });
      for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }] as Record<string, string>[])
        expect(await site.logIn(user.username, PASSWORD, headers)).toMatchObject({ status: 403, body: { code: 'csrf_failed' } });
    });
  });

  describe('a session ends for the site', () => {
    test('when its user logs out, which is recorded', async () => {
      const browser = await site.browser();
      expect((await site.send(browser, 'POST', 'logout')).status).toBe(204);
      expect((await site.get(browser, 'session')).status).toBe(401);
      expect((await entries('admin.logout')).map((entry) => entry.target_id)).toContain(browser.userId);
    });

    test('when its user is no longer staff, on the next request', async () => {
      const browser = await site.browser();
      await changeStaff(database.db, browser.userId, false, await management());
      const refused = await site.get(browser, 'session');
      expect(refused).toMatchObject({ status: 403, body: { code: 'staff_only' } });
      expect((await site.get(browser, 'overview')).status).toBe(403);
      // With the token of the refusal, and only with it, the session can be ended.
      const logOut = (csrf: string) => site.send({ ...browser, csrf }, 'POST', 'logout');
      expect((await logOut('')).status).toBe(403);
      expect((await logOut(String(refused.body.csrf_token))).status).toBe(204);
      expect((await site.get(browser, 'session')).status).toBe(401);
    });

    test('when its user is deactivated, on the next request', async () => {
      const browser = await site.browser();
      await deactivateUser(database.db, browser.userId, await management());
      expect((await site.get(browser, 'session')).status).toBe(401);
    });

    test('when it expires', async () => {
      const browser = await site.browser();
      site.clock.advance(15 * 24 * 3_600_000);
      expect((await site.get(browser, 'session')).status).toBe(401);
    });
  });
});
