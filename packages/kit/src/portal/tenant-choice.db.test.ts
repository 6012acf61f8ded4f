import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, cookieOf, PASSWORD, siteFolder } from '../../test/admin/admin-app.ts';
import { apiKeys, createApiKey } from '../contrib/apikeys/index.ts';
import { RequestController, requests } from '../contrib/requests/index.ts';
import { requestLogs } from '../contrib/requests/log/log.ts';
import { addMember, createTenant, suspendTenant, TenantController, tenants } from '../contrib/tenants/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { portal, portalLink } from './index.ts';

describeDatabases('the choice of a tenant in the portal', (database) => {
  const files = siteFolder();
  let app: AdminApp;
  const ids: Record<string, string> = {};
  let user: { readonly id: string; readonly username: string };

  beforeAll(async () => {
    app = await new AdminApp(database.db, [apiKeys(), requests(), tenants(), portal({ site: files.url })], {
      mount: { '/v1': { '/requests': RequestController, '/tenants': TenantController } },
    }).ready();
    const owner = await app.newUser();
    user = await app.newUser();
    for (const slug of ['north', 'south', 'elsewhere']) {
      const { id } = await createTenant(app.app.db, { name: slug.toUpperCase(), slug, owner: owner.id });
      ids[slug] = id;
      if (slug === 'elsewhere') continue;
      await addMember(app.app.db, { tenant: id, user: user.id, roles: ['member'] });
      const { raw } = await createApiKey(app.app.db, { user, tenant: slug, name: slug, scopes: ['requests:read'] });
      expect((await app.call('GET', '/v1/requests', { 'x-api-key': raw })).status).toBe(200);
    }
    await requestLogs.of(app.app.db).flush();
  });
  afterAll(async () => {
    await app.close();
    files.remove();
  });

  async function logIn() {
    const answer = await app.call('POST', '/portal/api/login', {}, { login: user.username, password: PASSWORD });
    return { cookie: cookieOf(answer), 'x-csrf-token': answer.body.csrf_token as string };
  }
  const choice = (headers: Record<string, string>) => app.call('GET', '/portal/api/tenants', headers);
  const choose = (headers: Record<string, string>, id = '') => app.call('POST', `/portal/api/tenants/${id}/choose`, headers);
  const seen = async (headers: Record<string, string>) =>
    (await app.call('GET', '/portal/api/resources/requests', headers)).body.items.map(({ id }: { id: string }) => id) as string[];

  test('a person is offered the tenants of theirs, and the pages are about the one that they choose', async () => {
    const session = await logIn();
    const offered = await choice(session);
    expect(offered.body.current).toBeNull();
    expect(offered.body.items).toHaveLength(2);
    expect(offered.body.items).toEqual(
      expect.arrayContaining(['north', 'south'].map((slug) => ({ id: ids[slug], title: slug.toUpperCase() }))),
    );
    expect(await seen(session)).toEqual([]);
    expect((await choose(session, ids['north'])).status).toBe(204);
    expect((await choice(session)).body.current).toBe(ids['north']);
    const inNorth = await seen(session);
    expect(inNorth).toHaveLength(1);
    expect((await choose(session, ids['south'])).status).toBe(204);
    const inSouth = await seen(session);
    expect(inSouth).toHaveLength(1);
    expect(inSouth).not.toEqual(inNorth);
    expect((await app.call('GET', `/portal/api/resources/requests/${inNorth[0]}`, session)).status).toBe(404);
    // Another session of the same person stays where it is.
    expect((await choice(await logIn())).body.current).toBeNull();
  });

  test('a page that is still about another tenant shows and changes nothing: the person chose another one in another tab', async () => {
    const session = await logIn();
    await choose(session, ids['north']);
    const tab = { ...session, 'x-portal-tenant': ids['north'] as string };
    const asked = async (headers: Record<string, string>) => {
      const paths = ['resources/requests', 'lists/requests/choices', 'overview'];
      const read = await Promise.all(paths.map((path) => app.call('GET', `/portal/api/${path}`, headers)));
      const written = await app.call('POST', '/portal/api/resources/requests', headers, {});
      return [...read, written].map(({ status, body }) => (body.code === 'portal_tenant_changed' ? `${status} ${body.code}` : 'asked'));
    };
    expect(await asked(tab)).toEqual(['asked', 'asked', 'asked', 'asked']);
    await choose(session, ids['south']);
    expect(await asked(tab)).toEqual(Array.from({ length: 4 }, () => '409 portal_tenant_changed'));
    expect(await asked({ ...session, 'x-portal-tenant': ids['south'] as string })).not.toContain('409 portal_tenant_changed');
    // Before one was chosen, the page is about none.
    expect(await asked({ ...(await logIn()), 'x-portal-tenant': '' })).not.toContain('409 portal_tenant_changed');
    // The choice itself and the state of the session are for every page.
    expect((await choice(tab)).status).toBe(200);
    expect((await app.call('GET', '/portal/api/state', tab)).status).toBe(200);
  });

  test('a tenant of others, and one that nobody has, cannot be chosen; nor can one for somebody else', async () => {
    const session = await logIn();
    for (const id of [ids['elsewhere'], '01890000-0000-7000-8000-00000000dead', 'x']) expect((await choose(session, id)).status).toBe(404);
    const { 'x-csrf-token': _, ...forged } = session;
    expect((await choose(forged, ids['north'])).body.code).toBe('csrf_failed');
    expect((await choose({}, ids['north'])).status).toBe(401);
    expect((await choice({})).status).toBe(401);
    expect((await choice(session)).body.current).toBeNull();
  });

  test('a session of a link is offered none and chooses none: it stays in the tenant of the link', async () => {
    const { token } = await portalLink(app.app.db, { user: user.id, tenant: 'north', manage: true });
    const { body } = await app.call('POST', '/portal/link', {}, { token, framed: true });
    const headers = { 'x-portal-session': body.token as string };
    expect((await choice(headers)).body).toEqual({ current: null, items: [] });
    const before = await seen(headers);
    expect([401, 403]).toContain((await choose(headers, ids['south'])).status);
    expect(await seen(headers)).toEqual(before);
  });

  test('while the chosen tenant is suspended its pages are refused, and another one can be chosen', async () => {
    const session = await logIn();
    expect((await choose(session, ids['south'])).status).toBe(204);
    const offered = async () => (await app.call('GET', '/portal/api/session', session)).body.site.resources.length as number;
    const before = await offered();
    await suspendTenant(app.app.db, ids['south'] as string);
    await expect.poll(async () => (await app.call('GET', '/portal/api/resources/requests', session)).status, { timeout: 20_000 }).toBe(403);
    // They are still there, and say why.
    expect(await offered()).toBe(before);
    const { current, items } = (await choice(session)).body;
    expect([current, items.length]).toEqual([null, 2]);
    expect((await choose(session, ids['north'])).status).toBe(204);
    expect(await seen(session)).toHaveLength(1);
  });
});

describeDatabases('an app without tenants', (database) => {
  const files = siteFolder();

  test('has nothing to choose', async () => {
    const app = await new AdminApp(database.db, [apiKeys(), requests(), portal({ site: files.url })], {
      mount: { '/v1': { '/requests': RequestController } },
    }).ready();
    try {
      const { username } = await app.newUser();
      const answer = await app.call('POST', '/portal/api/login', {}, { login: username, password: PASSWORD });
      const headers = { cookie: cookieOf(answer), 'x-csrf-token': answer.body.csrf_token as string };
      expect((await app.call('GET', '/portal/api/tenants', headers)).body).toEqual({ current: null, items: [] });
      expect((await app.call('POST', '/portal/api/tenants/x/choose', headers)).status).toBe(404);
    } finally {
      await app.close();
      files.remove();
    }
  });
});
