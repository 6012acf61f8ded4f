import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, type Browser, siteFolder } from '../../test/admin/admin-app.ts';
import { ApiKeyController, apiKeys, createApiKey } from '../contrib/apikeys/index.ts';
import { addMember, createTenant, TenantController, tenants } from '../contrib/tenants/index.ts';
import { createEndpoint, WebhookEndpointController, webhooks } from '../contrib/webhooks/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { portal } from './index.ts';

class TenantHooks extends WebhookEndpointController {
  static override readonly tenantField = 'tenant_key';
}

describeDatabases('a member of staff who looks at the portal as a customer', (database) => {
  const clock = fakeClock('2030-01-15T10:00:00.000Z');
  const files = siteFolder();
  const ids: Record<string, string> = {};
  let app: AdminApp;
  let staff: Browser;
  let viewing: Browser;

  beforeAll(async () => {
    app = await new AdminApp(
      database.db,
      [apiKeys(), webhooks(), tenants(), portal({ site: files.url })],
      { clock, mount: { '/v1': { '/api-keys': ApiKeyController, '/hooks': TenantHooks, '/tenants': TenantController } } },
      { viewAs: true, roles: { of: () => 'administrator' } },
    ).ready();
    const [customer, owner] = [await app.newUser(), await app.newUser()];
    for (const slug of ['north', 'south']) {
      ids[slug] = (await createTenant(app.app.db, { name: slug, slug, owner: owner.id })).id;
      await addMember(app.app.db, { tenant: ids[slug], user: customer.id, roles: ['member'] });
      await app.app.db.transaction((tx) =>
        createEndpoint(tx, { owner: customer.id, tenantKey: ids[slug] as string, url: `https://hooks.example.com/${slug}`, events: ['*'] }),
      );
    }
    await createApiKey(app.app.db, { user: customer, tenant: 'north', name: 'of the customer', scopes: ['webhooks:read'] });
    staff = await app.browser({ is_staff: true, username: 'staff' });
    await app.app.db.query('update sessions set second_factor = true where user_id = $1', [staff.userId]);
    const begun = await app.send(staff, 'POST', 'view', { user: customer.id, tenant: 'north', reason: 'Ticket 7' });
    expect(begun.status).toBe(201);
    const cookie = /^kit_view_as=[^;]+/.exec(String(begun.headers['set-cookie']))?.[0] ?? '';
    viewing = { ...staff, cookie: `${staff.cookie}; ${cookie}` };
  });
  afterAll(async () => {
    await app.close();
    files.remove();
  });

  const get = (who: Browser, path: string) => app.call('GET', `/portal/api/${path}`, { cookie: who.cookie });
  const send = (method: 'POST' | 'PATCH' | 'DELETE', path: string, body: object = {}) =>
    app.call(method, `/portal/api/${path}`, { cookie: viewing.cookie, 'x-csrf-token': viewing.csrf }, body);
  const titles = async (who: Browser, name: string) =>
    (await get(who, `resources/${name}`)).body.items.map(({ title }: { title: string }) => title);

  test('sees what the customer sees in the tenant of the view, and no more', async () => {
    expect(await titles(viewing, 'endpoints')).toEqual(['https://hooks.example.com/north']);
    expect(await titles(viewing, 'api-keys')).toEqual(['of the customer']);
    // Without the view it is the portal of the member of staff.
    expect(await titles(staff, 'api-keys')).toEqual([]);
  });

  test('changes nothing: no key, no endpoint, no other tenant', async () => {
    const { body } = await get(viewing, 'resources/endpoints');
    const [{ id }] = body.items;
    const attempts = [
      await send('POST', 'resources/api-keys', { name: 'mine', scopes: ['webhooks:read'] }),
      await send('POST', 'resources/endpoints', { url: 'https://hooks.example.com/mine', events: ['*'] }),
      await send('PATCH', `resources/endpoints/${id}`, { description: 'changed' }),
      await send('DELETE', `resources/endpoints/${id}`),
      await send('POST', 'resources/endpoints/actions/rotate-secret', { ids: [id], fields: {} }),
      await send('POST', 'resources/endpoints/actions/ping', { ids: [id], fields: {} }),
      await send('POST', `tenants/${ids['south']}/choose`),
    ];
    for (const [index, answer] of attempts.entries()) expect(answer.status, `attempt ${index}: ${answer.text}`).toBe(403);
    expect(app.answers.join()).not.toContain('whsec_');
    expect(await titles(viewing, 'endpoints')).toEqual(['https://hooks.example.com/north']);
    const [stored] = await app.app.db.query<{ description: string }>('select description from webhook_endpoints where id = $1', [id]);
    expect(stored?.description).toBe('');
  });

  test('the pages offer no changes', async () => {
    const { body } = await get(viewing, 'session');
    const pages = body.site.resources as { name: string; creation: object; editable: boolean; removable: boolean }[];
    expect(pages.map(({ name }) => name)).toEqual(expect.arrayContaining(['api-keys', 'endpoints']));
    for (const { name, creation, editable, removable } of pages)
      expect({ name, creation, editable, removable }).toEqual({
        name,
        creation: expect.objectContaining({ refused: expect.any(String) }),
        editable: false,
        removable: false,
      });
  });

  test('sees nothing of the customer any more when the view has ended', async () => {
    expect((await app.send(viewing, 'DELETE', 'view')).status).toBe(204);
    const after = await get(viewing, 'resources/endpoints');
    expect(after.status, `answer ${after.text}`).toBeGreaterThanOrEqual(400);
    expect(after.text).not.toContain('hooks.example.com');
  });
});
