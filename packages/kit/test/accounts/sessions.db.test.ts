import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { changeStaff, deactivateUser } from '../../src/contrib/accounts/index.ts';
import { createApiKey } from '../../src/contrib/apikeys/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { LoginApp, PASSWORD } from './login-app.ts';

/** Bodies of the routes that need no session. */
const OPEN_BODIES: Readonly<Record<string, object>> = {
  login: { login: 'x', password: PASSWORD },
  reset: { login: 'x' },
  confirmReset: { token: 'x', password: PASSWORD },
  acceptInvitation: { token: 'x', password: PASSWORD },
  confirmEmail: { token: 'x' },
};

describeDatabases(
  'sessions people see',
  (database) => {
    let shop: LoginApp;
    beforeAll(async () => {
      shop = await new LoginApp(database.db).ready();
    });
    beforeEach(() => shop.unthrottle());
    afterAll(() => shop.app.close());

    const accountRoutes = () =>
      shop.app.routes
        .filter(({ path }) => path.startsWith('/account'))
        .map(({ method, path, field }) => ({
          method: method as 'GET' | 'POST' | 'DELETE',
          path: path.replace(':id', '01890000-0000-7000-8000-000000000000'),
          field,
        }));

    describe('the list', () => {
      test('has device, address and times of the own sessions, newest first, and no token', async () => {
        const user = await shop.newUser();
        const phone = await shop.loggedIn(user.username, 'Phone/2.0');
        shop.clock.advance(120_000);
        const laptop = await shop.loggedIn(user.username, 'x'.repeat(500));
        await shop.loggedIn((await shop.newUser()).username);
        await phone.get('/desk/anyone');
        const { body, text } = await laptop.get('/account/sessions');
        expect(body.items).toMatchObject([
          { current: true, device: 'x'.repeat(200), address: '127.0.0.1', second_factor: false },
          { current: false, device: 'Phone/2.0', seen_at: shop.clock.now().toISOString() },
        ]);
        for (const { cookie } of [phone, laptop]) expect(text).not.toContain(cookie.split('=')[1]);
      });

      test('ends one, and only an own one', async () => {
        const [ada, bob] = [await shop.newUser(), await shop.newUser()];
        const [phone, laptop, other] = [
          await shop.loggedIn(ada.username),
          await shop.loggedIn(ada.username),
          await shop.loggedIn(bob.username),
        ];
        const [, { id }] = (await laptop.get('/account/sessions')).body.items;
        expect((await other.send('DELETE', `/account/sessions/${id}`)).body.code).toBe('session_not_found');
        expect((await phone.get('/desk/anyone')).status).toBe(204);
        expect((await laptop.send('DELETE', `/account/sessions/${id}`)).status).toBe(204);
        expect((await phone.get('/desk/anyone')).status).toBe(401);
        expect((await laptop.send('DELETE', `/account/sessions/${id}`)).status).toBe(404);
      });

      test('ends all others', async () => {
        const user = await shop.newUser();
        const others = [await shop.loggedIn(user.username), await shop.loggedIn(user.username)];
        const own = await shop.loggedIn(user.username);
        expect((await own.post('/account/sessions/end-others')).body).toEqual({ ended: 2 });
        for (const other of others) expect((await other.get('/desk/anyone')).status).toBe(401);
        expect((await own.get('/account/sessions')).body.items).toHaveLength(1);
      });

      test('leaves out sessions that have ended, by time or without use', async () => {
        const user = await shop.newUser();
        await shop.loggedIn(user.username);
        shop.clock.advance(25 * 3_600_000);
        const own = await shop.loggedIn(user.username);
        expect((await own.get('/account/sessions')).body.items).toHaveLength(1);
      });
    });

    describe('a session', () => {
      test('ends when its user becomes staff, and cannot be one of staff by that', async () => {
        const user = await shop.newUser();
        const planted = await shop.loggedIn(user.username);
        await changeStaff(database.db, user.id, true);
        expect((await planted.get('/desk/anyone')).status).toBe(401);
      });

      test('has a new token after each login, presence and change of the factor; the old one is nobody', async () => {
        const user = await shop.newUser();
        const browser = await shop.loggedIn(user.username);
        const cookies = [browser.cookie];
        await browser.post('/account/presence', { password: PASSWORD });
        cookies.push(browser.cookie);
        await shop.setUpCodes(browser);
        cookies.push(browser.cookie);
        expect(new Set(cookies).size).toBe(3);
        for (const cookie of cookies.slice(0, 2)) expect((await shop.call('GET', '/desk/anyone', undefined, { cookie })).status).toBe(401);
        expect((await browser.get('/desk/anyone')).status).toBe(204);
      });

      test('needs its CSRF token on each route that changes something', async () => {
        const user = await shop.newUser();
        const browser = await shop.loggedIn(user.username);
        const changing = accountRoutes().filter(({ method }) => method !== 'GET');
        const closed = changing.filter(({ field }) => OPEN_BODIES[field] === undefined);
        expect(closed).toHaveLength(11);
        for (const { method, path } of closed)
          expect([path, (await shop.call(method, path, {}, { cookie: browser.cookie })).body.code]).toEqual([path, 'csrf_failed']);
        // Routes without a session: another site cannot use them in a browser.
        const open = changing.filter(({ field }) => OPEN_BODIES[field] !== undefined);
        expect(open).toHaveLength(Object.keys(OPEN_BODIES).length);
        for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }] as Record<string, string>[])
          for (const { method, path, field } of open)
            expect([path, (await shop.call(method, path, OPEN_BODIES[field], headers)).body.code]).toEqual([path, 'csrf_failed']);
      });

      test('is what the account needs: an API key changes nothing of it', async () => {
        const user = await shop.newUser();
        const { raw } = await createApiKey(database.db, { user, name: 'k', scopes: ['*'] });
        // `me` tells a key who it belongs to, a logout without a session only clears the cookie, and links are for who has them.
        const closed = accountRoutes().filter(({ field }) => !['me', 'logout', ...Object.keys(OPEN_BODIES)].includes(field));
        expect(closed).toHaveLength(12);
        for (const { method, path } of closed)
          for (const headers of [{ 'x-api-key': raw }, { authorization: `Bearer ${raw}` }] as Record<string, string>[])
            expect([path, (await shop.call(method, path, method === 'GET' ? undefined : {}, headers)).status]).toEqual([path, 401]);
      });
    });

    describe('presence', () => {
      test('is asked for a copy and for the erasure of the own data; to see how they stand and to take it back is free', async () => {
        const browser = await shop.loggedIn((await shop.newUser()).username);
        shop.clock.advance(601_000);
        for (const [method, path] of [
          ['POST', 'export'],
          ['GET', 'export/archive'],
          ['POST', 'erasure'],
        ] as const)
          expect((await browser.send(method, `/personal-data/${path}`)).body.code).toBe('recent_login_required');
        expect((await browser.get('/personal-data/export')).body.code).toBe('export_not_found');
        expect((await browser.get('/personal-data/erasure')).body.code).toBe('erasure_not_found');
        expect((await browser.send('DELETE', '/personal-data/erasure')).body.code).toBe('erasure_not_found');
        await browser.post('/account/presence', { password: PASSWORD });
        expect((await browser.post('/personal-data/export')).status).toBe(202);
        expect((await browser.post('/personal-data/erasure')).status).toBe(202);
      });

      test('is asked after ten minutes for an API key and a new password, and given by the password', async () => {
        const user = await shop.newUser();
        const browser = await shop.loggedIn(user.username);
        const newKey = () => browser.post('/api-keys', { name: 'k', scopes: [] });
        expect((await newKey()).status).toBe(201);
        shop.clock.advance(601_000);
        expect(await newKey()).toMatchObject({ status: 403, body: { code: 'recent_login_required' } });
        const change = { current_password: PASSWORD, new_password: 'another good password' };
        expect((await browser.post('/account/password', change)).body.code).toBe('recent_login_required');
        expect((await browser.get('/api-keys')).status).toBe(200);
        expect((await browser.post('/account/presence', { password: 'wrong' })).body.code).toBe('invalid_credentials');
        expect((await browser.post('/account/presence', {})).body.code).toBe('invalid_credentials');
        expect((await newKey()).status).toBe(403);
        expect((await browser.post('/account/presence', { password: PASSWORD })).status).toBe(200);
        expect((await newKey()).status).toBe(201);
        expect((await browser.post('/account/password', change)).status).toBe(200);
      });

      test('shares the budget of guesses with the login', async () => {
        const user = await shop.newUser();
        const browser = await shop.loggedIn(user.username);
        const codes: string[] = [];
        for (let index = 0; index < 12; index++) codes.push((await browser.post('/account/presence', { password: 'wrong' })).body.code);
        expect(codes.at(-1)).toBe('throttled');
        expect((await shop.browser().logIn(user.username)).status).toBe(429);
      });
    });

    describe('opened by an own login', () => {
      const enter = (id: string, factor = 'none') => shop.browser().get(`/sso/${id}/${factor}`);

      test('works like one by password: cookie, CSRF, list', async () => {
        const user = await shop.newUser({ password: null });
        const browser = shop.browser('SSO/1.0');
        expect((await browser.get(`/sso/${user.id}/none`)).body).toMatchObject({ user: { username: user.username }, second_factor: 'off' });
        expect((await browser.get('/account/sessions')).body.items).toMatchObject([{ device: 'SSO/1.0', current: true }]);
        expect((await browser.post('/account/sessions/end-others')).status).toBe(200);
        expect((await shop.call('POST', '/account/sessions/end-others', {}, { cookie: browser.cookie })).body.code).toBe('csrf_failed');
        // Without a password or codes there is nothing to prove presence with, but another login.
        expect((await browser.post('/account/presence', {})).body.code).toBe('recent_login_required');
      });

      test('ends the session that the request had', async () => {
        const user = await shop.newUser();
        const browser = await shop.loggedIn(user.username);
        const planted = browser.cookie;
        await browser.get(`/sso/${user.id}/none`);
        expect(browser.cookie).not.toBe(planted);
        expect((await shop.call('GET', '/desk/anyone', undefined, { cookie: planted })).status).toBe(401);
      });

      test('gives staff rights only when it vouches for a second factor', async () => {
        const user = await shop.newUser({ is_staff: true });
        const browser = shop.browser();
        await browser.get(`/sso/${user.id}/none`);
        expect((await browser.get('/desk/staff')).status).toBe(403);
        await browser.get(`/sso/${user.id}/proved`);
        expect((await browser.get('/desk/staff')).status).toBe(204);
      });

      test('without the code of a user who has codes is no proof of presence: the factor cannot be replaced with it', async () => {
        const user = await shop.newUser({ is_staff: true });
        const { secret } = await shop.setUpCodes(await shop.loggedIn(user.username));
        shop.clock.advance(30_000);
        const browser = shop.browser();
        expect((await browser.get(`/sso/${user.id}/none`)).body.second_factor).toBe('setup_required');
        for (const [method, path, body] of [
          ['POST', '/account/factor', undefined],
          ['POST', '/account/factor/confirm', { code: '123456' }],
          ['POST', '/account/factor/recovery-codes', undefined],
          ['DELETE', '/account/factor', undefined],
          ['POST', '/account/email', { email: 'thief@example.com' }],
          ['POST', '/api-keys', { name: 'thief', scopes: [] }],
        ] as const)
          expect({ path, code: (await browser.send(method, path, body)).body.code }).toEqual({ path, code: 'recent_login_required' });
        // The password and the code are: the session then has what the factor gives.
        expect((await browser.post('/account/presence', { password: PASSWORD, code: shop.code(secret) })).status).toBe(200);
        expect((await browser.get('/desk/staff')).status).toBe(204);
        expect((await browser.post('/account/factor')).status).toBe(200);
      });

      test('is refused for unknown and deactivated users', async () => {
        const user = await shop.newUser();
        await deactivateUser(database.db, user.id);
        for (const id of [user.id, '01890000-0000-7000-8000-000000000000', 'nobody']) {
          const answer = await enter(id);
          expect(answer.status).toBe(404);
          expect(answer.headers['set-cookie']).toBeUndefined();
        }
      });
    });
  },
  { template: 'logins', prepare: (db) => LoginApp.migrate(db) },
);
