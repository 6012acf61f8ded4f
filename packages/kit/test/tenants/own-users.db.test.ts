import { afterAll, beforeAll, expect, test } from 'vitest';
import { apiKeys, createApiKey } from '../../src/contrib/apikeys/index.ts';
import { jwtBearer } from '../../src/contrib/jwt/index.ts';
import { suspendTenant, TenantController, tenants } from '../../src/contrib/tenants/index.ts';
import { createTable, insert, migration, model, t } from '../../src/db/index.ts';
import { Controller, jsonSchema, route } from '../../src/http/index.ts';
import { hasRole, isAuthenticated } from '../../src/permissions/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { fakeClock } from '../../src/testing/fake-clock.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';
import { Provider } from '../jwt/provider.ts';

// tenants() without accounts(): people are rows of the app's own table, and log in elsewhere.

const columns = { id: t.int().pk(), login: t.text(80).unique(), mail: t.text(80), active: t.bool(), staff: t.bool() };
const people = model('people', columns);
const own = { name: 'own', models: [people], migrations: [migration('0001_initial', [createTable('people', columns)])] };

class Board extends Controller {
  mine = route.get('/', { permission: hasRole('owner', 'member'), response: jsonSchema<object>({}) }, async ({ user, caller }) => {
    const { tenant, membership } = await caller();
    return { user: user.username, tenant, roles: membership?.roles };
  });
}

const clock = fakeClock();
describeDatabases(
  'tenants over access tokens and users of your own',
  (database) => {
    let kit: TestApp;
    const provider = new Provider();
    beforeAll(async () => {
      await provider.start();
      kit = await testApp({
        database: database.db,
        clock,
        users: {
          table: {
            name: 'people',
            id: 'id',
            username: 'login',
            email: 'mail',
            isActive: 'active',
            isStaff: 'staff',
            isSuperuser: 'staff',
            idType: 'integer',
          },
        },
        authenticators: [
          jwtBearer({
            issuer: provider.url,
            audience: 'board',
            find: ({ sub }, db) => kit.app.users?.findByLogin(db, String(sub)) ?? null,
            tenant: 'org',
          }),
        ],
        modules: [own, apiKeys(), tenants({ create: isAuthenticated })],
        mount: { '/v1': { '/tenants': TenantController, '/board': Board } },
      });
      for (const [id, login] of [
        [1, 'ada'],
        [2, 'bob'],
        [3, 'eve'],
      ] as const)
        await insert(kit.app.db, people, { id, login, mail: `${login}@example.com`, active: true, staff: false });
    });
    afterAll(async () => {
      await kit.close();
      await provider.stop();
    });

    const ask = async (sub: string, method: 'GET' | 'POST' | 'DELETE', url: string, payload?: object, headers = {}, claims = {}) => {
      const token = await provider.token(clock.now(), { sub, aud: 'board', scope: 'tenants:read tenants:write', ...claims });
      const response = await kit.inject({
        method,
        url: `/v1${url}`,
        headers: { authorization: `Bearer ${token}`, ...headers },
        ...(payload === undefined ? {} : { payload }),
      });
      return { status: response.statusCode, body: response.body === '' ? null : response.json<Record<string, unknown>>() };
    };

    test('a person creates one, invites another, who acts in it by header, by the claim of a token and by key until removed', async () => {
      const { status, body: made } = await ask('ada', 'POST', '/tenants', { name: 'North' });
      expect(status).toBe(201);
      const { id, slug } = made as { id: string; slug: string };
      const named = { 'x-tenant': slug };
      expect((await ask('bob', 'GET', '/board', undefined, named)).body).toMatchObject({ code: 'not_a_member' });
      const { body: invited } = await ask('ada', 'POST', `/tenants/${id}/invitations`, { email: 'bob@example.com', roles: ['member'] });
      const accept = (sub: string) => ask(sub, 'POST', '/tenants/invitations/accept', { token: invited?.['token'] });
      expect((await accept('eve')).status).not.toBe(200);
      expect((await accept('bob')).status).toBe(200);
      const seen = { user: 'bob', tenant: id, roles: ['member'] };
      expect((await ask('bob', 'GET', '/board', undefined, named)).body).toEqual(seen);
      expect((await ask('bob', 'GET', '/board', undefined, {}, { org: slug })).body).toEqual(seen);
      // The claim is a wish, and not a proof.
      expect((await ask('eve', 'GET', '/board', undefined, {}, { org: slug })).body).toMatchObject({ code: 'not_a_member' });
      const { body: other } = await ask('bob', 'POST', '/tenants', { name: 'South' });
      const both = await ask('bob', 'GET', '/board', undefined, { 'x-tenant': String(other?.['slug']) }, { org: slug });
      expect([both.status, both.body?.['code']]).toEqual([400, 'tenant_conflict']);

      const { raw } = await createApiKey(kit.app.db, { user: { id: '2' }, name: 'script', scopes: [], tenant: id });
      const byKey = () => kit.inject({ url: '/v1/board', headers: { 'x-api-key': raw } });
      expect((await byKey()).json()).toEqual(seen);
      await suspendTenant(kit.app.db, id);
      expect((await byKey()).json()).toMatchObject({ code: 'tenant_suspended' });
      expect((await ask('bob', 'GET', '/board', undefined, named)).body).toMatchObject({ code: 'tenant_suspended' });
    });

    test('who is deactivated in the own table is out, and does not count as the last owner', async () => {
      const { body } = await ask('eve', 'POST', '/tenants', { name: 'West' });
      const named = { 'x-tenant': String(body?.['slug']) };
      expect((await ask('eve', 'GET', '/board', undefined, named)).status).toBe(200);
      expect((await ask('eve', 'POST', `/tenants/${String(body?.['id'])}/leave`)).body).toMatchObject({ code: 'last_owner' });
      await kit.app.db.query('update people set active = $1 where login = $2', [false, 'eve']);
      expect((await ask('eve', 'GET', '/board', undefined, named)).status).toBe(401);
    });
  },
  { database: { clock } },
);
