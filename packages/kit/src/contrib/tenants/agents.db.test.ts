import { expect, test } from 'vitest';
import { createApiKey } from '../apikeys/index.ts';
import { mcp } from '../mcp/index.ts';
import { CrudController, resource } from '../../crud/index.ts';
import { createTable, migration, model, t } from '../../db/index.ts';
import { Controller, jsonSchema, route } from '../../http/index.ts';
import { hasRole, hasScopes } from '../../permissions/index.ts';
import { describeTenantApp } from '../../../test/tenants/tenant-app.ts';

const columns = { id: t.uuidv7().pk(), tenant_id: t.uuid().readOnly(), title: t.text(80) };
const indexes = { indexes: [{ columns: ['tenant_id', '-id'] }] };
const papers = model('papers', columns, indexes);
const tables = {
  name: 'papers',
  models: [papers],
  migrations: [migration('0001_initial', [createTable('papers', columns, indexes)])],
};
class Papers extends CrudController(resource(papers, { tenant: 'tenant_id' }), {
  permission: hasScopes({ allowUnscoped: true }),
  scope: 'papers',
  operations: { list: { tool: true }, create: { tool: true } },
}) {}
class Rooms extends Controller {
  close = route.post('/close', { permission: hasRole('owner'), response: jsonSchema<object>({}), tool: true }, () => ({ closed: true }));
}

describeTenantApp(
  'an agent',
  {},
  (app) => {
    const { person, tenantOf } = app;
    const ask = async (headers: Record<string, string>, method: string, params: object) => {
      const response = await app.kit.inject({
        method: 'POST',
        url: '/mcp',
        headers: { host: 'localhost', accept: 'application/json, text/event-stream', ...headers },
        payload: { jsonrpc: '2.0', id: 1, method, params },
      });
      const data = /^data: (.*)$/m.exec(response.body)?.[1] ?? response.body;
      // oxlint-disable-next-line typescript/no-explicit-any -- what the endpoint answered
      return JSON.parse(data).result;
    };

    test('that names no tenant has the tools of tenants, and names one with each call; or once, in a header', async () => {
      const [ada, eve] = [await person('agent_ada'), await person('agent_eve')];
      const [north, south] = [await tenantOf(ada), await tenantOf(ada)];
      const others = await tenantOf(eve);
      const { raw } = await createApiKey(app.kit.app.db, {
        user: ada,
        name: 'agent',
        tenant: '*',
        scopes: ['papers:read', 'papers:write'],
      });
      const key = { 'x-api-key': raw };
      const { tools } = await ask(key, 'tools/list', {});
      const named = tools.map(({ name, inputSchema }: { name: string; inputSchema: { properties: object } }) => [
        name,
        'tenant' in inputSchema.properties,
      ]);
      expect(named).toEqual([
        ['papers_list', true],
        ['papers_create', true],
        ['rooms_close', true],
      ]);
      const call = (name: string, given: object, headers: Record<string, string> = {}) =>
        ask({ ...key, ...headers }, 'tools/call', { name, arguments: given });
      const made = await call('papers_create', { title: 'Plan', tenant: north.slug });
      expect(made.structuredContent).toMatchObject({ title: 'Plan', tenant_id: north.id });
      const titles = async (given: object, headers = {}) =>
        (await call('papers_list', given, headers)).structuredContent.items.map(({ title }: { title: string }) => title);
      expect(await titles({ tenant: north.id })).toEqual(['Plan']);
      expect(await titles({ tenant: south.slug })).toEqual([]);
      expect(await titles({}, { 'x-tenant': north.slug })).toEqual(['Plan']);
      expect(await titles({ tenant: south.slug }, { 'x-tenant': north.slug })).toEqual([]);
      const codes = [];
      for (const tenant of [undefined, others.slug, 'nobody'])
        codes.push(
          JSON.stringify(await call('papers_list', tenant === undefined ? {} : { tenant })).match(/tenant_required|not_a_member/)?.[0],
        );
      expect(codes).toEqual(['tenant_required', 'not_a_member', 'not_a_member']);
      expect((await call('rooms_close', { tenant: others.slug })).isError).toBe(true);
    });

    test('whose connection names a tenant has only the tools of its role there', async () => {
      const [ada, bob] = [await person('agent_cleo'), await person('agent_bob')];
      const { id, slug } = await tenantOf(ada);
      await app.join(ada, id, bob, ['member']);
      const { raw } = await createApiKey(app.kit.app.db, { user: bob, name: 'agent', scopes: ['papers:read'] });
      const { tools } = await ask({ 'x-api-key': raw, 'x-tenant': slug }, 'tools/list', {});
      expect(tools.map(({ name }: { name: string }) => name)).toEqual(['papers_list']);
    });
  },
  { modules: [tables, mcp()], mount: { '/v1': { '/papers': Papers, '/rooms': Rooms } } },
);
