import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { AdminApp, type Answer, cookieOf, PASSWORD, siteFolder } from '../../test/admin/admin-app.ts';
import { deactivateUser, accountsOf } from '../contrib/accounts/index.ts';
import { ApiKeyController, apiKeys } from '../contrib/apikeys/index.ts';
import { WebhookEndpointController, webhooks } from '../contrib/webhooks/index.ts';
import { list } from '../db/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { portal, portalLink, revokePortalLink } from './index.ts';
import type { NewPortalLink } from './links/portal-link.ts';
import { portalLinks } from './models.ts';

class Keys extends ApiKeyController {
  static override readonly grantableScopes = ['webhooks:read'];
}

describeDatabases('links to the portal', (database) => {
  const clock = fakeClock('2030-01-15T10:00:00.000Z');
  const files = siteFolder();
  let app: AdminApp;
  let userId: string;

  beforeAll(async () => {
    app = await new AdminApp(database.db, [apiKeys(), webhooks(), portal({ site: files.url })], {
      clock,
      mount: { '/v1': { '/api-keys': Keys, '/hooks': WebhookEndpointController } },
    }).ready();
  });
  beforeEach(async () => {
    userId = (await app.newUser()).id;
  });
  afterAll(async () => {
    await app.close();
    files.remove();
  });

  const link = (given: Partial<NewPortalLink> = {}) => portalLink(app.app.db, { user: userId, ...given });
  const open = (token: string, headers: Record<string, string> = {}, more: object = {}) =>
    app.call('POST', '/portal/link', headers, { token, ...more });
  async function enter(
    given: Partial<NewPortalLink> = {},
  ): Promise<{ readonly cookie: string; readonly csrf: string; readonly id: string }> {
    const { token, id } = await link(given);
    const cookie = cookieOf(await open(token));
    return { id, cookie, csrf: (await app.call('GET', '/portal/api/session', { cookie })).body.csrf_token };
  }
  /** Entries are in one of two tables, depending on whether they were sealed yet. */
  async function audited(target?: string): Promise<string> {
    const where = target === undefined ? '' : `where target_id = '${target}'`;
    const rows = await Promise.all(['audit_inbox', 'audit_entries'].map((table) => app.app.db.query(`select * from ${table} ${where}`)));
    return JSON.stringify(rows, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
  }
  const status = async (answer: Promise<Answer>): Promise<[number, string | undefined]> => {
    const { status: code, body } = await answer;
    return [code, body?.code];
  };
  const keys = (headers: Record<string, string>) => app.call('GET', '/portal/api/resources/api-keys', headers);
  const newKey = ({ cookie, csrf }: { cookie: string; csrf: string }, headers: Record<string, string> = {}) =>
    app.call(
      'POST',
      '/portal/api/resources/api-keys',
      { cookie, 'x-csrf-token': csrf, ...headers },
      { name: 'CI', scopes: ['webhooks:read'] },
    );

  test('a link opens a session once, for its user, and its token is nowhere', async () => {
    const { token, path, expiresAt } = await link();
    expect(path).toBe(`/portal/#link=${token}`);
    expect(expiresAt).toEqual(new Date(clock.now().getTime() + 600_000));
    const opened = await open(token);
    expect(opened.status).toBe(200);
    expect(opened.body).toEqual({ token: null });
    const set = String(opened.headers['set-cookie']);
    // Without a path: the browser binds it to /portal.
    expect(set).toMatch(/^__Secure-kit_portal=[\w-]{43}; Max-Age=28800; HttpOnly; SameSite=Strict; Secure$/);
    const cookie = cookieOf(opened);
    const session = await app.call('GET', '/portal/api/session', { cookie });
    expect(session.body).toMatchObject({ user: { id: userId } });
    expect(await status(open(token))).toEqual([410, 'invalid_portal_link']);
    const stored = JSON.stringify(await list(app.app.db, portalLinks));
    for (const secret of [token, cookie.split('=')[1] as string]) {
      expect(stored).not.toContain(secret);
      expect(app.logged.join('\n')).not.toContain(secret);
      expect(await audited()).not.toContain(secret);
    }
  });

  test('of twenty who open a link at the same moment, one gets in', async () => {
    const { token } = await link();
    const answers = await Promise.all(Array.from({ length: 20 }, (_, each) => open(token, { 'x-forwarded-for': `10.0.0.${each}` })));
    expect(answers.filter(({ status: code }) => code === 200)).toHaveLength(1);
    expect(new Set(answers.map(({ status: code }) => code))).toEqual(new Set([200, 410]));
  });

  test('a link that expired, was revoked, is of nobody, or is not one: the same answer', async () => {
    const [expired, revoked, left] = [await link({ expiresIn: 60 }), await link(), await link()];
    expect(await revokePortalLink(app.app.db, revoked.id)).toBe(true);
    expect(await revokePortalLink(app.app.db, revoked.id)).toBe(false);
    clock.advance(60_000);
    await deactivateUser(app.app.db, userId, accountsOf(app.app.db).management(null));
    const made = randomBytes(32).toString('base64url');
    for (const token of [expired.token, revoked.token, left.token, made, 'x', `${expired.token}x`])
      expect(await status(open(token)), `token ${token}`).toEqual([410, 'invalid_portal_link']);
    await expect(link()).rejects.toMatchObject({ status: 404 });
  });

  test('the session is for the portal alone: no route of the API and no other site takes its cookie or its token', async () => {
    const { cookie } = await enter({ manage: true });
    const token = cookie.split('=')[1] as string;
    expect((await keys({ cookie })).status).toBe(200);
    for (const headers of [
      { cookie },
      { 'x-portal-session': token },
      { cookie: `__Host-kit_session=${token}` },
      { authorization: `Bearer ${token}` },
    ]) {
      for (const path of ['/v1/api-keys', '/v1/hooks', '/admin/api/session', '/portal/api/account/sessions'])
        expect((await app.call('GET', path, headers as Record<string, string>)).status, `path ${path}`).toBe(401);
    }
    const documented = app.app.routes.filter(({ authenticators }) => authenticators.some(({ name }) => name === 'portal_session'));
    expect(documented.every(({ path, hidden }) => path.startsWith('/portal/') && hidden)).toBe(true);
  });

  test('without manage it looks and changes nothing; with it, keys are made in the first ten minutes', async () => {
    const reader = await enter();
    expect(await status(newKey(reader))).toEqual([403, 'portal_read_only']);
    const { site } = (await app.call('GET', '/portal/api/session', { cookie: reader.cookie })).body;
    expect(site.resources[0]).toMatchObject({ creation: { refused: expect.any(String) }, editable: false, removable: false });
    const manager = await enter({ manage: true });
    const made = await newKey(manager);
    expect(made.status).toBe(201);
    const rotate = () =>
      app.call(
        'POST',
        '/portal/api/resources/api-keys/actions/rotate',
        { cookie: manager.cookie, 'x-csrf-token': manager.csrf },
        { ids: [made.body.id], fields: {} },
      );
    expect((await rotate()).status).toBe(200);
    clock.advance(10 * 60_000 + 1);
    expect(await status(newKey(manager))).toEqual([403, 'recent_login_required']);
    const late = await rotate();
    expect([late.status, late.body.code, late.text]).toEqual([403, 'recent_login_required', expect.not.stringContaining('"secret"')]);
    // The link counts, not the click on it.
    const waited = await link({ manage: true, expiresIn: 3600 });
    clock.advance(10 * 60_000 + 1);
    const cookie = cookieOf(await open(waited.token));
    const csrf = (await app.call('GET', '/portal/api/session', { cookie })).body.csrf_token;
    expect(await status(newKey({ cookie, csrf }))).toEqual([403, 'recent_login_required']);
    expect((await keys({ cookie: manager.cookie })).body.items).toHaveLength(1);
    clock.advance(8 * 3_600_000);
    expect((await keys({ cookie: manager.cookie })).status).toBe(401);
  });

  test('it shows its pages and no other, on no route', async () => {
    const { cookie, csrf } = await enter({ pages: ['endpoints'], manage: true });
    const { body } = await app.call('GET', '/portal/api/session', { cookie });
    expect(body.site.resources.map(({ name }: { name: string }) => name)).toEqual(['endpoints']);
    for (const path of [
      'resources/api-keys',
      'resources/deliveries',
      'lists/api-keys/choices',
      'lists/deliveries/news',
      'lists/api-keys/filters',
    ])
      expect(await status(app.call('GET', `/portal/api/${path}`, { cookie })), `path ${path}`).toEqual([403, 'portal_page_not_shown']);
    expect(await status(newKey({ cookie, csrf }))).toEqual([403, 'portal_page_not_shown']);
    const { parts } = (await app.call('GET', '/portal/api/overview', { cookie })).body;
    expect(parts.map(({ title }: { title: string }) => title)).toEqual(['First steps', 'Endpoints']);
    await expect(link({ pages: ['endpoint'] })).rejects.toThrow(/no page "endpoint"[^]*endpoints/);
  });

  test('a page of another site can neither open a link nor use the session', async () => {
    const { token } = await link();
    const foreign: Record<string, string>[] = [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }, { origin: 'null' }];
    for (const headers of foreign) expect(await status(open(token, headers))).toEqual([403, 'csrf_failed']);
    const victim = await enter({ manage: true });
    for (const headers of foreign) expect(await status(newKey(victim, headers))).toEqual([403, 'csrf_failed']);
    expect(await status(newKey({ ...victim, csrf: '' }))).toEqual([403, 'csrf_failed']);
    const other = await enter({ manage: true });
    expect(await status(newKey({ cookie: victim.cookie, csrf: other.csrf }))).toEqual([403, 'csrf_failed']);
    // What a sibling domain planted beside it makes two: neither counts.
    expect((await keys({ cookie: `${victim.cookie}; ${other.cookie}` })).status).toBe(401);
    // None of the attempts has used the link up.
    expect((await open(token)).status).toBe(200);
  });

  test('a session never goes on in one that it did not start', async () => {
    const planted = await enter();
    const { token } = await link();
    const own = cookieOf(await open(token, { cookie: planted.cookie }));
    expect(own).not.toBe(planted.cookie);
    expect((await keys({ cookie: planted.cookie })).status).toBe(401);
    expect((await keys({ cookie: own })).status).toBe(200);
  });

  test('a session ends by logging out, by revoking its link, and with its user', async () => {
    const [first, second, third] = [await enter(), await enter(), await enter()];
    const bye = await app.call('POST', '/portal/api/logout', { cookie: first.cookie, 'x-csrf-token': first.csrf });
    expect(bye.status).toBe(204);
    expect(String(bye.headers['set-cookie'])).toContain('__Secure-kit_portal=; Max-Age=0;');
    expect((await keys({ cookie: first.cookie })).status).toBe(401);
    await revokePortalLink(app.app.db, second.id);
    expect((await keys({ cookie: second.cookie })).status).toBe(401);
    expect((await keys({ cookie: third.cookie })).status).toBe(200);
    await deactivateUser(app.app.db, userId, accountsOf(app.app.db).management(null));
    expect((await keys({ cookie: third.cookie })).status).toBe(401);
    expect(await list(app.app.db, portalLinks, { where: { user_id: userId } })).toEqual([]);
  });

  test('in a frame the token is in the response and no cookie is set; the header needs no CSRF token', async () => {
    const { token } = await link({ manage: true });
    const opened = await open(token, {}, { framed: true });
    expect(opened.headers['set-cookie']).toBeUndefined();
    const headers = { 'x-portal-session': opened.body.token as string };
    expect((await keys(headers)).status).toBe(200);
    const made = await app.call('POST', '/portal/api/resources/api-keys', headers, { name: 'CI', scopes: ['webhooks:read'] });
    expect(made.status).toBe(201);
    expect((await app.call('POST', '/portal/api/logout', headers)).status).toBe(204);
    expect((await keys(headers)).status).toBe(401);
  });

  test('who has logged in and opens a link sees the user of the link; afterwards the login', async () => {
    const ada = await app.newUser();
    const login = await app.call('POST', '/portal/api/login', {}, { login: ada.username, password: PASSWORD });
    const { cookie } = await enter();
    const both = { cookie: `${cookieOf(login)}; ${cookie}` };
    const seen = await app.call('GET', '/portal/api/session', both);
    expect(seen.body.user.id).toBe(userId);
    // Who logs in can do so again, who came by a link cannot.
    expect([login, seen].map(({ body }) => body.site.login.portal.by_link)).toEqual([false, true]);
    await app.call('POST', '/portal/api/logout', { ...both, 'x-csrf-token': seen.body.csrf_token });
    expect((await app.call('GET', '/portal/api/session', both)).body.user.id).toBe(ada.id);
  });

  test('a link is no way to staff rights', async () => {
    userId = (await app.newUser({ is_staff: true, is_superuser: true })).id;
    const { cookie } = await enter({ manage: true });
    expect((await app.call('GET', '/admin/api/session', { cookie })).status).toBe(401);
    const { site } = (await app.call('GET', '/portal/api/session', { cookie })).body;
    expect(site.resources[0].creation.fields[1].suggestions).toEqual(['webhooks:read']);
  });

  test('what is made, opened and revoked is in the audit log', async () => {
    const { id } = await enter({ by: 'billing' });
    await revokePortalLink(app.app.db, id, { by: 'support' });
    const log = await audited(id);
    for (const change of ['created', 'opened', 'revoked']) expect(log).toContain(`portal_link.${change}`);
  });
});
