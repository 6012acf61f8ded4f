import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { siteFolder } from '../../test/admin/admin-app.ts';
import { auditLog } from '../../test/audit-log.ts';
import { createApp, type App, type AppOptions, type LoginProvider } from '../app/index.ts';
import { migrateApp } from '../app/data/migration-modules.ts';
import type { Authenticator, User } from '../auth/index.ts';
import { accounts } from '../contrib/accounts/index.ts';
import { apiKeys, createApiKey } from '../contrib/apikeys/index.ts';
import { audit } from '../contrib/audit/index.ts';
import type { Db } from '../db/index.ts';
import { coreErrors } from '../errors/index.ts';
import { Controller, jsonSchema, route } from '../http/index.ts';
import { allowAny } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { admin } from './index.ts';

// An application with users, sessions and a login page of its own, and no accounts().

const COOKIE = 'shop_session';
const digest = (value: string) => createHash('sha256').update(value).digest('hex');
const csrfOf = (token: string) => digest(`csrf ${token}`);
const tokenOf = (cookie: unknown) => new RegExp(`(?:^|; )${COOKIE}=([\\w-]+)`).exec(typeof cookie === 'string' ? cookie : '')?.[1];

const USER = 'm.id, m.handle as username, m.mail as email, m.enabled as is_active, m.staff as is_staff, m.root as is_superuser';

interface Row extends User {
  readonly session_id: string;
  readonly factor: 'proved' | 'missing' | 'none';
}

const memberSession: Authenticator = {
  name: 'member_session',
  securityScheme: { type: 'apiKey', in: 'cookie', name: COOKIE },
  async authenticate({ headers, db }) {
    const token = tokenOf(headers['cookie']);
    if (token === undefined) return null;
    const [row] = await db.query<Row>(
      `select ${USER}, s.id as session_id, s.factor from member_sessions s join members m on m.id = s.member_id where s.digest = $1 and m.enabled = $2`,
      [digest(token), true],
    );
    if (row === undefined) return null;
    const { session_id: credentialId, factor, ...user } = row;
    return { user, scheme: 'member_session', scopes: null, credentialId, ...(factor === 'none' ? {} : { secondFactor: factor }) };
  },
  verifyCsrf({ headers }) {
    if (headers['x-csrf-token'] !== csrfOf(tokenOf(headers['cookie']) ?? '')) throw coreErrors.csrf_failed();
  },
};

const login: LoginProvider = {
  authenticators: ['member_session'],
  loginUrl: '/login',
  accountUrl: '/me',
  csrfToken: ({ request }) => csrfOf(tokenOf(request.headers.cookie) ?? ''),
  async logOut({ request, reply, db, principal }) {
    const token = tokenOf(request.headers.cookie);
    if (token !== undefined && principal !== null) await db.query('delete from member_sessions where digest = $1', [digest(token)]);
    void reply.header('set-cookie', `${COOKIE}=; Max-Age=0; Path=/`);
  },
};

/** The application's own way to log in: what it proves is no business of the toolkit. */
class LoginController extends Controller {
  enter = route.post(
    '/',
    { permission: allowAny, auth: [], csrf: false, body: jsonSchema<{ handle: string; factor?: string }>({ type: 'object' }) },
    async ({ db, body, reply }) => {
      const token = randomBytes(24).toString('base64url');
      const [member] = await db.query<{ id: string }>('select id from members where handle = $1', [body.handle]);
      if (member === undefined) throw coreErrors.invalid_credentials();
      await db.query('insert into member_sessions values ($1, $2, $3, $4)', [
        digest(`id ${token}`),
        member.id,
        digest(token),
        body.factor ?? 'none',
      ]);
      void reply.header('set-cookie', `${COOKIE}=${token}; HttpOnly; Path=/`);
    },
  );
}

const files = siteFolder();
afterAll(() => files.remove());

const options = (database: AppOptions['database']): AppOptions => ({
  database: database as never,
  users: {
    table: {
      name: 'members',
      id: 'id',
      username: 'handle',
      email: 'mail',
      isActive: 'enabled',
      isStaff: 'staff',
      isSuperuser: 'root',
      idType: 'text',
    },
  },
  authenticators: [memberSession],
  login,
  modules: [audit(), apiKeys(), admin({ site: files.url })],
  mount: { '/': { '/login': LoginController } },
  log: { level: 'silent' },
});

describeDatabases(
  'the admin site of an application with its own login',
  (database) => {
    let app: App;

    beforeAll(async () => {
      app = createApp(options(database.db));
      await migrateApp(app);
      await app.ready();
    });
    afterAll(() => app.close());

    const call = async (method: 'GET' | 'POST' | 'DELETE', path: string, headers: Record<string, string> = {}, payload?: object) => {
      const url = path.startsWith('/') ? path : `/admin/api/${path}`;
      const response = await app.inject({ method, url, headers, ...(payload === undefined ? {} : { payload }) });
      const isJson = (response.headers['content-type'] ?? '').includes('json');
      return { status: response.statusCode, body: isJson ? response.json() : null, headers: response.headers };
    };
    const enter = async (handle: string, factor?: string): Promise<Record<string, string>> => {
      const answer = await call('POST', '/login', {}, { handle, ...(factor === undefined ? {} : { factor }) });
      const cookie = String(answer.headers['set-cookie']).split(';')[0] ?? '';
      return { cookie, 'x-csrf-token': csrfOf(tokenOf(cookie) ?? '') };
    };

    test('says where to log in, and has no form and no account pages of its own', async () => {
      expect(await call('GET', 'login')).toMatchObject({ status: 200, body: { url: '/login', account: false, account_url: '/me' } });
      expect((await call('POST', 'login', {}, { login: 'ada', password: 'x' })).status).toBe(405);
      expect(app.routes.filter(({ path }) => path.startsWith('/admin/api/account'))).toEqual([]);
      expect(app.modules.map(({ name }) => name)).not.toContain('accounts');
    });

    test('staff get in with the session of the application, and see what the modules show', async () => {
      expect((await call('GET', 'session')).status).toBe(401);
      const ada = await enter('ada');
      const { status, body } = await call('GET', 'session', ada);
      expect(status).toBe(200);
      expect(body).toMatchObject({
        user: { id: 'member-1', username: 'ada' },
        csrf_token: ada['x-csrf-token'],
        site: { login: { url: '/login' } },
      });
      expect(body.site.resources.map(({ name }: { name: string }) => name)).toEqual(expect.arrayContaining(['api-keys', 'audit-log']));
      expect((await call('GET', 'resources/api-keys', ada)).status).toBe(200);
      expect((await call('GET', 'overview', ada)).status).toBe(200);
    });

    test('a request from another site is refused: the application’s own proof is asked for', async () => {
      const { cookie = '' } = await enter('ada');
      expect(await call('POST', 'lists/api-keys/filters', { cookie }, { name: 'a', query: '' })).toMatchObject({
        status: 403,
        body: { code: 'csrf_failed' },
      });
      expect((await call('POST', 'logout', { cookie })).status).toBe(403);
    });

    test('a user who is not staff is refused with the token to log out, and an API key of staff is no way in', async () => {
      const grace = await enter('grace');
      expect(await call('GET', 'session', grace)).toMatchObject({
        status: 403,
        body: { code: 'staff_only', csrf_token: grace['x-csrf-token'] },
      });
      expect((await call('GET', 'resources/api-keys', grace)).status).toBe(403);
      const ada = await app.users?.findByLogin(app.db, 'ada');
      const { raw } = await createApiKey(app.db, { user: ada as User, name: 'all', scopes: ['*'] });
      for (const path of ['session', 'resources/api-keys', 'overview'])
        expect([path, (await call('GET', path, { 'x-api-key': raw })).status]).toEqual([path, 401]);
    });

    test('a second factor that the application says is missing closes the site', async () => {
      const ada = await enter('ada', 'missing');
      expect(await call('GET', 'session', ada)).toMatchObject({ status: 403, body: { code: 'second_factor_required' } });
      for (const path of ['resources/api-keys', 'overview']) expect((await call('GET', path, ada)).status).toBe(403);
      expect((await call('GET', 'session', await enter('ada', 'proved'))).status).toBe(200);
    });

    test('logging out ends the session of the application and is recorded', async () => {
      const ada = await enter('ada');
      const left = await call('POST', 'logout', ada);
      expect(left.status).toBe(204);
      expect(String(left.headers['set-cookie'])).toContain('Max-Age=0');
      expect((await call('GET', 'session', ada)).status).toBe(401);
      expect((await auditLog(database.db, { action: 'admin.logout' })).map((entry) => entry.target_id)).toContain('member-1');
    });

    test('saved filters belong to the user, and are deleted with the user', async () => {
      const ada = await enter('ada');
      expect((await call('POST', 'lists/api-keys/filters', ada, { name: 'mine', query: 'search=a' })).status).toBe(201);
      const saved = async () => (await database.db.query('select name from admin_saved_filters where user_id = $1', ['member-1'])).length;
      const changed = (tx: Db) => Promise.all(app.registry.userChanges.map((listener) => listener(tx, 'member-1')));
      await database.db.transaction(changed);
      expect(await saved()).toBe(1);
      await database.db.transaction(async (tx) => {
        await tx.query('delete from member_sessions where member_id = $1', ['member-1']);
        await tx.query('delete from members where id = $1', ['member-1']);
        await changed(tx);
        expect((await tx.query('select name from admin_saved_filters where user_id = $1', ['member-1'])).length).toBe(0);
      });
    });
  },
  {
    prepare: async (db) => {
      await db.query(
        'create table members (id text primary key, handle text unique, mail text, enabled boolean, staff boolean, root boolean)',
      );
      await db.query(
        'create table member_sessions (id text primary key, member_id text references members, digest text unique, factor text)',
      );
      for (const [id, handle, staff] of [
        ['member-1', 'ada', true],
        ['member-2', 'grace', false],
      ] as const)
        await db.query('insert into members values ($1, $2, $3, $4, $5, $6)', [id, handle, `${handle}@example.com`, true, staff, false]);
    },
  },
);

describe('a login that cannot be used fails the start', () => {
  const start = (given: Partial<AppOptions>) => createApp({ ...options('sqlite::memory:'), ...given });

  test.each([
    ['none', { login: undefined }, /E034 {2}admin\(\) needs to know how staff log in/],
    [
      'an unknown authenticator',
      { login: { ...login, authenticators: ['member_sesion'] } },
      /E034 .*"member_sesion".*Did you mean "member_session"/,
    ],
    ['no CSRF proof', { login: { ...login, authenticators: ['api_key'] } }, /E034 .*"api_key" has no verifyCsrf/],
    ['nowhere to log in', { login: { authenticators: ['member_session'], logOut: () => undefined } }, /E034 .*neither loginUrl nor form/],
    ['a script as its address', { login: { ...login, loginUrl: 'javascript:alert(1)' } }, /E011 .*loginUrl/],
    ['another host as its path', { login: { ...login, accountUrl: '//evil.example' } }, /E011 .*accountUrl/],
    ['no way out', { login: { authenticators: ['member_session'], loginUrl: '/login' } as never }, /E011 .*logOut/],
    [
      'two modules',
      { login: undefined, modules: [accounts(), { name: 'members', login }] },
      /E006 .*accounts and members both provide a login/,
    ],
  ])('%s', (_, given, message) => {
    expect(() => start(given as Partial<AppOptions>)).toThrow(message);
  });

  test('the application’s own one is used instead of that of accounts()', () => {
    const app = start({ users: undefined as never, modules: [accounts(), admin({ site: files.url })] });
    expect(app.registry.login).toBe(login);
    expect(app.routes.some(({ path }) => path.startsWith('/admin/api/account'))).toBe(false);
  });
});
