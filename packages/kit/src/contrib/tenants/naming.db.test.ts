import { expect, test } from 'vitest';
import { openSession } from '../accounts/index.ts';
import { createApiKey } from '../apikeys/index.ts';
import { CrudController, resource } from '../../crud/index.ts';
import { createTable, migration, model, t } from '../../db/index.ts';
import { Controller, jsonSchema, route } from '../../http/index.ts';
import { allowAny, hasRole, hasScopes, isAuthenticated } from '../../permissions/index.ts';
import { purgeTenants } from './manage/purge.ts';
import { resumeTenant, suspendTenant } from './manage/suspend.ts';
import { describeTenantApp } from '../../../test/tenants/tenant-app.ts';
import type { Authenticator } from '../../auth/index.ts';

const columns = { id: t.uuidv7().pk(), tenant_id: t.uuid().readOnly(), title: t.text(80) };
const papers = model('papers', columns, { indexes: [{ columns: ['tenant_id', '-id'] }] });
const tables = {
  name: 'papers',
  models: [papers],
  migrations: [migration('0001_initial', [createTable('papers', columns, { indexes: [{ columns: ['tenant_id', '-id'] }] })])],
};
class Papers extends CrudController(resource(papers, { tenant: 'tenant_id' }), { permission: hasScopes({ allowUnscoped: true }) }) {}

const Json = jsonSchema<object>({});
class Roles extends Controller {
  mine = route.get('/', { permission: isAuthenticated, response: Json }, async ({ caller }) => {
    const { tenant, membership } = await caller();
    return { tenant, roles: membership?.roles ?? null };
  });
  admins = route.get('/admins', { permission: hasRole('owner', 'admin'), response: Json }, () => ({}));
}
const Params = jsonSchema<{ tenant: string }>({ type: 'object', properties: { tenant: { type: 'string' } }, required: ['tenant'] });
class Place extends Controller {
  mine = route.get('/:tenant/mine', { permission: isAuthenticated, params: Params, response: Json }, async ({ caller }) => ({
    tenant: (await caller()).tenant,
  }));
}

/** A login without a password. */
class Enter extends Controller {
  enter = route.post(
    '/:id',
    {
      permission: allowAny,
      auth: [],
      params: jsonSchema<{ id: string }>({ type: 'object', properties: { id: { type: 'string' } } }),
      response: Json,
    },
    (context) => openSession(context.db, { id: context.params.id }, context),
  );
}

/** A credential that is for one tenant, as an access token with a claim is. */
const bound: Authenticator = {
  name: 'bound',
  securityScheme: { type: 'http', scheme: 'bound' },
  async authenticate({ headers, db }) {
    const [id, tenant] = (headers['x-bound'] as string | undefined)?.split(' ') ?? [];
    if (id === undefined) return null;
    const [row] = await db.query<{ username: string }>('select username from users where id = $1', [id]);
    const user = { id, username: row?.username ?? '', email: null, is_active: true, is_staff: false, is_superuser: false };
    return { user, scheme: 'bound', scopes: null, tenant };
  },
};

let count = 0;
const fresh = (name: string) => `${name}${(count += 1)}`;

describeTenantApp(
  'a request names its tenant',
  { find: [{ header: 'X-Studio' }, { path: 'tenant' }, { subdomainOf: 'example.com' }] },
  (app) => {
    const { call, person, tenantOf, join } = app;
    const who = async (user: Parameters<typeof call>[0], headers: Record<string, string>, path = '/roles') =>
      call(user, 'GET', path, undefined, headers);

    test('by slug or id, in a header, the path or the host name', async () => {
      const ada = await person(fresh('ada'));
      const { id, slug } = await tenantOf(ada);
      for (const [headers, path] of [
        [{ 'x-studio': slug }],
        [{ 'x-studio': slug.toUpperCase() }],
        [{ 'x-studio': id }],
        [{ host: `${slug}.example.com:8080` }],
        [{}, `/t/${slug}/mine`],
        [{ 'x-studio': id, host: `${slug}.example.com` }, `/t/${slug}/mine`],
      ] as const)
        expect([headers, path, (await who(ada, headers, path)).body.tenant]).toEqual([headers, path, id]);
    });

    test('no name, an empty one, the domain itself and the hosts of the app are no tenant', async () => {
      const ada = await person(fresh('ada'));
      await tenantOf(ada);
      for (const headers of [{}, { 'x-studio': '' }, { host: 'example.com' }, { host: 'api.example.com' }, { host: 'a.b.example.org' }])
        expect((await who(ada, headers)).body).toEqual({ tenant: null, roles: null });
    });

    test('two places that disagree are 400, whether the tenants exist or not', async () => {
      const ada = await person(fresh('ada'));
      const [first, second] = [await tenantOf(ada), await tenantOf(ada)];
      const others = await tenantOf(await person(fresh('bob')));
      for (const name of [second.slug, second.id, others.slug, 'nobody', others.id]) {
        const { status, body } = await who(ada, { 'x-studio': first.slug, host: `${name}.example.com` });
        expect([name, status, body.code]).toEqual([name, 400, 'tenant_conflict']);
      }
    });

    test('an unknown name and one of a tenant of others get the same bytes, and so does what no database can store', async () => {
      const [ada, eve] = [await person(fresh('ada')), await person(fresh('eve'))];
      const { id, slug } = await tenantOf(ada);
      const bytes = async (name: string) => {
        const { status, body } = await who(eve, { 'x-studio': name });
        return [status, { ...body, request_id: '' }];
      };
      const unknown = await bytes('nobody');
      expect(unknown).toEqual([403, expect.objectContaining({ code: 'not_a_member' })]);
      for (const name of [slug, id, '01890000-0000-7000-8000-00000000dead', 'x'.repeat(5000), "' or 1=1", '%'])
        expect(await bytes(name)).toEqual(unknown);
    });

    test('a suspended tenant says so in every place, to its members alone; others learn nothing by the place they name it in', async () => {
      const [ada, eve] = [await person(fresh('ada')), await person(fresh('eve'))];
      const { id, slug } = await tenantOf(ada);
      const asked = async (user: typeof ada, name: string) => {
        const told: [number, string][] = [];
        for (const [headers, path] of [
          [{ 'x-studio': name }, '/roles'],
          [{ host: `${name}.example.com` }, '/roles'],
          [{}, `/t/${name}/mine`],
        ] as const) {
          const { status, body } = await who(user, headers, path);
          told.push([status, body.code]);
        }
        return told;
      };
      await suspendTenant(app.kit.app.db, id);
      for (const name of [slug, id]) {
        expect(await asked(ada, name)).toEqual(Array.from({ length: 3 }, () => [403, 'tenant_suspended']));
        expect(await asked(eve, name)).toEqual(await asked(eve, 'nobody'));
      }
      // What gets a person out of it is reached in its own host name, too.
      const inside = { host: `${slug}.example.com` };
      expect((await who(ada, inside, '/tenants')).body.items.map((each: { id: string }) => each.id)).toContain(id);
      await resumeTenant(app.kit.app.db, id);
      expect((await who(ada, inside)).body.tenant).toBe(id);
    });

    test('a missing tenant is 403 tenant_required before any role is asked, and the error says how to name one', async () => {
      const ada = await person(fresh('ada'));
      await tenantOf(ada);
      for (const path of ['/papers', '/roles/admins']) {
        const { status, body } = await who(ada, {}, path);
        expect([status, body.code]).toEqual([403, 'tenant_required']);
        expect(body.detail).toBe(
          'A tenant is required. Name one that you are a member of in the header `X-Studio`, in the path as `:tenant` or in the host name as `<slug>.example.com`, by its slug or id.',
        );
      }
    });

    test('a credential for one tenant acts in no other, and needs no name', async () => {
      const ada = await person(fresh('ada'));
      const [first, second] = [await tenantOf(ada), await tenantOf(ada)];
      const by = (headers: Record<string, string>, path = '/roles') =>
        call(null, 'GET', path, undefined, { 'x-bound': `${ada.id} ${first.id}`, ...headers });
      expect((await by({})).body.tenant).toBe(first.id);
      expect((await by({ 'x-studio': first.slug })).body.tenant).toBe(first.id);
      expect((await by({ 'x-studio': second.slug })).body.code).toBe('tenant_conflict');
      // Nor does it see the other tenant among those of its user.
      expect((await by({}, '/tenants')).body.items.map((each: { id: string }) => each.id)).toEqual([first.id]);
      expect((await by({}, `/tenants/${second.id}/members`)).status).toBe(404);
    });

    test('a tenant that a person has chosen for a session is only the default, and ends with the membership', async () => {
      const [ada, bob] = [await person(fresh('ada')), await person(fresh('bob'))];
      const [first, second] = [await tenantOf(ada), await tenantOf(bob)];
      await join(bob, second.id, ada, ['member']);
      const { db } = app.kit.app;
      const entered = await app.kit.inject({ method: 'POST', url: `/v1/enter/${ada.id}` });
      const session = {
        cookie: String(entered.headers['set-cookie']).split(';')[0] ?? '',
        'x-csrf-token': entered.json<{ csrf_token: string }>().csrf_token,
      };
      const by = (method: string, path: string, headers: Record<string, string> = {}) =>
        call(null, method, path, undefined, { ...session, ...headers });
      const here = async (headers: Record<string, string> = {}) => (await by('GET', '/roles', headers)).body.tenant;
      expect(await here()).toBeNull();
      expect((await by('POST', `/tenants/${second.id}/choose`)).status).toBe(204);
      expect([await here(), await here({ 'x-studio': first.slug })]).toEqual([second.id, first.id]);
      await call(ada, 'POST', `/tenants/${second.id}/leave`);
      expect(await here()).toBeNull();
      expect((await by('GET', '/papers')).body.code).toBe('tenant_required');
      expect((await by('POST', `/tenants/${second.id}/choose`)).status).toBe(404);
      // Nothing but a session remembers it.
      const { raw } = await createApiKey(db, { user: ada, name: 'script', scopes: ['tenants:write'] });
      expect((await call(null, 'POST', `/tenants/${first.id}/choose`, undefined, { 'x-api-key': raw })).body.code).toBe('session_required');
    });

    test('rows belong to the tenant of the request, and roles are those in it', async () => {
      const [ada, bob] = [await person(fresh('ada')), await person(fresh('bob'))];
      const [north, south] = [await tenantOf(ada), await tenantOf(bob)];
      await join(ada, north.id, bob, ['member']);
      const made = await call(bob, 'POST', '/papers', { title: 'Plan' }, { 'x-studio': north.slug });
      expect([made.status, made.body.tenant_id]).toEqual([201, north.id]);
      expect((await who(ada, { 'x-studio': north.slug }, '/papers')).body.items).toHaveLength(1);
      expect((await who(bob, { 'x-studio': south.slug }, '/papers')).body.items).toEqual([]);
      expect((await who(bob, { 'x-studio': north.slug }, '/roles/admins')).status).toBe(403);
      expect((await who(bob, { 'x-studio': south.slug }, '/roles/admins')).status).toBe(200);
    });

    test('a member who left, and every member of a tenant that is being deleted, is rejected with the next request, by key too', async () => {
      const [ada, bob] = [await person(fresh('ada')), await person(fresh('bob'))];
      const { id, slug } = await tenantOf(ada);
      const row = await join(ada, id, bob, ['admin']);
      const { raw } = await createApiKey(app.kit.app.db, { user: bob, name: 'script', tenant: '*', scopes: [] });
      const byKey = () => call(null, 'GET', '/papers', undefined, { 'x-studio': slug, 'x-api-key': raw });
      expect((await byKey()).status).toBe(200);
      await call(ada, 'DELETE', `/tenants/${id}/members/${row}`);
      expect((await byKey()).body.code).toBe('not_a_member');
      await call(ada, 'DELETE', `/tenants/${id}`);
      expect((await who(ada, { 'x-studio': slug }, '/papers')).body.code).toBe('not_a_member');
      app.clock.advance(31 * 24 * 3_600_000);
      const before = (await app.audited('tenant')).length;
      expect(await purgeTenants(app.kit.app.db)).toBeGreaterThan(0);
      expect((await app.audited('tenant')).slice(before)).toContain('tenant.deleted');
      expect((await call(ada, 'GET', `/tenants/${id}`)).status).toBe(404);
    });
  },
  {
    authenticators: [bound],
    modules: [tables],
    mount: { '/v1': { '/papers': Papers, '/roles': Roles, '/t': Place, '/enter': Enter } },
  },
);
