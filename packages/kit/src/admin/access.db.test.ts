import { fastify } from 'fastify';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AdminApp, cookieOf, HOST, PASSWORD, type Browser } from '../../test/admin/admin-app.ts';
import { StartUpError, createApp } from '../app/index.ts';
import { accounts } from '../contrib/accounts/index.ts';
import { apiKeys, createApiKey } from '../contrib/apikeys/index.ts';
import { webhooks } from '../contrib/webhooks/index.ts';
import { Controller, route } from '../http/index.ts';
import { allowAny } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { admin } from './index.ts';

const ID = '019b0000-0000-7000-8000-000000000000';

describeDatabases('who gets into the admin site', (database) => {
  let site: AdminApp;
  let staff: Browser;

  beforeAll(async () => {
    site = await new AdminApp(database.db, [apiKeys(), webhooks()]).ready();
    staff = await site.browser();
  });
  afterAll(() => site.close());

  const ACCOUNT = '/admin/api/account';
  /** Every route of the API but the login, its description, the logout and those of the own account, which have their own tests. */
  const routes = () =>
    site.app.routes
      .filter(
        ({ path, field }) =>
          path.startsWith('/admin/api') && !path.startsWith(ACCOUNT) && !['login', 'loginPage', 'logout'].includes(field),
      )
      .map(({ method, path }) => ({
        method: method as 'GET',
        path: path.replace(':resource', 'users').replace(':id', ID).replace(':action', 'activate'),
      }));
  const body = (method: string) => (method === 'GET' || method === 'DELETE' ? undefined : { ids: [ID] });

  test('there are eighteen routes behind the login', () => {
    expect(routes().map(({ method, path }) => `${method} ${path.slice('/admin/api'.length)}`)).toHaveLength(18);
  });

  test('the own account has no login of its own, needs a session, and takes links from mails without one', async () => {
    const own = site.app.routes.filter(({ path }) => path.startsWith(ACCOUNT));
    const OPEN = ['reset', 'confirmReset', 'acceptInvitation', 'confirmEmail'];
    const closed = [
      'password',
      'email',
      'presence',
      'sessions',
      'endSession',
      'endOtherSessions',
      'factor',
      'beginFactor',
      'confirmFactor',
    ];
    expect(own.map(({ field }) => field).sort()).toEqual([...closed, 'renewRecoveryCodes', 'removeFactor', ...OPEN].sort());
    const { raw } = await createApiKey(database.db, { user: await site.newUser({ is_staff: true }), name: 'all', scopes: ['*'] });
    for (const { method, path, field } of own) {
      for (const headers of [{}, { 'x-api-key': raw }]) {
        const { status } = await site.call(method as 'GET', path.replace(':id', ID), headers, method === 'GET' ? undefined : {});
        expect([field, status]).toEqual([field, OPEN.includes(field) ? 422 : 401]);
      }
    }
  });

  test.each([
    ['nobody', 401, () => ({})],
    ['a made-up session', 401, () => ({ cookie: `__Host-kit_session=${'x'.repeat(43)}` })],
  ] as const)('%s is refused everywhere', async (_, status, headers) => {
    for (const { method, path } of routes()) expect((await site.call(method, path, headers(), body(method))).status).toBe(status);
  });

  test('a user who is not staff is refused everywhere, with a valid session and token', async () => {
    const browser = await site.browser();
    await site.act(staff, 'users', 'remove-staff', [browser.userId]);
    for (const { method, path } of routes()) {
      const answer = await site.call(method, path, { cookie: browser.cookie, 'x-csrf-token': browser.csrf }, body(method));
      expect(answer).toMatchObject({ status: 403, body: { code: path.endsWith('/session') ? 'staff_only' : 'permission_denied' } });
    }
  });

  test('a user who was deactivated is refused everywhere', async () => {
    const browser = await site.browser();
    await site.act(staff, 'users', 'deactivate', [browser.userId]);
    for (const { method, path } of routes())
      expect((await site.call(method, path, { cookie: browser.cookie, 'x-csrf-token': browser.csrf }, body(method))).status).toBe(401);
  });

  test('an API key of staff is refused everywhere, also beside a session of a user who is not', async () => {
    const { raw } = await createApiKey(database.db, { user: await site.newUser({ is_staff: true }), name: 'all', scopes: ['*'] });
    for (const { method, path } of routes()) expect((await site.call(method, path, { 'x-api-key': raw }, body(method))).status).toBe(401);
  });

  test.each([
    ['without the CSRF token', () => ({})],
    ['with the token of another session', () => ({ 'x-csrf-token': 'y'.repeat(43) })],
    ['from another origin', (browser: Browser) => ({ 'x-csrf-token': browser.csrf, origin: 'https://evil.example' })],
    ['marked cross-site by the browser', (browser: Browser) => ({ 'x-csrf-token': browser.csrf, 'sec-fetch-site': 'cross-site' })],
    ['marked same-site by the browser', (browser: Browser) => ({ 'x-csrf-token': browser.csrf, 'sec-fetch-site': 'same-site' })],
  ] as const)('an unsafe request %s changes nothing', async (_, headers) => {
    const unsafe = [
      ...routes().filter(({ method }) => (method as string) !== 'GET'),
      { method: 'POST' as 'GET', path: '/admin/api/logout' },
    ];
    expect(unsafe).toHaveLength(9);
    for (const { method, path } of unsafe) {
      const answer = await site.call(
        method,
        path,
        { cookie: staff.cookie, ...headers(staff) },
        path.endsWith('logout') ? undefined : body(method),
      );
      expect(answer).toMatchObject({ status: 403, body: { code: 'csrf_failed' } });
    }
    expect((await site.get(staff, 'session')).status).toBe(200);
  });

  test('a body that is not JSON, as a form of another site would send it, is refused', async () => {
    const response = await site.app.inject({
      method: 'POST',
      url: '/admin/api/login',
      headers: { host: HOST, 'content-type': 'application/x-www-form-urlencoded' },
      payload: 'login=a&password=b',
    });
    expect(response.statusCode).toBe(415);
  });

  test('every answer, errors included, is kept by no cache and neither framed nor sniffed', async () => {
    for (const answer of [
      await site.get(staff, 'session'),
      await site.get(staff, 'resources/users'),
      await site.get(staff, 'resources/nothing'),
      await site.call('GET', 'api/session'),
      await site.call('GET', '/admin/'),
      await site.call('GET', '/admin/missing.js'),
    ]) {
      expect(answer.headers).toMatchObject({
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
      });
      expect(answer.headers['content-security-policy']).toContain("default-src 'none'");
    }
  });

  test('HEAD is refused where GET is, and no header turns a GET into a change', async () => {
    const url = `/admin/api/resources/users/${staff.userId}`;
    expect((await site.app.inject({ method: 'HEAD', url, headers: { host: HOST } })).statusCode).toBe(401);
    expect((await site.app.inject({ method: 'HEAD', url, headers: { host: HOST, cookie: staff.cookie } })).statusCode).toBe(200);
    const override = { 'x-http-method-override': 'DELETE', 'x-http-method': 'DELETE', 'x-method-override': 'DELETE' };
    expect((await site.call('GET', url, { cookie: staff.cookie, ...override })).body.id).toBe(staff.userId);
  });

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])('%s is no list, record, action, filter or field', async (name) => {
    expect((await site.get(staff, `resources/${name}`)).status).toBe(404);
    expect((await site.get(staff, `resources/users/${name}`)).status).toBe(404);
    expect((await site.act(staff, 'users', name, [ID])).status).toBe(404);
    expect((await site.get(staff, `resources/users?filter.${name}=x`)).status).toBe(422);
    expect((await site.get(staff, `resources/users?sort=${name}`)).status).toBe(422);
    const fields = JSON.parse(`{"${name}":1}`) as object;
    expect([400, 422]).toContain((await site.send(staff, 'POST', 'resources/endpoints', fields)).status);
  });

  test('the routes are no part of the OpenAPI document', async () => {
    expect((await site.call('GET', '/openapi.json')).text).not.toContain('/admin');
  });

  test('reading a record is logged with who read it', async () => {
    await site.get(staff, `resources/users/${staff.userId}`);
    expect(site.logged.map((line) => JSON.parse(line) as object)).toContainEqual(
      expect.objectContaining({ msg: 'admin: a record was read', user_id: staff.userId, resource: 'users', record: staff.userId }),
    );
  });

  test('neither a password, a hash nor a session was in any answer or log line', async () => {
    const rows = await database.db.query<{ password_hash: string }>('select password_hash from users where password_hash is not null');
    const digests = await database.db.query<{ token_digest: string }>('select token_digest from sessions');
    for (const text of [site.answers.join('\n'), site.logged.join('\n')]) {
      for (const { password_hash } of rows) expect(text).not.toContain(password_hash);
      for (const { token_digest } of digests) expect(text).not.toContain(token_digest);
      expect(text).not.toContain(PASSWORD);
      expect(text).not.toContain(staff.cookie.split('=')[1]);
    }
  });

  describe('the page', () => {
    test('allows its own scripts and styles with a nonce of its own per answer, and nothing inline', async () => {
      const [first, second] = [await site.call('GET', '/admin/'), await site.call('GET', '/admin/')];
      const policy = String(first.headers['content-security-policy']);
      const nonce = /'nonce-([\w-]{22})'/.exec(policy)?.[1] ?? '';
      expect(first.text).toContain(`content="${nonce}"`);
      expect(policy).toContain("script-src 'self'");
      expect(policy).not.toMatch(/unsafe-inline|unsafe-eval/);
      expect(second.text).not.toContain(nonce);
    });

    test('is linked from the address of the application itself, as JSON and as a page', async () => {
      const [json, page] = [await site.call('GET', '/'), await site.call('GET', '/', { accept: 'text/html' })];
      expect(json.body.links).toEqual({ docs: '/docs', openapi: '/openapi.json', admin: '/admin/' });
      expect(page.text).toContain('<a href="/admin/">');
    });

    test('without the slash redirects relatively, so that a prefix of a proxy stays; the query and no host is part of it', async () => {
      const answer = await site.call('GET', '/admin?x=1&y=//evil.example', { host: 'evil.example', 'x-forwarded-host': 'evil.example' });
      expect(answer).toMatchObject({ status: 308, headers: { location: './admin/?x=1&y=//evil.example' } });
    });

    test('its files are cached forever and checked by ETag; files outside the build are not served', async () => {
      const file = await site.call('GET', '/admin/assets/app-1.js');
      expect(file.headers).toMatchObject({
        'cache-control': 'public, max-age=31536000, immutable',
        'content-type': 'text/javascript; charset=utf-8',
      });
      const again = await site.call('GET', '/admin/assets/app-1.js', { 'if-none-match': String(file.headers['etag']) });
      expect(again).toMatchObject({ status: 304, text: '' });
      for (const path of ['.stamp', 'index.html', '../package.json', '..%2f..%2fpackage.json', 'assets/%2e%2e/.stamp', 'assets'])
        expect((await site.call('GET', `/admin/${path}`)).status).toBe(404);
    });
  });

  test('works inside a foreign server below a prefix', async () => {
    const inner = await new AdminApp(await database.open(), []).ready();
    const server = fastify();
    await server.register(inner.app.plugin, { prefix: '/ops' });
    try {
      const page = await server.inject({ url: '/ops/admin/', headers: { host: HOST } });
      expect(page.statusCode).toBe(200);
      expect((await server.inject({ url: '/ops/admin', headers: { host: HOST } })).headers.location).toBe('./admin/');
      const user = await inner.newUser({ username: 'prefixed', is_staff: true });
      const login = await server.inject({
        method: 'POST',
        url: '/ops/admin/api/login',
        headers: { host: HOST },
        payload: { login: user.username, password: PASSWORD },
      });
      expect(login.statusCode).toBe(200);
      const cookie = cookieOf({ headers: login.headers });
      expect((await server.inject({ url: '/ops/admin/api/resources/users', headers: { host: HOST, cookie } })).statusCode).toBe(200);
      expect((await server.inject({ url: '/ops/admin/assets/app-1.js', headers: { host: HOST } })).statusCode).toBe(200);
    } finally {
      await server.close();
      await inner.close();
    }
  });
});

describe('admin() at start-up', () => {
  class Taken extends Controller {
    page = route.get('/', { permission: allowAny }, () => undefined);
  }
  const app = (modules: Parameters<typeof createApp>[0]['modules'], mount: Parameters<typeof createApp>[0]['mount'] = {}) =>
    createApp({ database: 'sqlite::memory:', modules: modules ?? [], mount, log: { level: 'silent' } });

  test('needs a login', () => {
    expect(() => app([admin()])).toThrow(/E034 .*needs to know how staff log in/);
  });

  test('an address that the application uses already is a collision', () => {
    expect(() => app([accounts(), admin()], { '/admin': { '/': Taken } })).toThrow(/E003/);
    expect(() => app([accounts(), admin({ prefix: '/ops/admin' })], { '/admin': { '/': Taken } })).not.toThrow();
  });

  test('faulty options are named with the remedy', () => {
    expect(() => admin({ prefix: '/admin/' })).toThrow(/without a slash at its end/);
    expect(() => admin({ prefx: '/x' } as never)).toThrow(/unknown option "prefx". Did you mean "prefix"/);
  });

  test('a missing browser application stops the start with the remedy', async () => {
    const started = app([accounts(), admin({ site: new URL('./nowhere/', import.meta.url) })]);
    await expect(started.ready()).rejects.toThrow(StartUpError);
    const again = app([accounts(), admin({ site: new URL('./nowhere/', import.meta.url) })]);
    await expect(again.ready()).rejects.toThrow(/npm run build:admin/);
  });

  const resource = {
    name: 'things',
    label: 'Things',
    singular: 'thing',
    group: 'Data',
    columns: [],
    filters: [],
    creation: { fields: [] },
    editable: true,
    removable: false,
    actions: [],
    list: async () => ({ items: [], count: 0, next: null }),
    read: async () => null,
  };

  test('two lists of one name, and a form without its function, are faults', () => {
    expect(() => app([accounts(), { name: 'mine', admin: { resources: [resource, resource] } }, admin()])).toThrow(
      /creation\.fields.*editable.*Two lists of the admin site are named "things"/s,
    );
  });

  const everyone = (): string => 'operator';
  test.each([
    [{ of: everyone, need: {} }, 'unknown option "roles.need". Did you mean "needs"?'],
    [{ of: everyone, needs: { 'audit-log': { read: 'admin' } } }, 'roles.needs.audit-log.read is "admin"'],
    [{ needs: {} }, 'roles: { of: (user) => role }'],
  ])('roles that are written wrong stop the start: %o', (roles, message) => {
    expect(() => admin({ roles: roles as never })).toThrow(message);
  });

  test.each([
    [{ user: { read: 'operator' } }, 'roles.needs has "user", which is not a list of the site. Did you mean "users"?'],
    [{ users: { deactivat: 'operator' } }, 'has "deactivat", which is not one of its operations. Did you mean "deactivate"?'],
  ])('a role for a list or an operation that does not exist stops the start: %o', (needs, message) => {
    expect(() => app([accounts(), admin({ roles: { of: () => 'operator', needs } as never })])).toThrow(message);
  });

  test('an action with an unknown name or a wrong value stops the start', () => {
    const things = (action: object) => ({
      ...resource,
      creation: { refused: 'no' },
      editable: false,
      actions: [{ name: 'send', label: 'Send', tone: 'bad', on: 'record', run: async () => ({ message: 'sent' }), ...action }],
    });
    const start = (action: object) => () => app([accounts(), { name: 'mine', admin: { resources: [things(action) as never] } }, admin()]);
    expect(start({})).not.toThrow();
    expect(start({ need: 'remove' })).toThrow('unknown option "actions[0].need". Did you mean "needs"?');
    expect(start({ tone: 'danger' })).toThrow('actions[0].tone is "danger"');
  });
});
