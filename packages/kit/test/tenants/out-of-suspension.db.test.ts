import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { admin } from '../../src/admin/index.ts';
import { AccountController } from '../../src/contrib/accounts/index.ts';
import { ApiKeyController, apiKeys, createApiKey } from '../../src/contrib/apikeys/index.ts';
import { addMember, TenantController } from '../../src/contrib/tenants/index.ts';
import { inviteMember } from '../../src/contrib/tenants/manage/invitations.ts';
import { createTenant } from '../../src/contrib/tenants/manage/tenants.ts';
import { mcp } from '../../src/contrib/mcp/index.ts';
import { webhooks } from '../../src/contrib/webhooks/index.ts';
import { Controller, jsonSchema, route } from '../../src/http/index.ts';
import { hasRole, isAuthenticated } from '../../src/permissions/index.ts';
import { portal } from '../../src/portal/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';
import { tenantThrottle, userThrottle } from '../../src/throttle/index.ts';
import { siteFolder } from '../admin/admin-app.ts';
import { LOOPBACK } from '../webhooks/outbox.ts';
import { type SessionHeaders, TENANT, type Way, WAYS } from './leaver-ways.ts';

const Json = jsonSchema<object>({});
class Here extends Controller {
  tenant = route.get('/', { permission: isAuthenticated, response: Json }, async ({ caller }) => ({ tenant: (await caller()).tenant }));
  me = route.get('/me', { permission: isAuthenticated, response: Json }, ({ user }) => ({ user: user.id }));
}

// Every request has budgets of the user and of the tenant, as an application gives them to all of its routes.
const throttles = [userThrottle('100000/min'), tenantThrottle('100000/min')];

async function started(database: Parameters<Way['add']>[0], way: Way, site: URL, mount: object): Promise<TestApp> {
  return testApp({
    database,
    modules: [
      ...way.modules(database),
      apiKeys(),
      webhooks({ urlPolicy: LOOPBACK }),
      mcp({ include: [TenantController].filter((each) => Object.values(mount).includes(each)) }),
      portal({ site, canManage: hasRole('owner', 'lead', 'admin') }),
      admin({ site }),
    ],
    throttles,
    mount: { ...way.mount, '/v1': { ...(way.mount['/v1'] as object), '/here': Here, '/api-keys': ApiKeyController, ...mount } },
  });
}

type Sent = Readonly<{ status: number; code: unknown; body: Readonly<Record<string, unknown>> }>;
const sender =
  (kit: TestApp, session: Readonly<Record<string, string>>) =>
  async (method: 'GET' | 'POST' | 'DELETE', url: string, payload?: object, headers: object = {}): Promise<Sent> => {
    const given = { method, url, headers: { ...session, ...headers }, ...(payload === undefined ? {} : { payload }) };
    const { statusCode: status, body } = await kit.inject(given);
    const read = body.startsWith('{') ? (JSON.parse(body) as Record<string, unknown>) : {};
    return { status, code: read['code'], body: read };
  };

const idsOf = ({ body }: Sent) => (body['items'] as readonly { readonly id: string }[]).map(({ id }) => id).toSorted();

describe('with tenants()', () => {
  const way = WAYS['tenants()'] as Way;
  describeDatabases('a person whose chosen tenant is suspended', (database) => {
    const files = siteFolder();
    let kit: TestApp;
    let people = 0;
    beforeAll(async () => {
      kit = await started(database.db, way, files.url, { '/tenants': TenantController, '/account': AccountController });
    });
    afterAll(async () => {
      await kit.close();
      files.remove();
    });

    /** A member of the suspended tenant, who has chosen it, and of another one. */
    const inSuspended = async (open: (name: string) => Promise<{ user: { id: string }; session: SessionHeaders }>) => {
      const { user, session } = await open(`person${(people += 1)}`);
      await way.add(kit.app.db, user.id);
      const { id: other } = await createTenant(kit.app.db, { name: 'Other', owner: user.id });
      const send = sender(kit, session);
      expect((await send('POST', `/v1/tenants/${TENANT}/choose`)).status).toBe(204);
      await way.suspend(kit.app.db);
      expect(await send('GET', '/v1/here')).toMatchObject({ status: 403, code: 'tenant_suspended' });
      return { user, session, other, send };
    };
    const inSuspendedAsPerson = () => inSuspended((name) => way.person(kit, name));
    const resumed = async (work: () => Promise<void>) => {
      try {
        await work();
      } finally {
        await way.resume(kit.app.db);
      }
    };

    test('sees who they are, lists and reads their tenants, and chooses another one', () =>
      resumed(async () => {
        const { send, other, user } = await inSuspendedAsPerson();
        expect((await send('GET', '/v1/here/me')).body).toEqual({ user: user.id });
        expect((await send('GET', '/v1/account/me')).status).toBe(200);
        expect(idsOf(await send('GET', '/v1/tenants'))).toEqual([TENANT, other].toSorted());
        for (const path of ['', '/members', '/invitations']) expect((await send('GET', `/v1/tenants/${TENANT}${path}`)).status).toBe(200);
        // What is not about tenants is still refused, and so is work in the suspended one.
        expect((await send('GET', '/v1/api-keys')).code).toBe('tenant_suspended');
        expect((await send('POST', `/v1/tenants/${TENANT}/invitations`, { email: 'a@example.com', roles: ['member'] })).status).toBe(403);
        expect((await send('POST', `/v1/tenants/${other}/choose`, undefined, {})).status).toBe(204);
        expect((await send('GET', '/v1/here')).body).toEqual({ tenant: other });
        // Named, it is refused all the same; its own page is not.
        expect((await send('GET', '/v1/here', undefined, { 'x-tenant': TENANT })).code).toBe('tenant_suspended');
        expect((await send('GET', `/v1/tenants/${TENANT}`, undefined, { 'x-tenant': TENANT })).status).toBe(200);
      }));

    test('deletes another one, leaves, accepts an invitation, and logs out', () =>
      resumed(async () => {
        const { send, user, other } = await inSuspendedAsPerson();
        const { id: given } = await createTenant(kit.app.db, { name: 'Given up', owner: user.id });
        const key = { 'idempotency-key': `gone-${user.id}` };
        for (let times = 0; times < 2; times += 1) expect((await send('DELETE', `/v1/tenants/${given}`, undefined, key)).status).toBe(204);
        const host = await way.person(kit, `host${people}`);
        const { id: inviting } = await createTenant(kit.app.db, { name: 'Inviting', owner: host.user.id });
        await kit.app.db.query('update users set email = $2 where id = $1', [user.id, `${user.id}@example.com`]);
        const { token } = await inviteMember(kit.app.db, { tenant: inviting, email: `${user.id}@example.com`, roles: ['member'] });
        expect((await send('POST', '/v1/tenants/invitations/accept', { token })).status).toBe(200);
        expect((await send('POST', `/v1/tenants/${TENANT}/leave`)).status).toBe(204);
        expect(idsOf(await send('GET', '/v1/tenants'))).toEqual([other, inviting, given].toSorted());
        expect((await send('POST', '/v1/account/logout')).status).toBe(204);
        expect((await send('GET', '/v1/here/me')).status).toBe(401);
      }));

    test('chooses another one in the portal', () =>
      resumed(async () => {
        const { send, other } = await inSuspendedAsPerson();
        expect((await send('GET', '/portal/api/session')).status).toBe(200);
        const choice = await send('GET', '/portal/api/tenants');
        expect([choice.status, choice.body['current'], idsOf(choice)]).toEqual([200, null, [TENANT, other].toSorted()]);
        expect((await send('GET', '/portal/api/resources/api-keys')).code).toBe('tenant_suspended');
        expect((await send('POST', `/portal/api/tenants/${other}/choose`)).status).toBe(204);
        expect((await send('GET', '/portal/api/resources/api-keys')).status).toBe(200);
      }));

    test('resumes it in the administration, as a member of staff', () =>
      resumed(async () => {
        const opened = await inSuspended(async (name) => {
          const session = await way.staff(kit, name);
          const [user] = await kit.app.db.query<{ id: string }>('select id from users where username = $1', [name]);
          await kit.app.db.query('update users set is_superuser = true where username = $1', [name]);
          return { user: user as { id: string }, session };
        });
        const { send } = opened;
        for (const list of ['tenants', 'users', 'tenant-members'])
          expect([list, (await send('GET', `/admin/api/resources/${list}`)).status]).toEqual([list, 200]);
        expect((await send('POST', '/admin/api/resources/tenants/actions/resume', { ids: [TENANT], fields: {} })).status).toBe(200);
        expect((await send('GET', '/v1/here')).body).toEqual({ tenant: TENANT });
      }));

    test('is offered the tools of their tenants, by an agent that names it, and no error is logged', () =>
      resumed(async () => {
        const { user, other } = await inSuspendedAsPerson();
        const { raw } = await createApiKey(kit.app.db, { user, name: 'agent', scopes: ['tenants:*'], tenant: '*' });
        const ask = async (method: string, params: object) => {
          const headers = { 'x-api-key': raw, 'x-tenant': TENANT, host: 'localhost', accept: 'application/json, text/event-stream' };
          const { body } = await kit.inject({ method: 'POST', url: '/mcp', headers, payload: { jsonrpc: '2.0', id: 1, method, params } });
          return (JSON.parse(/^data: (.*)$/m.exec(body)?.[1] ?? body) as { readonly result: Readonly<Record<string, unknown>> }).result;
        };
        const before = kit.records.length;
        const { tools } = (await ask('tools/list', {})) as { tools: readonly { readonly name: string }[] };
        expect(tools.map(({ name }) => name)).toContain('tenant_mine');
        const answer = JSON.stringify(await ask('tools/call', { name: 'tenant_mine', arguments: {} }));
        for (const id of [TENANT, other]) expect(answer).toContain(id);
        expect(kit.records.slice(before).filter(({ level }) => level >= 50)).toEqual([]);
      }));

    test('does none of it with a key of the suspended tenant', () =>
      resumed(async () => {
        const { user } = await way.person(kit, `person${(people += 1)}`);
        await way.add(kit.app.db, user.id);
        await addMember(kit.app.db, {
          tenant: (await createTenant(kit.app.db, { name: 'Other', owner: user.id })).id,
          user: (await way.person(kit, `second${people}`)).user.id,
          roles: ['member'],
        });
        const { raw } = await createApiKey(kit.app.db, { user, name: 'script', scopes: ['tenants:*'], tenant: TENANT });
        const send = sender(kit, { 'x-api-key': raw });
        expect((await send('GET', '/v1/tenants')).status).toBe(200);
        await way.suspend(kit.app.db);
        for (const path of ['/v1/tenants', `/v1/tenants/${TENANT}`, '/v1/here/me'])
          expect([path, (await send('GET', path)).code]).toEqual([path, 'tenant_suspended']);
        expect((await send('POST', `/v1/tenants/${TENANT}/leave`)).code).toBe('tenant_suspended');
      }));
  });
});

describe('with organizations of better-auth', () => {
  const way = WAYS['organizations of better-auth'] as Way;
  describeDatabases('a person whose active organization is suspended', (database) => {
    const files = siteFolder();
    let kit: TestApp;
    let people = 0;
    beforeAll(async () => {
      kit = await started(database.db, way, files.url, {});
    });
    afterAll(async () => {
      await kit.close();
      files.remove();
    });

    const inSuspended = async (session: SessionHeaders, id: string) => {
      await way.add(kit.app.db, id);
      const send = sender(kit, session);
      const slug = `other-${people}`;
      const { body } = await send('POST', '/auth/organization/create', { name: 'Other', slug });
      expect((await send('POST', '/auth/organization/set-active', { organizationId: TENANT })).status).toBe(200);
      await way.suspend(kit.app.db);
      expect(await send('GET', '/v1/here')).toMatchObject({ status: 403, code: 'tenant_suspended' });
      return { send, other: body['id'] as string };
    };

    test('sees who they are, makes another one active, leaves and signs out', async () => {
      try {
        const { user, session } = await way.person(kit, `person${(people += 1)}`);
        const { send, other } = await inSuspended(session, user.id);
        expect((await send('GET', '/v1/here/me')).body).toEqual({ user: user.id });
        expect((await send('GET', '/auth/get-session')).status).toBe(200);
        const listed = await kit.inject({ url: '/auth/organization/list', headers: session });
        expect(listed.json<{ id: string }[]>().map(({ id }) => id)).toEqual(expect.arrayContaining([TENANT, other]));
        expect((await send('GET', '/portal/api/resources/api-keys')).code).toBe('tenant_suspended');
        for (const path of ['session', 'tenants']) expect([path, (await send('GET', `/portal/api/${path}`)).status]).toEqual([path, 200]);
        expect((await send('POST', '/auth/organization/set-active', { organizationId: other })).status).toBe(200);
        expect((await send('GET', '/v1/here')).body).toEqual({ tenant: other });
        expect((await send('POST', '/auth/organization/set-active', { organizationId: TENANT })).status).toBe(200);
        expect((await send('POST', '/auth/organization/leave', { organizationId: TENANT })).status).toBe(200);
        expect((await send('GET', '/v1/here')).status).toBe(200);
        expect((await send('POST', '/auth/sign-out', {})).status).toBe(200);
        expect((await send('GET', '/v1/here/me')).status).toBe(401);
      } finally {
        await way.resume(kit.app.db);
      }
    });

    test('resumes it in the administration, as a member of staff', async () => {
      try {
        const name = `staff${(people += 1)}`;
        const session = await way.staff(kit, name);
        const [user] = await kit.app.db.query<{ id: string }>('select "id" from "user" where "email" = $1', [`${name}@example.com`]);
        const { send } = await inSuspended(session, user?.id ?? '');
        for (const list of ['organizations', 'users'])
          expect([list, (await send('GET', `/admin/api/resources/${list}`)).status]).toEqual([list, 200]);
        expect((await send('POST', '/admin/api/resources/organizations/actions/resume', { ids: [TENANT], fields: {} })).status).toBe(200);
        expect((await send('GET', '/v1/here')).body).toEqual({ tenant: TENANT });
      } finally {
        await way.resume(kit.app.db);
      }
    });
  });
});
