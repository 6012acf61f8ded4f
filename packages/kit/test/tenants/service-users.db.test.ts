import { afterAll, beforeAll, expect, test } from 'vitest';
import { accountsOf, changePassword, changeStaff, logIn } from '../../src/contrib/accounts/index.ts';
import { createApiKey, ServiceUserController } from '../../src/contrib/apikeys/index.ts';
import { addMember, removeMember, resumeTenant, suspendTenant } from '../../src/contrib/tenants/index.ts';
import { deleteTenant } from '../../src/contrib/tenants/manage/tenants.ts';
import { purgeTenants } from '../../src/contrib/tenants/manage/purge.ts';
import type { Database } from '../../src/db/index.ts';
import { Controller, jsonSchema, route } from '../../src/http/index.ts';
import { hasRole } from '../../src/permissions/index.ts';
import { describeDatabases } from '../../src/testing/index.ts';
import { type AuthApp, type Browser, makeAdmin, member, startAuthApp, userId } from '../better-auth/auth-app.ts';
import { describeTenantApp } from './tenant-app.ts';

const Json = jsonSchema<object>({});

/** What a role of the tenant sees. */
class Board extends Controller {
  read = route.get('/', { permission: hasRole('member', 'admin'), response: Json }, async ({ user, caller }) => ({
    user: user.id,
    tenant: (await caller()).tenant,
  }));
  decide = route.post('/', { permission: hasRole('admin'), response: Json }, () => ({}));
}

let count = 0;
const fresh = (name: string) => `${name}${(count += 1)}`;
const audited = async (db: Database, tenant: string) =>
  (
    await db.query<{ action: string }>(
      `select action from (select id, action, tenant_id from audit_inbox union all select id, action, tenant_id from audit_entries) e
       where tenant_id = $1 and action like 'service_user.%' order by id`,
      [tenant],
    )
  ).map(({ action }) => action);

describeTenantApp(
  'service users of tenants()',
  {},
  (app) => {
    const { call, person, tenantOf, join } = app;
    const db = () => app.kit.app.db;
    const studio = async () => {
      const owner = await person(fresh('owner'));
      const tenant = await tenantOf(owner);
      const named = { 'x-tenant': tenant.slug };
      const made = async (role = 'member') => {
        const { status, body } = await call(owner, 'POST', '/service-users', { name: 'Nightly import', role }, named);
        expect([status, body.code]).toEqual([201, undefined]);
        return body as { readonly id: string; readonly user_id: string; readonly roles: readonly string[] };
      };
      const keyOf = async (id: string, fields: object = {}) => {
        const { status, body } = await call(owner, 'POST', `/service-users/${id}/issue-key`, { name: 'key', scopes: [], ...fields }, named);
        expect([status, body.code]).toEqual([200, undefined]);
        return body.key as string;
      };
      const asKey = (key: string, method = 'GET', path = '/board', headers = {}) =>
        call(null, method, path, undefined, { 'x-api-key': key, ...headers });
      return { owner, tenant, named, made, keyOf, asKey };
    };

    test('are made by those who manage the tenant, with one role that these can give, and shown as such', async () => {
      const { owner, tenant, named, made } = await studio();
      const [bob, eve] = [await person(fresh('bob')), await person(fresh('eve'))];
      await join(owner, tenant.id, bob, ['member']);
      const { id, user_id, roles } = await made();
      expect(roles).toEqual(['member']);
      const { body: list } = await call(owner, 'GET', '/service-users?expand=creator', undefined, named);
      expect(list.items).toMatchObject([{ id, name: 'Nightly import', roles: ['member'], creator: { name: owner.username } }]);
      const { body: members } = await call(owner, 'GET', `/tenants/${tenant.id}/members?expand=user`);
      const kinds = members.items.map(({ user_id: each, is_service }: { user_id: string; is_service: boolean }) => [each, is_service]);
      expect(kinds).toContainEqual([user_id, true]);
      expect(kinds).toContainEqual([owner.id, false]);
      expect(members.items.find(({ is_service }: { is_service: boolean }) => is_service).user.name).toMatch(/^service-[0-9a-f]{16}$/);
      // Members do not, nor do others, nor the owners of other tenants.
      expect((await call(bob, 'GET', '/service-users', undefined, named)).status).toBe(403);
      expect((await call(bob, 'POST', '/service-users', { name: 'x', role: 'member' }, named)).status).toBe(403);
      expect((await call(eve, 'POST', '/service-users', { name: 'x', role: 'member' }, named)).body.code).toBe('not_a_member');
      const other = await studio();
      for (const [method, path, payload] of [
        ['GET', '', undefined],
        ['DELETE', '', undefined],
        ['POST', '/issue-key', { name: 'x', scopes: [] }],
      ] as const)
        expect((await call(other.owner, method, `/service-users/${id}${path}`, payload, other.named)).body.code).toBe(
          'service_user_not_found',
        );
      for (const role of ['owner', 'nobody'])
        expect([role, (await call(owner, 'POST', '/service-users', { name: 'x', role }, named)).status]).not.toEqual([role, 201]);
      expect(await db().query('select id from service_users where tenant_id = $1', [tenant.id])).toHaveLength(1);
      expect(await audited(db(), tenant.id)).toEqual(['service_user.created']);
    });

    test('act by their keys alone: in their tenant, in their role, never as staff, never to manage keys', async () => {
      const { owner, tenant, named, made, keyOf, asKey } = await studio();
      const { id, user_id } = await made();
      const key = await keyOf(id, { scopes: ['tenants:read', 'tenants:write'] });
      expect((await asKey(key)).body).toEqual({ user: user_id, tenant: tenant.id });
      expect((await asKey(key, 'POST')).status).toBe(403);
      const other = await studio();
      expect((await asKey(key, 'GET', '/board', other.named)).body.code).toBe('tenant_conflict');
      for (const [method, path] of [
        ['GET', '/service-users'],
        ['POST', `/service-users/${id}/issue-key`],
        ['GET', '/service-users/keys'],
      ] as const)
        expect((await asKey(key, method, path)).status).toBe(403);
      // Nobody logs in as it, also not with a password that somebody set.
      const { username } = (await accountsUser(db(), user_id)) as { username: string };
      const management = accountsOf(db()).management(null);
      await changePassword(db(), { id: user_id, username, email: null }, 'correct horse battery staple', management);
      await expect(logIn(db(), { login: username, password: 'correct horse battery staple', previousToken: null })).rejects.toMatchObject({
        code: 'service_user',
      });
      await expect(changeStaff(db(), user_id, true, management)).rejects.toMatchObject({ code: 'service_user' });
      // One tenant, one role.
      await expect(addMember(db(), { tenant: other.tenant.id, user: user_id, roles: ['member'] })).rejects.toMatchObject({
        code: 'service_member',
      });
      const { body: members } = await call(owner, 'GET', `/tenants/${tenant.id}/members`);
      const row = members.items.find((each: { user_id: string }) => each.user_id === user_id).id;
      for (const roles of [['owner'], ['admin', 'member']])
        expect((await call(owner, 'PATCH', `/tenants/${tenant.id}/members/${row}`, { roles })).body.code).toBe('service_member');
      expect((await call(owner, 'PATCH', `/tenants/${tenant.id}/members/${row}`, { roles: ['admin'] })).status).toBe(200);
      expect((await asKey(key, 'POST')).status).toBe(200);
      expect((await call(owner, 'POST', `/tenants/${tenant.id}/transfer`, { user_id })).body.code).toBe('service_member');
      expect((await call(owner, 'GET', '/service-users', undefined, named)).body.items[0].roles).toEqual(['admin']);
    });

    test('keep their keys when the person who made them leaves; managers list, rotate and revoke them, and no key of a person', async () => {
      const { owner, tenant, named, made, keyOf, asKey } = await studio();
      const bob = await person(fresh('bob'));
      await join(owner, tenant.id, bob, ['owner']);
      const { id, user_id } = await made();
      const key = await keyOf(id);
      const own = await createApiKey(db(), { user: owner, name: 'own', scopes: [], tenant: tenant.id });
      expect((await call(owner, 'POST', `/tenants/${tenant.id}/leave`)).status).toBe(204);
      expect((await asKey(own.raw)).status).toBe(401);
      expect((await asKey(key)).status).toBe(200);
      const { body: keys } = await call(bob, 'GET', `/service-users/keys?owner_id=${user_id}`, undefined, named);
      expect(keys.items).toMatchObject([{ owner_id: user_id, state: 'active' }]);
      expect(JSON.stringify((await call(bob, 'GET', '/service-users/keys', undefined, named)).body)).not.toContain(own.apiKey.id);
      for (const method of ['DELETE', 'POST'])
        expect(
          (await call(bob, method, `/service-users/keys/${own.apiKey.id}${method === 'POST' ? '/rotate' : ''}`, undefined, named)).body
            .code,
        ).toBe('api_key_not_found');
      const rotated = await call(bob, 'POST', `/service-users/keys/${keys.items[0].id}/rotate`, {}, named);
      expect(rotated.status).toBe(200);
      expect([(await asKey(key)).status, (await asKey(rotated.body.key)).status]).toEqual([401, 200]);
      expect((await call(bob, 'DELETE', `/service-users/keys/${keys.items[0].id}`, undefined, named)).status).toBe(204);
      expect((await asKey(rotated.body.key)).status).toBe(401);
    });

    const ENDS: Readonly<
      Record<string, (at: Awaited<ReturnType<typeof studio>>, user: { id: string; user_id: string }) => Promise<unknown>>
    > = {
      'is deleted': ({ owner, named }, { id }) => call(owner, 'DELETE', `/service-users/${id}`, undefined, named),
      'is removed from the members': ({ tenant }, { user_id }) => removeMember(db(), { tenant: tenant.id, user: user_id }),
      'has a tenant that is erased': async ({ tenant }) => {
        await deleteTenant(db(), tenant.id, { by: 'a test' });
        app.clock.advance(31 * 86_400_000);
        await purgeTenants(db());
      },
    };
    test.each(Object.keys(ENDS))('leave nothing behind when one %s: no key, no user, no member', async (end) => {
      const at = await studio();
      const user = await at.made();
      const key = await at.keyOf(user.id);
      expect((await at.asKey(key)).status).toBe(200);
      await ENDS[end]?.(at, user);
      expect((await at.asKey(key)).status).toBe(401);
      for (const [table, column] of [
        ['service_users', 'user_id'],
        ['users', 'id'],
        ['tenant_members', 'user_id'],
        ['api_keys', 'owner_id'],
      ] as const)
        expect([table, await db().query(`select ${column} from ${table} where ${column} = $1`, [user.user_id])]).toEqual([table, []]);
    });

    test('are rejected while their tenant is suspended or being deleted', async () => {
      const { tenant, made, keyOf, asKey } = await studio();
      const key = await keyOf((await made()).id);
      await suspendTenant(db(), tenant.id);
      expect((await asKey(key)).body.code).toBe('tenant_suspended');
      await resumeTenant(db(), tenant.id);
      expect((await asKey(key)).status).toBe(200);
      await deleteTenant(db(), tenant.id, { by: 'a test' });
      expect((await asKey(key)).status).toBe(403);
    });
  },
  { mount: { '/v1': { '/service-users': ServiceUserController, '/board': Board } } },
);

async function accountsUser(db: Database, id: string) {
  const [row] = await db.query('select username from users where id = $1', [id]);
  return row;
}

describeDatabases('service users of organizations', (database) => {
  let here: AuthApp;
  beforeAll(async () => {
    here = await startAuthApp(database.db, {
      module: { organization: [{ header: 'X-Team' }] },
      app: { mount: { '/v1': { '/service-users': ServiceUserController, '/board': Board } } },
    });
  });
  afterAll(() => here.app.close());
  const team = async (owner: Browser, slug: string) =>
    (await owner.post('/auth/organization/create', { name: slug, slug })).body.id as string;

  test('are made by its owner, act by their keys in it alone, never log in or become staff, and end with the membership', async () => {
    const ada = await member(here, 'ada@example.com');
    const [north] = [await team(ada, 'north'), await team(ada, 'south')];
    const named = { 'x-team': 'north' };
    const made = await ada.post('/v1/service-users', { name: 'Import', role: 'member' }, named);
    expect([made.status, made.body.roles]).toEqual([201, ['member']]);
    expect((await ada.post('/v1/service-users', { name: 'Import', role: 'owner' }, named)).status).toBe(422);
    const { id, user_id } = made.body;
    const issued = await ada.post(`/v1/service-users/${id}/issue-key`, { name: 'key', scopes: [] }, named);
    expect(issued.status).toBe(200);
    const program = await member(here, 'other@example.com');
    program.cookies.clear();
    const asKey = (headers = {}) => program.get('/v1/board', { 'x-api-key': issued.body.key, ...headers });
    expect((await asKey()).body).toEqual({ user: user_id, tenant: north });
    expect((await asKey({ 'x-team': 'south' })).body.code).toBe('tenant_conflict');
    // Members of the organization who do not manage it, and others.
    const bob = await member(here, 'bob@example.com');
    expect((await bob.post('/v1/service-users', { name: 'x', role: 'member' }, named)).body.code).toBe('not_a_member');
    // A member of staff can neither give it a password that opens a session nor make it staff.
    const staff = await member(here, 'staff@example.com');
    await makeAdmin(database.db, 'staff@example.com');
    const [{ email } = { email: '' }] = await database.db.query<{ email: string }>('select "email" from "user" where "id" = $1', [user_id]);
    expect(email).toMatch(/^service-[0-9a-f]{16}@service\.invalid$/);
    await staff.post('/auth/admin/set-user-password', { userId: user_id, newPassword: 'correct horse battery' });
    await staff.post('/auth/admin/set-role', { userId: user_id, role: 'admin' });
    const [{ role } = { role: '' }] = await database.db.query<{ role: string }>('select "role" from "user" where "id" = $1', [user_id]);
    expect(role ?? 'user').toBe('user');
    await staff.post('/auth/admin/impersonate-user', { userId: user_id });
    expect(await database.db.query('select "id" from "session" where "userId" = $1', [user_id])).toEqual([]);
    expect((await asKey()).status).toBe(200);
    await ada.post('/auth/organization/remove-member', { memberIdOrEmail: email, organizationId: north });
    expect((await asKey()).status).toBe(401);
    for (const [table, column] of [
      ['service_users', 'user_id'],
      ['"user"', '"id"'],
      ['api_keys', 'owner_id'],
    ] as const)
      expect([table, await database.db.query(`select ${column} from ${table} where ${column} = $1`, [user_id])]).toEqual([table, []]);
    expect(await audited(database.db, north)).toEqual(['service_user.created', 'service_user.deleted']);
    expect(await userId(database.db, 'ada@example.com')).toBeTruthy();
  });
});
