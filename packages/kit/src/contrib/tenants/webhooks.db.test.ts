import { expect, test } from 'vitest';
import { createApiKey } from '../apikeys/index.ts';
import { TenantWebhookController, WebhookEndpointController } from '../webhooks/index.ts';
import { openApiDocument } from '../../openapi/index.ts';
import { describeTenantApp } from '../../../test/tenants/tenant-app.ts';
import { purgeTenants } from './manage/purge.ts';

let count = 0;
const fresh = (name: string) => `${name}${(count += 1)}`;
const hook = (path: string) => ({ url: `http://127.0.0.1:9/${path}`, events: ['*'] });

describeTenantApp(
  'webhook endpoints of a tenant',
  {},
  (app) => {
    const { call, person, tenantOf, join } = app;
    const endpoints = async (tenant: string) =>
      app.database.db.query<{ id: string }>('select id from webhook_endpoints where tenant_key = $1 and owner_id = $2', [
        tenant,
        `tenant:${tenant}`,
      ]);

    test('are seen and changed by all who manage the tenant, and by nobody else', async () => {
      const [ada, bob, mia, eve] = [
        await person(fresh('ada')),
        await person(fresh('bob')),
        await person(fresh('mia')),
        await person(fresh('eve')),
      ];
      const { id, slug } = await tenantOf(ada);
      const others = await tenantOf(eve);
      await join(ada, id, bob, ['admin']);
      await join(ada, id, mia, ['member']);
      const named = { 'x-tenant': slug };
      const { status, body: made } = await call(ada, 'POST', '/hooks', hook('a'), named);
      expect([status, made.tenant_key]).toEqual([201, id]);
      expect((await call(bob, 'GET', '/hooks', undefined, named)).body.items.map((each: { id: string }) => each.id)).toEqual([made.id]);
      expect((await call(bob, 'PATCH', `/hooks/${made.id}`, { description: 'Ours' }, named)).body.description).toBe('Ours');
      expect((await call(bob, 'GET', `/hooks/${made.id}/deliveries`, undefined, named)).status).toBe(200);
      expect((await call(mia, 'GET', '/hooks', undefined, named)).body.code).toBe('permission_denied');
      expect((await call(mia, 'GET', `/hooks/${made.id}/deliveries`, undefined, named)).body.code).toBe('permission_denied');
      expect((await call(eve, 'GET', '/hooks', undefined, named)).body.code).toBe('not_a_member');
      const inOthers = { 'x-tenant': others.slug };
      for (const path of [`/hooks/${made.id}`, `/hooks/${made.id}/deliveries`])
        expect((await call(eve, 'GET', path, undefined, inOthers)).body.code).toBe('endpoint_not_found');
      expect((await call(ada, 'GET', '/hooks')).body.code).toBe('tenant_required');
      // They are not among the personal ones of who made them, nor are those of a person in the tenant among these.
      expect((await call(ada, 'GET', '/own-hooks')).body.items).toEqual([]);
      expect((await call(ada, 'GET', `/own-hooks/${made.id}`)).body.code).toBe('endpoint_not_found');
    });

    test('belong to the tenant: they stay when the person leaves who made them, and end with the tenant', async () => {
      const [ada, bob] = [await person(fresh('ada')), await person(fresh('bob'))];
      const { id, slug } = await tenantOf(ada);
      const row = await join(ada, id, bob, ['admin']);
      await call(bob, 'POST', '/hooks', hook('b'), { 'x-tenant': slug });
      await call(ada, 'DELETE', `/tenants/${id}/members/${row}`);
      expect(await endpoints(id)).toHaveLength(1);
      await call(ada, 'DELETE', `/tenants/${id}`);
      app.clock.advance(31 * 24 * 3_600_000);
      await purgeTenants(app.kit.app.db);
      expect(await endpoints(id)).toEqual([]);
    });

    test('a key of the tenant needs the scope, and the document has the header', async () => {
      const ada = await person(fresh('ada'));
      const { id } = await tenantOf(ada);
      const key = async (scopes: string[]) => ({
        'x-api-key': (await createApiKey(app.kit.app.db, { user: ada, name: 'script', scopes, tenant: id })).raw,
      });
      expect((await call(null, 'POST', '/hooks', hook('c'), await key(['webhooks:read']))).body.code).toBe('insufficient_scope');
      expect((await call(null, 'POST', '/hooks', hook('c'), await key(['webhooks:write']))).status).toBe(201);
      const document = openApiDocument(app.kit.app.routes, { title: 'Teams', version: '1' });
      const operation = JSON.stringify(document.paths['/v1/hooks']);
      expect(operation).toContain('XTenant');
      expect(JSON.stringify(document.paths['/v1/own-hooks'])).not.toContain('XTenant');
    });
  },
  { mount: { '/v1': { '/hooks': TenantWebhookController, '/own-hooks': WebhookEndpointController } } },
);
