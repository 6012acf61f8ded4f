import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { changeStaff, deactivateUser, openSession } from '../../src/contrib/accounts/index.ts';
import { ApiKeyController, apiKeys, createApiKey } from '../../src/contrib/apikeys/index.ts';
import { TenantAuditController } from '../../src/contrib/audit/index.ts';
import { createServiceUser } from '../../src/contrib/apikeys/service/manage-service-users.ts';
import { mcp } from '../../src/contrib/mcp/index.ts';
import { addMember, createTenant, removeMember, TenantController, tenants } from '../../src/contrib/tenants/index.ts';
import { CrudController, resource } from '../../src/crud/index.ts';
import { createTable, migration, model, t } from '../../src/db/index.ts';
import { Controller, jsonSchema, route } from '../../src/http/index.ts';
import { allowAny, hasRole, isAuthenticated } from '../../src/permissions/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { fakeClock } from '../../src/testing/fake-clock.ts';
import { auditLog } from '../audit-log.ts';
import { AdminApp, type Browser } from './admin-app.ts';

const columns = { id: t.uuidv7().pk(), tenant_id: t.uuid().readOnly(), title: t.text(80) };
const indexes = { indexes: [{ columns: ['tenant_id', '-id'] }] };
const papers = model('papers', columns, indexes);
class Papers extends CrudController(resource(papers, { tenant: 'tenant_id' }), {
  permission: hasRole('member', 'owner'),
  export: ['csv'],
  operations: { list: { tool: true } },
}) {}

const Json = jsonSchema<object>({});
class Me extends Controller {
  me = route.get('/', { permission: isAuthenticated, response: Json }, async ({ user, principal, caller }) => ({
    user: user.id,
    tenant: (await caller()).tenant,
    roles: (await caller()).membership?.roles ?? null,
    staff: user.is_staff || user.is_superuser,
    by: principal.impersonatedBy ?? null,
  }));
  search = route.post(
    '/',
    { permission: isAuthenticated, body: z.object({}).loose(), response: Json, atomic: true, idempotent: true },
    () => ({ done: true }),
  );
  follow = route.stream('/follow', { permission: isAuthenticated, response: Json, heartbeatMs: 20 }, async function* ({ signal }) {
    yield { data: {} };
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
  });
}

/** A login without the limits of the one with a password. */
class Enter extends Controller {
  enter = route.get('/:id', { permission: allowAny, auth: [], params: z.object({ id: z.string() }), response: Json }, (context) =>
    openSession(context.db, { id: context.params.id }, context),
  );
}

const MINUTE = 60_000;
const clock = fakeClock();

describeDatabases(
  'looking at the application as a user',
  (database) => {
    let site: AdminApp;
    beforeAll(async () => {
      const tables = {
        name: 'papers',
        models: [papers],
        migrations: [migration('0001_initial', [createTable('papers', columns, indexes)])],
      };
      site = await new AdminApp(
        database.db,
        [apiKeys(), tenants({ create: isAuthenticated }), mcp(), tables],
        {
          clock,
          mount: {
            '/v1': {
              '/enter': Enter,
              '/me': Me,
              '/papers': Papers,
              '/tenants': TenantController,
              '/api-keys': ApiKeyController,
              '/audit': TenantAuditController,
            },
          },
        },
        { viewAs: true, roles: { of: ({ username }) => (username.startsWith('reader') ? 'read_only' : 'administrator') } },
      ).ready();
    });
    afterAll(() => site.close());
    let count = 0;
    const db = () => site.app.db;

    /** A member of staff who has just logged in with a second factor. */
    const staffMember = async (name = 'staff', factor = true): Promise<Browser> => {
      const browser = await site.browser({ is_staff: true, username: `${name}-${(count += 1)}` });
      if (factor) await db().query('update sessions set second_factor = true where user_id = $1', [browser.userId]);
      return browser;
    };
    const studio = async () => {
      const [owner, member] = [await site.newUser(), await site.newUser()];
      const tenant = await createTenant(db(), { name: 'Studio', slug: `studio-${(count += 1)}`, owner: owner.id });
      await addMember(db(), { tenant: tenant.id, user: member.id, roles: ['member'] });
      await db().query('insert into papers (id, tenant_id, title) values ($1, $2, $3)', [
        crypto.randomUUID(),
        tenant.id,
        `of ${tenant.slug}`,
      ]);
      return { owner, member, tenant };
    };
    const begin = (staff: Browser, body: object) => site.send(staff, 'POST', 'view', body);
    /** The browser of a member of staff while a view is open. */
    const viewing = async (staff: Browser, body: object): Promise<Browser> => {
      const answer = await begin(staff, { reason: 'Ticket 7', ...body });
      expect([answer.status, answer.body.code]).toEqual([201, undefined]);
      const cookie = /^kit_view_as=[^;]+/.exec(String(answer.headers['set-cookie']))?.[0] ?? '';
      return { ...staff, cookie: `${staff.cookie}; ${cookie}` };
    };
    const get = (browser: Browser, path: string, headers = {}) => site.call('GET', path, { cookie: browser.cookie, ...headers });

    test('needs an administrator with a second factor, a recent login and a reason, and a user who is a member and no staff', async () => {
      const { member, owner, tenant } = await studio();
      const body = { user: member.id, tenant: tenant.slug, reason: 'Ticket 7' };
      expect((await begin(await staffMember('staff', false), body)).body.code).toBe('second_factor_required');
      expect((await begin(await staffMember('reader'), body)).body.code).toBe('role_required');
      const staff = await staffMember();
      expect((await begin(staff, { user: member.id, tenant: tenant.slug })).status).toBe(422);
      expect((await begin(staff, { ...body, reason: '' })).status).toBe(422);
      const other = await studio();
      for (const refused of [
        { ...body, user: (await staffMember()).userId },
        { ...body, user: staff.userId },
        { ...body, user: crypto.randomUUID() },
        { ...body, tenant: other.tenant.slug },
        { ...body, user: other.owner.id },
      ])
        expect((await begin(staff, refused)).body.code).toBe('view_refused');
      await deactivateUser(db(), owner.id);
      expect((await begin(staff, { ...body, user: owner.id })).body.code).toBe('view_refused');
      clock.advance(11 * MINUTE);
      expect((await begin(staff, body)).body.code).toBe('recent_login_required');
      expect(await db().query('select id from admin_views')).toEqual([]);
    });

    test('is offered to an administrator on the pages of a user, a member and a service user, with what is asked, and of nobody who cannot be looked at', async () => {
      const { member, tenant } = await studio();
      const staff = await staffMember();
      const viewOn = async (browser: Browser, resource: string, id: string) => {
        const { status, body } = await site.get(browser, `resources/${resource}/${id}`);
        expect(status).toBe(200);
        return body.view as { user: string; tenant: string | null; fields: { name: string; choices?: unknown }[] } | undefined;
      };
      const ofUser = await viewOn(staff, 'users', member.id);
      expect(ofUser).toMatchObject({ user: member.id, tenant: null, fields: [{ name: 'tenant', kind: 'select' }, { name: 'reason' }] });
      expect(ofUser?.fields[0]?.choices).toEqual([{ value: tenant.id, label: 'Studio' }]);
      const [row] = await db().query<{ id: string }>('select id from tenant_members where user_id = $1', [member.id]);
      const ofMember = await viewOn(staff, 'tenant-members', row?.id ?? '');
      expect(ofMember).toMatchObject({ user: member.id, tenant: tenant.id, fields: [{ name: 'reason', required: true }] });
      const made = { tenant: tenant.id, name: 'Import', role: 'member' };
      const service = await db().transaction((tx) => createServiceUser(tx, made, { by: null, requestId: null, createdBy: null }));
      expect(await viewOn(staff, 'service-users', service.id)).toMatchObject({ user: service.user_id, tenant: tenant.id });
      // What is offered is what is accepted.
      await viewing(staff, { user: service.user_id, tenant: tenant.id });
      await db().query('update users set is_active = $1 where id = $2', [false, member.id]);
      expect(await viewOn(staff, 'users', member.id)).toBeUndefined();
      expect(await viewOn(staff, 'users', (await staffMember()).userId)).toBeUndefined();
      expect(await viewOn(await staffMember('reader'), 'tenant-members', row?.id ?? '')).toBeUndefined();
      // Service users are marked as such, in every list.
      const { body: members } = await site.get(staff, `resources/tenant-members?filter.tenant=${tenant.id}`);
      const marks = members.items.map(({ values }: { values: { is_service: boolean } }) => values.is_service).toSorted();
      expect(marks).toEqual([false, false, true]);
      const { body: services } = await site.get(staff, `resources/service-users?filter.tenant=${tenant.id}`);
      expect(services.items).toMatchObject([{ title: 'Import', values: { roles: ['member'], tenant_id: { text: 'Studio' } } }]);
      const { body: user } = await site.get(staff, `resources/users/${service.user_id}`);
      expect(user.state.value).toBe('service user');
    });

    test('shows what the user sees in the tenant, in the role of the user, and the banner says as whom; the admin site stays the own', async () => {
      const { member, tenant } = await studio();
      await studio();
      const staff = await staffMember();
      expect((await site.get(staff, 'view')).body).toEqual({ view: null });
      const browser = await viewing(staff, { user: member.id, tenant: tenant.slug });
      expect((await get(browser, '/v1/me')).body).toEqual({
        user: member.id,
        tenant: tenant.id,
        roles: ['member'],
        staff: false,
        by: staff.userId,
      });
      const { body: list } = await get(browser, '/v1/papers');
      expect(list.items.map(({ title }: { title: string }) => title)).toEqual([`of ${tenant.slug}`]);
      expect((await get(browser, '/v1/audit')).status).toBe(403);
      expect((await site.get(browser, 'view')).body.view).toMatchObject({
        user: { id: member.id, username: member.username },
        tenant: tenant.id,
        tenant_name: 'Studio',
        reason: 'Ticket 7',
      });
      expect((await site.get(browser, 'session')).body.user.id).toBe(staff.userId);
      // Without a tenant: what the user has outside of them.
      const outside = await viewing(staff, { user: member.id });
      expect((await get(outside, '/v1/me')).body).toMatchObject({ user: member.id, tenant: null });
      expect((await get(outside, '/v1/papers')).body.code).toBe('tenant_required');
      expect((await get(outside, '/v1/me', { 'x-tenant': tenant.slug })).status).not.toBe(200);
      // The first one is over: one at a time.
      expect((await get(browser, '/v1/me')).body.code).toBe('view_ended');
    });

    test('reads only: no write, no file, no key, no tool, whatever the role of the user', async () => {
      const { owner, tenant } = await studio();
      const browser = await viewing(await staffMember(), { user: owner.id, tenant: tenant.id });
      const [{ id } = { id: '' }] = await db().query<{ id: string }>('select cast(id as text) as id from papers where tenant_id = $1', [
        tenant.id,
      ]);
      const { apiKey } = await createApiKey(db(), { user: owner, name: 'k', scopes: [], tenant: tenant.id });
      const before = JSON.stringify(await db().query('select id, revoked_at from api_keys order by id'));
      for (const [method, path, payload] of [
        ['POST', '/v1/papers', { title: 'x' }],
        ['PATCH', `/v1/papers/${id}`, { title: 'x' }],
        ['DELETE', `/v1/papers/${id}`, undefined],
        ['GET', '/v1/papers/export?format=csv', undefined],
        ['POST', '/v1/me', {}],
        ['POST', '/v1/api-keys', { name: 'x', scopes: [] }],
        ['POST', `/v1/api-keys/${apiKey.id}/rotate`, {}],
        ['DELETE', `/v1/api-keys/${apiKey.id}`, undefined],
        ['POST', '/v1/tenants', { name: 'x' }],
        ['POST', `/v1/tenants/${tenant.id}/invitations`, { email: 'x@example.com', roles: ['member'] }],
        ['POST', `/v1/tenants/${tenant.id}/export`, undefined],
        ['GET', `/v1/tenants/${tenant.id}/export/archive`, undefined],
        ['DELETE', `/v1/tenants/${tenant.id}`, undefined],
      ] as const) {
        const headers = { cookie: browser.cookie, 'x-csrf-token': browser.csrf, 'idempotency-key': `k${(count += 1)}`, host: 'localhost' };
        const answer = await site.call(method, path, headers, payload);
        expect([method, path, answer.status, answer.body?.code]).toEqual([method, path, 403, 'viewing_only']);
      }
      expect(JSON.stringify(await db().query('select id, revoked_at from api_keys order by id'))).toBe(before);
      // Agents have no session.
      const tools = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
      expect((await site.call('POST', '/mcp', { cookie: browser.cookie, host: 'localhost' }, tools)).status).toBe(401);
      for (const path of ['/v1/papers', `/v1/papers/${id}`, '/v1/tenants', `/v1/tenants/${tenant.id}/members`, '/v1/api-keys'])
        expect([path, (await get(browser, path)).status]).toEqual([path, 200]);
    });

    const ENDS: Readonly<Record<string, (at: { staff: Browser; browser: Browser; userId: string; tenant: string }) => Promise<unknown>>> = {
      'its 30 minutes are over': async () => clock.advance(30 * MINUTE),
      'it is ended': ({ browser }) => site.send(browser, 'DELETE', 'view'),
      'the session of the member of staff ends': ({ staff }) => db().query('delete from sessions where user_id = $1', [staff.userId]),
      'the member of staff is none any more': ({ staff }) => changeStaff(db(), staff.userId, false),
      'the member of staff is deactivated': ({ staff }) => deactivateUser(db(), staff.userId),
      'the user is deactivated': ({ userId }) => deactivateUser(db(), userId),
      'the user becomes staff': ({ userId }) => changeStaff(db(), userId, true),
      'the user leaves the tenant': ({ userId, tenant }) => removeMember(db(), { tenant, user: userId }),
    };
    test.each(Object.keys(ENDS))(
      'is over at once when %s, also for an open stream, and does not go on as the member of staff',
      async (end) => {
        const { member, tenant } = await studio();
        const staff = await staffMember();
        const browser = await viewing(staff, { user: member.id, tenant: tenant.id });
        const url = await listening();
        const closing = new AbortController();
        const response = await fetch(`${url}/v1/me/follow`, { headers: { cookie: browser.cookie }, signal: closing.signal });
        expect(response.status).toBe(200);
        let isOpen = true;
        const read = (async () => {
          try {
            for await (const _ of response.body ?? []);
          } catch {
            // Ended by the server, or by the test.
          }
          isOpen = false;
        })();
        expect((await get(browser, '/v1/me')).body.user).toBe(member.id);
        await ENDS[end]?.({ staff, browser, userId: member.id, tenant: tenant.id });
        const after = await get(browser, '/v1/me');
        expect([401, 403]).toContain(after.status);
        await vi.waitUntil(() => !isOpen, { timeout: 30_000, interval: 20 });
        closing.abort();
        await read;
      },
    );

    let address: string | undefined;
    const listening = async () => (address ??= await site.app.listen({ port: 0 }));

    test('is bound to the session that began it, and to no other credential', async () => {
      const { member, owner, tenant } = await studio();
      const staff = await staffMember();
      const browser = await viewing(staff, { user: member.id, tenant: tenant.id });
      const mark = /kit_view_as=[^;]+/.exec(browser.cookie)?.[0] ?? '';
      const other = await staffMember();
      for (const cookie of [`${other.cookie}; ${mark}`, `${browser.cookie}; ${mark}`])
        expect((await site.call('GET', '/v1/me', { cookie })).body.code).toBe('view_ended');
      expect((await site.call('GET', '/v1/me', { cookie: mark })).status).toBe(401);
      expect((await site.call('GET', '/v1/me', { cookie: `${await customer(member.id)}; ${mark}` })).body.code).toBe('view_ended');
      // A key is what was meant.
      const { raw } = await createApiKey(db(), { user: owner, name: 'k', scopes: [], tenant: tenant.id });
      expect((await site.call('GET', '/v1/me', { cookie: browser.cookie, 'x-api-key': raw })).body.user).toBe(owner.id);
    });

    test('is recorded with both names, the reason and the tenant, whose owners see it', async () => {
      const { owner, member, tenant } = await studio();
      const staff = await staffMember();
      const browser = await viewing(staff, { user: member.id, tenant: tenant.id, reason: 'Ticket 8' });
      await site.send(browser, 'DELETE', 'view');
      const entries = await auditLog(db(), { target_id: member.id });
      const began = entries.find(({ action }) => action === 'user.view_began');
      expect(began).toMatchObject({
        actor_id: staff.userId,
        actor_name: expect.stringMatching(/^staff-/),
        metadata: { username: member.username, reason: 'Ticket 8' },
      });
      expect(entries.map(({ action }) => action)).toContain('user.view_ended');
      const ownerBrowser = await customer(owner.id);
      const { body } = await site.call('GET', '/v1/audit', { cookie: ownerBrowser, 'x-tenant': tenant.slug });
      expect(body.items.map(({ action }: { action: string }) => action)).toEqual(
        expect.arrayContaining(['user.view_began', 'user.view_ended']),
      );
    });
    /** The cookie of a person who is no staff. */
    const customer = async (id: string): Promise<string> => {
      const { headers } = await site.call('GET', `/v1/enter/${id}`);
      return /^[^;]*/.exec(String(headers['set-cookie']))?.[0] ?? '';
    };
  },
  { database: { clock } },
);
