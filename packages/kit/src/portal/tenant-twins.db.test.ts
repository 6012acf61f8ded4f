import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, siteFolder } from '../../test/admin/admin-app.ts';
import { ApiKeyController, apiKeys, createApiKey } from '../contrib/apikeys/index.ts';
import { QuotaController, RequestController, requests, UsageController } from '../contrib/requests/index.ts';
import { requestLogs } from '../contrib/requests/log/log.ts';
import { addMember, createTenant, tenants } from '../contrib/tenants/index.ts';
import { publish, WebhookEndpointController, webhooks } from '../contrib/webhooks/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { portal, portalLink } from './index.ts';

class TenantHooks extends WebhookEndpointController {
  static override readonly tenantField = 'tenant_key';
}

type Headers = Record<string, string>;
interface Item {
  readonly id: string;
}

const TENANTS = ['north', 'south'] as const;

describeDatabases('one person in two tenants with the same things', (database) => {
  const clock = fakeClock('2030-01-15T10:00:00.000Z');
  const files = siteFolder();
  const sessions: Record<string, Headers> = {};
  let app: AdminApp;

  beforeAll(async () => {
    app = await new AdminApp(
      database.db,
      [apiKeys(), webhooks(), requests({ quotas: { key: '100/month' } }), tenants(), portal({ site: files.url })],
      {
        clock,
        mount: {
          '/v1': {
            '/api-keys': ApiKeyController,
            '/hooks': TenantHooks,
            '/requests': RequestController,
            '/usage': UsageController,
            '/quotas': QuotaController,
          },
        },
      },
    ).ready();
    const user = await app.newUser();
    for (const slug of TENANTS) {
      const tenant = await createTenant(app.app.db, { name: slug, slug, owner: (await app.newUser()).id });
      await addMember(app.app.db, { tenant: tenant.id, user: user.id, roles: ['owner'] });
      const { raw } = await createApiKey(app.app.db, { user, tenant: slug, name: 'twin', scopes: ['requests:read'] });
      expect((await app.call('GET', '/v1/requests', { 'x-api-key': raw })).status).toBe(200);
      const { token } = await portalLink(app.app.db, { user: user.id, tenant: slug, manage: true });
      const { body } = await app.call('POST', '/portal/link', {}, { token, framed: true });
      const session = (sessions[slug] = { 'x-portal-session': body.token as string });
      const made = await app.call('POST', at('resources/endpoints'), session, { url: 'https://hooks.example.com/', events: ['*'] });
      expect([made.status, made.text]).toEqual([201, expect.any(String)]);
      await app.app.db.transaction((tx) => publish(tx, 'order.paid', { of: slug }, { tenantKey: tenant.id }));
    }
    await requestLogs.of(app.app.db).flush();
  });
  afterAll(async () => {
    await app.close();
    files.remove();
  });

  const at = (path: string) => `/portal/api/${path}`;
  const of = (tenant: string): Headers => sessions[tenant] as Headers;
  const read = (path: string, tenant: string) => app.call('GET', at(path), of(tenant));
  const listed = async (page: string, tenant: string): Promise<readonly Item[]> =>
    (await read(`resources/${page}?limit=100`, tenant)).body.items as Item[];

  test('no page and no path of the portal tells anything of the other tenant, and nothing there can be changed', async () => {
    const { resources } = (await read('session', 'north')).body.site as { resources: { name: string; actions: { name: string }[] }[] };
    // The catalog of the API is the same for everybody.
    const pages = resources.filter(({ name }) => name !== 'event-types');
    expect(pages.map(({ name }) => name).toSorted()).toEqual(
      ['api-keys', 'deliveries', 'endpoints', 'events', 'quotas', 'requests', 'usage'].toSorted(),
    );
    const others: string[] = [];
    for (const { name, actions } of pages) {
      const [north, south] = [await listed(name, 'north'), await listed(name, 'south')];
      expect([north.length, south.length], `page ${name}`).not.toContain(0);
      const mine = new Set(north.map(({ id }) => id));
      expect(
        south.filter(({ id }) => mine.has(id)),
        `page ${name}`,
      ).toEqual([]);
      for (const { id } of south) {
        others.push(id);
        expect((await read(`resources/${name}/${id}`, 'north')).status, `${name}/${id}`).toBe(404);
        expect((await read(`lists/${name}/choices?id=${encodeURIComponent(id)}`, 'north')).body).toEqual({ items: [] });
        for (const [method, path, body] of [
          ['PATCH', `resources/${name}/${id}`, { name: 'taken', description: 'taken' }],
          ['DELETE', `resources/${name}/${id}`, undefined],
          ...actions.map(({ name: action }) => [
            'POST',
            `resources/${name}/actions/${action}`,
            { ids: [id], fields: action === 'recover' ? { since: '2030-01-01T00:00:00Z' } : {} },
          ]),
        ] as ['DELETE' | 'PATCH' | 'POST', string, object | undefined][]) {
          const answer = await app.call(method, at(path), of('north'), body);
          // Of a selection, each record that is not there is told in the response.
          const missed = path.endsWith('/delete-selected') ? answer.body.failures?.length === 1 : answer.status === 404;
          expect(missed, `${method} ${path}: ${answer.status} ${answer.text}`).toBe(true);
        }
      }
    }
    const paths = ['session', 'overview', ...pages.flatMap(({ name }) => [`resources/${name}?limit=100`, `lists/${name}/choices`])];
    const told = (await Promise.all(paths.map((path) => read(path, 'north')))).map(({ text }) => text).join('\n');
    for (const id of others) expect(told).not.toContain(id);
    for (const [page, filter] of [
      ['deliveries', 'endpoint_id'],
      ['requests', 'key_id'],
      ['usage', 'key_id'],
      ['quotas', 'key_id'],
    ] as const) {
      const [other] = await listed(filter === 'key_id' ? 'api-keys' : 'endpoints', 'south');
      const { status, body } = await read(`resources/${page}?filter.${filter}=${other?.id}`, 'north');
      expect(status === 404 || (body.items as Item[]).length === 0, `page ${page} of a ${filter} of the other tenant`).toBe(true);
    }
    // What was tried has changed nothing.
    for (const page of ['api-keys', 'endpoints'])
      for (const { id } of await listed(page, 'south'))
        expect((await read(`resources/${page}/${id}`, 'south')).text, `page ${page}`).not.toContain('taken');
  });

  test.each(['north', 'south'])('a session of %s shows nothing of the other tenant, in whichever way its requests name it', async (own) => {
    const other = own === 'north' ? 'south' : 'north';
    for (const page of ['api-keys', 'endpoints', 'deliveries', 'events', 'requests', 'usage', 'quotas']) {
      const foreign = new Set((await listed(page, other)).map(({ id }) => id));
      for (const headers of [{ 'x-tenant': other }, { 'x-portal-tenant': other }, { host: `${other}.example.com` }] as Headers[]) {
        const { status, body, text } = await app.call('GET', at(`resources/${page}?limit=100`), { ...of(own), ...headers });
        const shown = status === 200 ? (body.items as Item[]).filter(({ id }) => foreign.has(id)) : [];
        expect(shown, `${page} with ${Object.keys(headers)[0]}: ${text}`).toEqual([]);
      }
    }
  });
});
