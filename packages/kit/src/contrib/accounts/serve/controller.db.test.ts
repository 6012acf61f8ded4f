import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createApp, type App } from '../../../app/index.ts';
import { countQueries, migrate } from '../../../db/index.ts';
import { Controller, route } from '../../../http/index.ts';
import { isAuthenticated } from '../../../permissions/index.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { fakeClock } from '../../../testing/fake-clock.ts';
import { memoryStorage, type ThrottleStorage } from '../../../throttle/index.ts';
import { accountsOf, type Accounts } from '../users/accounts.ts';
import { AccountController } from './controller.ts';
import { activateUser, changePassword, createUser, deactivateUser, requireUser } from '../users/manage-users.ts';
import { initial } from '../migrations/0001_initial.ts';
import { accounts } from '../module.ts';
import type { PasswordCost } from '../users/password.ts';
import { newSessionToken } from '../sessions/session-token.ts';

const CHEAP: PasswordCost = { logN: 4, r: 8, p: 1 };
const PASSWORD = 'correct horse battery';
const HOUR_MS = 3_600_000;

class NoteController extends Controller {
  list = route.get('/', { permission: isAuthenticated }, () => undefined);
  add = route.post('/', { permission: isAuthenticated }, () => undefined);
}

interface Answer {
  readonly status: number;
  readonly body: { code?: string; csrf_token?: string; user?: Record<string, unknown> } & Record<string, unknown>;
  readonly headers: Record<string, string | string[] | number | undefined>;
  readonly cookie: string;
}

describeDatabases(
  'accounts over HTTP',
  (database) => {
    const clock = fakeClock();
    let app: App;
    let installed: Accounts;
    let budgets = memoryStorage();
    let people = 0;

    // A fresh set of budgets per test: the clock stands still, so one test's logins would throttle the next's.
    const storage: ThrottleStorage = {
      take: (...args) => budgets.take(...args),
      giveBack: (...args) => budgets.giveBack(...args),
    };

    beforeAll(async () => {
      app = createApp({
        database: database.db,
        modules: [accounts({ passwordCost: CHEAP, trustedOrigins: ['https://app.example.com'] })],
        mount: { '/v1': { '/account': AccountController, '/notes': NoteController } },
        throttleStorage: storage,
        log: { level: 'silent' },
        clock,
      });
      await app.ready();
      installed = accountsOf(app.db);
    });
    beforeEach(() => {
      budgets = memoryStorage();
    });
    afterAll(() => app.close());

    const call = async (method: 'GET' | 'POST', url: string, headers: Record<string, string> = {}, payload?: object): Promise<Answer> => {
      const response = await app.inject({
        method,
        url,
        headers: { host: 'api.example.com', ...headers },
        ...(payload === undefined ? {} : { payload }),
      });
      const cookie = String(response.headers['set-cookie'] ?? '').split(';')[0] ?? '';
      return { status: response.statusCode, body: response.body === '' ? {} : response.json(), headers: response.headers, cookie };
    };
    const newUser = async (given: { email?: string; password?: string | null } = {}) => {
      people += 1;
      return createUser(database.db, { username: `user${people}`, password: PASSWORD, ...given }, installed.management(null));
    };
    const logIn = (login: string, password = PASSWORD, headers: Record<string, string> = {}) =>
      call('POST', '/v1/account/login', headers, { login, password });
    const me = (cookie: string) => call('GET', '/v1/account/me', { cookie });
    const add = (headers: Record<string, string>) => call('POST', '/v1/notes', headers);

    describe('login', () => {
      test('answers the user and a CSRF token, and sets a cookie only this host and no script can use', async () => {
        const user = await newUser({ email: 'Ada1@Example.com' });
        const answer = await logIn(user.username);
        expect(answer.status).toBe(200);
        expect(answer.body.user).toEqual({
          id: user.id,
          username: user.username,
          email: 'ada1@example.com',
          is_active: true,
          is_staff: false,
          is_superuser: false,
        });
        expect(answer.headers['set-cookie']).toMatch(
          /^__Host-kit_session=[A-Za-z0-9_-]{43}; Path=\/; Max-Age=1209600; HttpOnly; SameSite=Lax; Secure$/,
        );
        expect(answer.headers['cache-control']).toBe('no-store');
        expect((await me(answer.cookie)).body).toEqual(answer.body);
      });

      test('a user that code makes with the settings of the installed module logs in', async () => {
        const { id } = await createUser(database.db, { username: 'by-code', password: PASSWORD });
        expect((await logIn('by-code')).status).toBe(200);
        await deactivateUser(database.db, id);
        expect((await logIn('by-code')).status).toBe(401);
      });

      test('takes the user name or the address, in any case', async () => {
        const user = await newUser({ email: 'grace@example.com' });
        expect((await logIn(user.username.toUpperCase())).status).toBe(200);
        expect((await logIn('GRACE@example.com')).status).toBe(200);
      });

      test('fails in one and the same way for unknown, deactivated, password-less and mistyped', async () => {
        const [active, inactive, machine] = [await newUser(), await newUser(), await newUser({ password: null })];
        await deactivateUser(database.db, inactive.id, installed.management(null));
        const answers = [
          await logIn(active.username, 'wrong wrong wrong'),
          await logIn(inactive.username),
          await logIn(machine.username),
          await logIn('nobody'),
          await logIn('nobody@example.com'),
        ];
        for (const answer of answers) {
          expect({ ...answer.body, request_id: null }).toEqual({ ...answers[0]?.body, request_id: null });
          expect(answer).toMatchObject({ status: 401, cookie: '', body: { code: 'invalid_credentials' } });
        }
      });

      test('ends the session the browser had before', async () => {
        const user = await newUser();
        const first = await logIn(user.username);
        const second = await logIn(user.username, PASSWORD, { cookie: first.cookie });
        expect(second.cookie).not.toBe(first.cookie);
        expect((await me(first.cookie)).status).toBe(401);
        expect((await me(second.cookie)).status).toBe(200);
      });

      test('works with a stale or a foreign cookie in the browser', async () => {
        const user = await newUser();
        for (const value of [newSessionToken(), 'nonsense', '']) {
          expect((await logIn(user.username, PASSWORD, { cookie: `__Host-kit_session=${value}` })).status).toBe(200);
        }
      });

      test('from a page of another site is refused before the password is looked at', async () => {
        const user = await newUser();
        for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }] as Record<string, string>[]) {
          expect(await logIn(user.username, PASSWORD, headers)).toMatchObject({ status: 403, body: { code: 'csrf_failed' } });
        }
        expect((await logIn(user.username, PASSWORD, { origin: 'https://app.example.com' })).status).toBe(200);
      });

      test('replaces a hash of another cost, and the password goes on working', async () => {
        const user = await newUser();
        await changePassword(database.db, user, PASSWORD, { ...installed.management(null), passwordCost: { logN: 3, r: 8, p: 1 } });
        expect((await logIn(user.username)).status).toBe(200);
        expect((await requireUser(database.db, user.username)).password_hash).toMatch(/^\$scrypt\$ln=4,r=8,p=1\$/);
        expect((await logIn(user.username)).status).toBe(200);
      });

      test.each([
        [{}],
        [{ login: 'ada' }],
        [{ login: 'ada', password: 5 }],
        [{ login: '', password: 'x' }],
        [{ login: 'ada', password: 'x'.repeat(257) }],
        [{ login: 'ada', password: 'x', is_staff: true }],
      ])('refuses the body %j with its faults', async (body) => {
        expect(await call('POST', '/v1/account/login', {}, body)).toMatchObject({ status: 422, body: { code: 'validation_error' } });
      });
    });

    describe('throttling', () => {
      test('stops guessing at one account from anywhere, known or not, and says nothing about which', async () => {
        const user = await newUser();
        for (const login of [user.username, 'no-such-user']) {
          budgets = memoryStorage();
          const answers = [];
          for (let i = 0; i < 12; i += 1) answers.push(await logIn(login, 'wrong wrong wrong', { 'x-forwarded-for': `203.0.113.${i}` }));
          expect(answers.map(({ status }) => status)).toEqual([...Array.from({ length: 10 }, () => 401), 429, 429]);
          expect(answers.at(-1)?.headers['retry-after']).toBe('180');
        }
      });

      test('does not tell which address belongs to a name whose guesses are used up, nor that there is one', async () => {
        const user = await newUser({ email: 'belongs@example.com' });
        const guess = (login: string, i: number) => logIn(login, 'wrong wrong wrong', { 'x-forwarded-for': `203.0.113.${i}` });
        for (const [exhausted, others] of [
          [user.username, ['belongs@example.com', 'nobody@example.com', 'no-such-user']],
          ['belongs@example.com', [user.username, 'nobody@example.com', 'no-such-user']],
        ] as const) {
          budgets = memoryStorage();
          for (let i = 0; i < 11; i += 1) await guess(exhausted, i);
          expect((await guess(exhausted, 12)).status).toBe(429);
          for (const [index, other] of others.entries()) {
            const { status, body, headers } = await guess(other, 20 + index);
            expect([other, status, body.code, headers['retry-after']]).toEqual([other, 401, 'invalid_credentials', undefined]);
          }
        }
      });

      test('allows ten guesses by each name of an account, however it is written', async () => {
        const user = await newUser({ email: 'shared@example.com' });
        const statuses = [];
        for (let i = 0; i < 24; i += 1) {
          const login = i % 2 === 0 ? user.username : ' Shared@Example.com';
          statuses.push((await logIn(login, 'wrong wrong wrong', { 'x-forwarded-for': `203.0.113.${i}` })).status);
        }
        expect(statuses).toEqual([...Array.from({ length: 20 }, () => 401), 429, 429, 429, 429]);
      });

      test('does not count a right password', async () => {
        const user = await newUser();
        for (let i = 0; i < 15; i += 1) expect((await logIn(user.username)).status).toBe(200);
      });

      test('stops guessing at many accounts from one client, before the body is read', async () => {
        const statuses = [];
        for (let i = 0; i < 22; i += 1) statuses.push((await logIn(`guess${i}`, 'wrong wrong wrong')).status);
        expect(statuses.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => 401));
        expect(statuses.slice(20)).toEqual([429, 429]);
        expect((await call('POST', '/v1/account/login', {}, { nonsense: true })).status).toBe(429);
      });
    });

    describe('a session', () => {
      test('is stored as a digest: no table contains what the browser holds', async () => {
        const user = await newUser();
        const { cookie, body } = await logIn(user.username);
        const token = cookie.split('=')[1] ?? '';
        const rows = JSON.stringify([await database.db.query('select * from sessions'), await database.db.query('select * from users')]);
        expect(rows).toContain(user.id);
        expect(rows).not.toContain(token);
        expect(rows).not.toContain(body.csrf_token);
        expect(rows).not.toContain(PASSWORD);
      });

      test('costs one statement per request, and a cookie of another form none', async () => {
        const { cookie } = await logIn((await newUser()).username);
        expect((await countQueries(() => me(cookie))).count).toBe(1);
        expect((await countQueries(() => me('__Host-kit_session=x'))).count).toBe(0);
      });

      test('ends after its idle time, and use keeps it alive', async () => {
        const user = await newUser();
        const [idle, busy] = [await logIn(user.username), await logIn(user.username)];
        for (let hour = 0; hour < 30; hour += 1) {
          clock.advance(HOUR_MS);
          expect((await me(busy.cookie)).status).toBe(200);
        }
        expect((await me(idle.cookie)).status).toBe(401);
      });

      test('ends after its lifetime, however busy', async () => {
        const { cookie } = await logIn((await newUser()).username);
        for (let half = 1; half < 28; half += 1) {
          clock.advance(12 * HOUR_MS);
          expect((await me(cookie)).status).toBe(200);
        }
        clock.advance(12 * HOUR_MS);
        expect((await me(cookie)).status).toBe(401);
      });

      test('is marked as seen at most once a minute', async () => {
        const { cookie } = await logIn((await newUser()).username);
        clock.advance(59_000);
        expect((await countQueries(() => me(cookie))).count).toBe(1);
        clock.advance(1000);
        expect((await countQueries(() => me(cookie))).count).toBe(2);
        expect((await countQueries(() => me(cookie))).count).toBe(1);
      });

      test('ends at logout, which is repeatable and clears the cookie', async () => {
        const { cookie, body } = await logIn((await newUser()).username);
        const headers = { cookie, 'x-csrf-token': body.csrf_token ?? '' };
        const answer = await call('POST', '/v1/account/logout', headers);
        expect(answer.status).toBe(204);
        expect(answer.headers['set-cookie']).toContain('Max-Age=0');
        expect((await me(cookie)).status).toBe(401);
        expect((await call('POST', '/v1/account/logout', headers)).status).toBe(204);
        expect((await call('POST', '/v1/account/logout')).status).toBe(204);
      });

      test('ends at once when its user is deactivated, and stays ended when the user comes back', async () => {
        const user = await newUser();
        const { cookie } = await logIn(user.username);
        await deactivateUser(database.db, user.id, installed.management(null));
        expect((await me(cookie)).status).toBe(401);
        expect((await logIn(user.username)).status).toBe(401);
        await activateUser(database.db, user.id, installed.management(null));
        expect((await me(cookie)).status).toBe(401);
        expect((await logIn(user.username)).status).toBe(200);
      });

      test('never outlives a deactivation that runs while logins are in flight', async () => {
        const user = await newUser();
        const [logins] = await Promise.all([
          Promise.all(Array.from({ length: 8 }, () => logIn(user.username))),
          deactivateUser(database.db, user.id, installed.management(null)),
        ]);
        await activateUser(database.db, user.id, installed.management(null));
        for (const { cookie } of logins) expect((await me(cookie)).status).toBe(401);
      });
    });

    describe('changing the password', () => {
      test('ends every other session and goes on with a new one', async () => {
        const user = await newUser();
        const [here, elsewhere] = [await logIn(user.username), await logIn(user.username)];
        const changed = await call(
          'POST',
          '/v1/account/password',
          { cookie: here.cookie, 'x-csrf-token': here.body.csrf_token ?? '' },
          { current_password: PASSWORD, new_password: 'a different sentence' },
        );
        expect(changed.status).toBe(200);
        expect((await me(here.cookie)).status).toBe(401);
        expect((await me(elsewhere.cookie)).status).toBe(401);
        expect((await me(changed.cookie)).status).toBe(200);
        expect((await logIn(user.username)).status).toBe(401);
        expect((await logIn(user.username, 'a different sentence')).status).toBe(200);
      });

      test('counts once when it is changed several times at once with the same current one', async () => {
        const user = await newUser();
        const logins = [await logIn(user.username), await logIn(user.username), await logIn(user.username)];
        const answers = await Promise.all(
          logins.map(({ cookie, body }, index) =>
            call(
              'POST',
              '/v1/account/password',
              { cookie, 'x-csrf-token': body.csrf_token ?? '' },
              { current_password: PASSWORD, new_password: `a different sentence ${index}` },
            ),
          ),
        );
        expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 401, 401]);
        const winner = answers.findIndex(({ status }) => status === 200);
        expect((await me(answers[winner]?.cookie ?? '')).status).toBe(200);
        expect((await logIn(user.username, `a different sentence ${winner}`)).status).toBe(200);
      });

      test('needs the current one, and a new one that is good enough', async () => {
        const user = await newUser();
        const { cookie, body } = await logIn(user.username);
        const change = (current_password: string, new_password: string) =>
          call('POST', '/v1/account/password', { cookie, 'x-csrf-token': body.csrf_token ?? '' }, { current_password, new_password });
        expect(await change('wrong wrong wrong', 'a different sentence')).toMatchObject({
          status: 401,
          body: { code: 'invalid_credentials' },
        });
        expect(await change(PASSWORD, 'short')).toMatchObject({ status: 422, body: { code: 'weak_password' } });
        expect((await me(cookie)).status).toBe(200);
      });
    });

    describe('an unsafe request with a session', () => {
      test('needs the session’s own CSRF token', async () => {
        const user = await newUser();
        const [mine, other] = [await logIn(user.username), await logIn(user.username)];
        const { cookie } = mine;
        expect(await add({ cookie })).toMatchObject({ status: 403, body: { code: 'csrf_failed' } });
        expect((await add({ cookie, 'x-csrf-token': other.body.csrf_token ?? '' })).status).toBe(403);
        expect((await add({ cookie, 'x-csrf-token': '' })).status).toBe(403);
        expect((await add({ cookie, 'x-csrf-token': mine.body.csrf_token ?? '' })).status).toBe(204);
        expect((await call('GET', '/v1/notes', { cookie })).status).toBe(204);
      });

      test('is refused when the browser says it comes from elsewhere, even with the token', async () => {
        const { cookie, body } = await logIn((await newUser()).username);
        const token = { cookie, 'x-csrf-token': body.csrf_token ?? '' };
        for (const headers of [
          { origin: 'https://evil.example' },
          { origin: 'null' },
          { origin: 'http://api.example.com' },
          { 'sec-fetch-site': 'cross-site' },
          { 'sec-fetch-site': 'same-site' },
        ] as Record<string, string>[]) {
          expect(await add({ ...token, ...headers })).toMatchObject({ status: 403, body: { code: 'csrf_failed' } });
        }
        for (const headers of [
          { origin: 'https://api.example.com', 'sec-fetch-site': 'same-origin' },
          { origin: 'https://app.example.com', 'sec-fetch-site': 'same-site' },
        ]) {
          expect((await add({ ...token, ...headers })).status).toBe(204);
        }
      });
    });
  },
  {
    template: 'accounts',
    prepare: async (db) => {
      await migrate(db, [{ name: 'accounts', migrations: [initial] }]);
    },
  },
);
