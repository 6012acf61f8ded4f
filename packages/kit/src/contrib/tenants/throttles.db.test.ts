import { expect, test } from 'vitest';
import { createApiKey } from '../apikeys/index.ts';
import { mcp } from '../mcp/index.ts';
import { Controller, jsonSchema, route } from '../../http/index.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { tenantThrottle } from '../../throttle/index.ts';
import { describeTenantApp } from '../../../test/tenants/tenant-app.ts';

const LIMIT = 6;

class Desk extends Controller {
  look = route.get(
    '/',
    { permission: isAuthenticated, response: jsonSchema<object>({}), throttles: [tenantThrottle(`${LIMIT}/h`)], tool: true },
    () => ({ seen: true }),
  );
}

describeTenantApp(
  'the budget of a tenant',
  {},
  (app) => {
    const { call, person, tenantOf, join } = app;
    const key = async (user: Awaited<ReturnType<typeof person>>, tenant: string) => {
      const { raw } = await createApiKey(app.kit.app.db, { user, name: 'k', scopes: [], tenant });
      return { 'x-api-key': raw };
    };
    const callTool = async (headers: Record<string, string>): Promise<string> => {
      const payload = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'desk_look', arguments: {} } };
      const accept = 'application/json, text/event-stream';
      return (await app.kit.inject({ method: 'POST', url: '/mcp', headers: { host: 'localhost', accept, ...headers }, payload })).body;
    };

    test('is one for its members, their keys and their agents, and another one for each tenant', async () => {
      const [ada, bob] = [await person('budget_ada'), await person('budget_bob')];
      const [north, south] = [await tenantOf(ada), await tenantOf(ada)];
      await join(ada, north.id, bob, ['member']);
      const [ofAda, ofBob, ofSouth] = [await key(ada, north.id), await key(bob, north.id), await key(ada, south.id)];
      const named = { 'x-tenant': north.slug };
      // By session, by the key of one member, by the key of another, by an agent: each spends of the same.
      const spend = [
        () => call(ada, 'GET', '/desk', undefined, named),
        () => call(bob, 'GET', '/desk', undefined, { 'x-tenant': north.id }),
        () => call(null, 'GET', '/desk', undefined, ofAda),
        () => call(null, 'GET', '/desk', undefined, ofBob),
      ];
      for (const each of spend) expect((await each()).status).toBe(200);
      for (const headers of [ofAda, ofBob]) expect(await callTool(headers)).toContain('seen');
      for (const each of spend) expect((await each()).status).toBe(429);
      expect(await callTool(ofAda)).not.toContain('seen');
      expect((await call(null, 'GET', '/desk', undefined, ofSouth)).status).toBe(200);
      expect(await callTool(ofSouth)).toContain('seen');
      // No tenant, no budget of one; and a stranger spends nothing of it.
      for (let index = 0; index <= LIMIT; index += 1) expect((await call(ada, 'GET', '/desk')).status).toBe(200);
      const eve = await person('budget_eve');
      const west = await tenantOf(ada);
      for (let index = 0; index <= LIMIT; index += 1)
        expect((await call(eve, 'GET', '/desk', undefined, { 'x-tenant': west.slug })).body.code).toBe('not_a_member');
      expect((await call(ada, 'GET', '/desk', undefined, { 'x-tenant': west.slug })).status).toBe(200);
    });
  },
  {
    modules: [mcp()],
    mount: { '/v1': { '/desk': Desk } },
  },
);
