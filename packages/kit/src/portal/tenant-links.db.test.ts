import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { AdminApp, siteFolder } from '../../test/admin/admin-app.ts';
import { ApiKeyController, apiKeys, createApiKey } from '../contrib/apikeys/index.ts';
import { QuotaController, RequestController, requests, UsageController } from '../contrib/requests/index.ts';
import { requestLogs } from '../contrib/requests/log/log.ts';
import { addMember, createTenant, removeMember, resumeTenant, suspendTenant, TenantController, tenants } from '../contrib/tenants/index.ts';
import { purgeTenants } from '../contrib/tenants/manage/purge.ts';
import { deleteTenant, restoreTenant } from '../contrib/tenants/manage/tenants.ts';
import { TenantWebhookController, webhooks } from '../contrib/webhooks/index.ts';
import { list } from '../db/index.ts';
import { releaseLegalHold, setLegalHold } from '../db/subjects/erasure-state.ts';
import { hasRole } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { portal, portalLink } from './index.ts';
import { portalLinks } from './models.ts';

/** Shorter than a session lasts. */
const GRACE_MS = 3_600_000;

describeDatabases('links in an app with tenants', (database) => {
  const clock = fakeClock('2030-01-15T10:00:00.000Z');
  const files = siteFolder();
  let app: AdminApp;
  const ids: Record<string, string> = {};
  let ownerId: string;
  let userId: string;

  beforeAll(async () => {
    app = await new AdminApp(
      database.db,
      [
        apiKeys(),
        requests(),
        webhooks(),
        tenants({ roles: ['owner', 'developer', 'reader'], graceMs: GRACE_MS }),
        portal({ site: files.url, canManage: hasRole('developer') }),
      ],
      {
        clock,
        mount: {
          '/v1': {
            '/api-keys': ApiKeyController,
            '/requests': RequestController,
            '/usage': UsageController,
            '/quotas': QuotaController,
            '/tenants': TenantController,
            '/hooks': TenantWebhookController,
          },
        },
      },
    ).ready();
    const [owner, user] = [await app.newUser(), await app.newUser()];
    [ownerId, userId] = [owner.id, user.id];
    for (const slug of ['north', 'south']) {
      const tenant = await createTenant(app.app.db, { name: slug, slug, owner: owner.id });
      ids[slug] = tenant.id;
      await addMember(app.app.db, { tenant: tenant.id, user: userId, roles: [slug === 'north' ? 'developer' : 'reader'] });
      const { raw } = await createApiKey(app.app.db, { user, tenant: slug, name: slug, scopes: ['requests:read'] });
      expect((await app.call('GET', '/v1/requests', { 'x-api-key': raw })).status).toBe(200);
    }
    await requestLogs.of(app.app.db).flush();
  });
  afterAll(async () => {
    await app.close();
    files.remove();
  });

  async function enter(tenant: string | null, manage = true): Promise<Record<string, string>> {
    const { token } = await portalLink(app.app.db, { user: userId, tenant, manage });
    const { body } = await app.call('POST', '/portal/link', {}, { token, framed: true });
    return { 'x-portal-session': body.token as string };
  }
  const seen = (headers: Record<string, string>) => app.call('GET', '/portal/api/resources/requests', headers);

  test('a session is in the tenant of its link, and in no other, whatever its requests name', async () => {
    const [north, south, none] = [await enter('north'), await enter('south'), await enter(null)];
    const [inNorth, inSouth] = [(await seen(north)).body.items, (await seen(south)).body.items];
    expect([inNorth.length, inSouth.length]).toEqual([1, 1]);
    expect(inNorth[0].id).not.toBe(inSouth[0].id);
    for (const name of ['south', ids['south'] as string]) {
      const { status, body } = await seen({ ...north, 'x-tenant': name });
      expect([status, body.code]).toEqual([400, 'tenant_conflict']);
    }
    expect((await app.call('GET', `/portal/api/resources/requests/${inSouth[0].id}`, north)).status).toBe(404);
    expect((await seen({ ...none, 'x-tenant': 'north' })).body.code).toBe('not_a_member');
    expect((await seen(none)).body.items).toEqual([]);
  });

  test('it reaches the keys of its tenant alone, and none that works elsewhere: their secrets would lead out of it', async () => {
    const { apiKey: everywhere } = await createApiKey(app.app.db, {
      user: userId,
      tenant: '*',
      name: 'everywhere',
      scopes: ['requests:read'],
    });
    const north = await enter('north');
    const keys = async (headers: Record<string, string>) =>
      (await app.call('GET', '/portal/api/resources/api-keys', headers)).body.items as { id: string; title: string }[];
    expect((await keys(north)).map(({ title }) => title)).toEqual(['north']);
    expect(await keys(await enter(null))).toEqual([]);
    const others = [...(await keys(await enter('south'))).map(({ id }) => id), everywhere.id];
    expect(others).toHaveLength(2);
    const at = (path: string) => `/portal/api/resources/api-keys/${path}`;
    for (const id of others) {
      expect((await app.call('GET', at(id), north)).status).toBe(404);
      expect((await app.call('PATCH', at(id), north, { name: 'taken' })).status).toBe(404);
      expect((await app.call('DELETE', at(id), north)).status).toBe(404);
      const rotated = await app.call('POST', at('actions/rotate'), north, { ids: [id], fields: {} });
      expect([rotated.status, rotated.text]).toEqual([404, expect.not.stringContaining('"secret"')]);
    }
    const made = await app.call('POST', '/portal/api/resources/api-keys', north, { name: 'made', scopes: ['requests:read'] });
    expect(made.status).toBe(201);
    const seenBy = { 'x-api-key': made.body.secret.value as string };
    expect((await app.call('GET', '/v1/requests', { ...seenBy, 'x-tenant': 'south' })).body.code).toBe('tenant_conflict');
    expect((await app.call('GET', '/v1/requests', seenBy)).status).toBe(200);
  });

  test('a link is made for members only', async () => {
    const { id } = await app.newUser();
    for (const tenant of ['north', ids['north'] as string, 'nowhere'])
      await expect(portalLink(app.app.db, { user: id, tenant })).rejects.toMatchObject({ code: 'not_a_member' });
  });

  test('canManage: a link changes no more than its user may', async () => {
    const headers = { ...(await enter('south')) };
    const { body } = await app.call('POST', '/portal/api/resources/requests', headers, {});
    expect(body.code).toBe('portal_read_only');
    expect((await app.call('POST', '/portal/api/resources/requests', await enter('north'), {})).body.code).toBe('not_creatable');
    expect((await app.call('POST', '/portal/api/resources/requests', await enter('north', false), {})).body.code).toBe('portal_read_only');
  });

  test('pages that the role in the tenant does not open are not offered; the owner has them', async () => {
    const offered = async (headers: Record<string, string>) => {
      const { body } = await app.call('GET', '/portal/api/session', headers);
      return body.site.resources.map(({ name }: { name: string }) => name) as string[];
    };
    const { token } = await portalLink(app.app.db, { user: ownerId, tenant: 'north' });
    const { body } = await app.call('POST', '/portal/link', {}, { token, framed: true });
    const owner = { 'x-portal-session': body.token as string };
    const ofManagers = ['endpoints', 'deliveries', 'events', 'event-types'];
    expect(await offered(owner)).toEqual(expect.arrayContaining(['requests', ...ofManagers]));
    const north = await enter('north');
    expect(await offered(north)).toContain('requests');
    for (const page of ofManagers) {
      expect(await offered(north)).not.toContain(page);
      expect((await app.call('GET', `/portal/api/resources/${page}`, north)).status).toBe(403);
      expect((await app.call('GET', `/portal/api/resources/${page}`, owner)).status).toBe(200);
    }
    const { text } = await app.call('GET', '/portal/api/overview', north);
    expect(text).not.toContain('Endpoints');
  });

  test('while its tenant is suspended a session sees and changes nothing, on no route; that of another tenant goes on', async () => {
    const [north, south] = [await enter('north'), await enter('south')];
    const { token } = await portalLink(app.app.db, { user: userId, tenant: 'north' });
    const [{ id }] = (await seen(north)).body.items;
    const paths = ['session', 'overview', 'resources/requests', `resources/requests/${id}`, 'resources/usage', 'lists/requests/news'];
    await suspendTenant(app.app.db, ids['north'] as string);
    await vi.waitUntil(async () => (await seen(north)).status === 403, { timeout: 20_000 });
    for (const path of paths) {
      const { status, body, text } = await app.call('GET', `/portal/api/${path}`, north);
      expect([status, body?.code], `path ${path}`).toEqual([403, 'tenant_suspended']);
      expect(text, `path ${path}`).not.toContain(id);
    }
    expect((await app.call('POST', '/portal/api/resources/requests', north, {})).body.code).toBe('tenant_suspended');
    expect((await app.call('POST', '/portal/link', {}, { token })).status).toBe(410);
    expect((await seen(south)).status).toBe(200);
    await resumeTenant(app.app.db, ids['north'] as string);
    await vi.waitUntil(async () => (await seen(north)).status === 200, { timeout: 20_000 });
  });

  test('while its tenant is being deleted, and held after that, a session sees nothing; restored it goes on, and it ends with the tenant', async () => {
    const { db } = app.app;
    const { id: tenant } = await createTenant(db, { name: 'Passing', slug: 'passing', owner: userId });
    const subject = { kind: 'tenant', id: tenant } as const;
    const session = await enter('passing');
    const { token } = await portalLink(db, { user: userId, tenant, expiresIn: 86_400 });
    const told = async () => {
      const { status, body } = await seen(session);
      return [status, body.code ?? 'shown', (await app.call('POST', '/portal/link', {}, { token })).status];
    };
    await deleteTenant(db, tenant);
    expect(await told()).toEqual([403, 'not_a_member', 410]);
    await db.transaction((tx) => setLegalHold(tx, subject, { reason: 'a lawsuit', by: 'a test' }));
    clock.advance(2 * GRACE_MS);
    expect(await purgeTenants(db)).toBe(0);
    expect(await told()).toEqual([403, 'not_a_member', 410]);
    await expect(portalLink(db, { user: userId, tenant })).rejects.toMatchObject({ code: 'not_a_member' });
    await restoreTenant(db, tenant);
    expect(await told()).toEqual([200, 'shown', 200]);
    await deleteTenant(db, tenant);
    clock.advance(2 * GRACE_MS);
    expect(await list(db, portalLinks, { where: { tenant_id: tenant } })).toHaveLength(2);
    await db.transaction((tx) => releaseLegalHold(tx, subject));
    expect(await purgeTenants(db)).toBe(1);
    expect(await list(db, portalLinks, { where: { tenant_id: tenant } })).toEqual([]);
    expect(await told()).toEqual([401, 'not_authenticated', 410]);
  });

  test('a member who is removed has no session and no link any more, at once', async () => {
    const [north, south] = [await enter('north'), await enter('south')];
    const { token } = await portalLink(app.app.db, { user: userId, tenant: 'north' });
    await removeMember(app.app.db, { tenant: ids['north'] as string, user: userId });
    await vi.waitUntil(async () => (await seen(north)).status === 401, { timeout: 1000 });
    expect((await app.call('POST', '/portal/link', {}, { token })).body.code).toBe('invalid_portal_link');
    expect(await list(app.app.db, portalLinks, { where: { tenant_id: ids['north'] as string, user_id: userId } })).toEqual([]);
    expect((await seen(south)).status).toBe(200);
  });
});
