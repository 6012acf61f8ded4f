import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createApp, type App, migrateApp } from '../../src/app/index.ts';
import { accounts, createUser, users } from '../../src/contrib/accounts/index.ts';
import { apiKeys, createApiKey } from '../../src/contrib/apikeys/index.ts';
import { CrudController, resource } from '../../src/crud/index.ts';
import { countQueries, createTable, migration, model, t } from '../../src/db/index.ts';
import { Controller, jsonSchema, route } from '../../src/http/index.ts';
import { hasRole, isAuthenticated } from '../../src/permissions/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';

// The example of docs/guide/tenancy.md: memberships are a CRUD resource, a header or the path names the tenant.

const indexes = [{ columns: ['tenant', 'user_id'], unique: true }, { columns: ['tenant', '-id'] }];
const columns = { id: t.uuidv7().pk(), tenant: t.text(100).readOnly(), role: t.enum(['admin', 'member']) };
const members = model('members', { ...columns, user_id: t.ref(() => users, { onDelete: 'cascade' }) }, { indexes });
const table = createTable('members', { ...columns, user_id: t.ref('users', { onDelete: 'cascade' }) }, { indexes });

class MemberController extends CrudController(resource(members, { tenant: 'tenant' }), {
  permission: hasRole('admin', 'member'),
  operations: {
    create: { permission: hasRole('admin') },
    update: false,
    partialUpdate: { permission: hasRole('admin') },
    destroy: { permission: hasRole('admin') },
  },
}) {}

class SettingsController extends Controller {
  read = route.get(
    '/:tenant/settings',
    { permission: hasRole('admin'), params: z.object({ tenant: z.string() }), response: jsonSchema<object>({}) },
    async ({ caller }) => ({ tenant: (await caller()).tenant, roles: (await caller()).membership?.roles }),
  );
}

class WhoController extends Controller {
  who = route.get('/', { permission: isAuthenticated, response: jsonSchema<object>({}) }, ({ user }) => ({ user: user.username }));
}

describeDatabases('memberships as a resource', (database) => {
  let app: App;
  const keys = new Map<string, string>();
  const ids = new Map<string, string>();

  beforeAll(async () => {
    app = createApp({
      database: database.db,
      // Whom an administrator may add.
      resources: [resource(users, { rows: () => ({ is_active: true }) })],
      modules: [accounts(), apiKeys(), { name: 'team', models: [members], migrations: [migration('0001_initial', [table])] }],
      // Of an exchange that no route matched there are no parameters.
      tenant: ({ request, headers }) =>
        (request.params as { tenant?: string } | undefined)?.tenant ?? headers['x-tenant']?.toString() ?? null,
      async membership({ user, tenant, db }) {
        const [row] = await db.query<{ role: string }>('select role from members where tenant = $1 and user_id = $2', [tenant, user.id]);
        return row === undefined ? null : { roles: [row.role] };
      },
      mount: { '/v1': { '/members': MemberController, '/organizations': SettingsController, '/who': WhoController } },
      log: { level: 'silent' },
    });
    await migrateApp(app);
    await app.ready();
    for (const name of ['ada', 'bob', 'eve']) {
      const user = await createUser(database.db, { username: name });
      ids.set(name, user.id);
      keys.set(name, (await createApiKey(database.db, { user, name, scopes: [] })).raw);
    }
    // The first administrators come with their organizations; everyone else by the routes.
    for (const [name, tenant] of [
      ['ada', 'north'],
      ['eve', 'south'],
    ] as const)
      await database.db.query('insert into members (id, tenant, user_id, role) values ($1, $2, $1, $3)', [ids.get(name), tenant, 'admin']);
  });
  afterAll(() => app.close());

  const call = async (who: string, method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, tenant?: string, payload?: object) => {
    const headers = { 'x-api-key': keys.get(who) ?? '', ...(tenant === undefined ? {} : { 'x-tenant': tenant }) };
    const response = await app.inject({ method, url: `/v1${path}`, headers, ...(payload === undefined ? {} : { payload }) });
    return { status: response.statusCode, body: response.body === '' ? null : response.json() };
  };
  const add = (who: string, tenant: string, name: string, role: string) =>
    call(who, 'POST', '/members', tenant, { user_id: ids.get(name), role });

  test('an administrator adds a member, of the own tenant only; the member then sees the others and changes none', async () => {
    expect((await call('bob', 'GET', '/members', 'north')).body.code).toBe('not_a_member');
    const added = await add('ada', 'north', 'bob', 'member');
    expect(added).toMatchObject({ status: 201, body: { tenant: 'north', role: 'member' } });
    expect((await call('ada', 'POST', '/members', 'north', { user_id: ids.get('eve'), role: 'member', tenant: 'south' })).status).toBe(422);
    expect((await call('bob', 'GET', '/members', 'north')).body.items).toHaveLength(2);
    for (const [method, path, body] of [
      ['POST', '/members', { user_id: ids.get('eve'), role: 'admin' }],
      ['PATCH', `/members/${added.body.id}`, { role: 'admin' }],
      ['DELETE', `/members/${added.body.id}`, undefined],
    ] as const)
      expect([method, (await call('bob', method, path, 'north', body)).body?.code]).toEqual([method, 'permission_denied']);
    // Another tenant's member is missing, for its administrator, too.
    expect((await call('eve', 'GET', `/members/${added.body.id}`, 'south')).status).toBe(404);
    expect((await call('eve', 'DELETE', `/members/${added.body.id}`, 'north')).body.code).toBe('not_a_member');
  });

  test('the path names the tenant as well as a header, and it is proved in the same way', async () => {
    expect(await call('ada', 'GET', '/organizations/north/settings')).toMatchObject({
      status: 200,
      body: { tenant: 'north', roles: ['admin'] },
    });
    expect((await call('ada', 'GET', '/organizations/south/settings')).body.code).toBe('not_a_member');
    // A header cannot change what the path says.
    expect((await call('ada', 'GET', '/organizations/south/settings', 'north')).body.code).toBe('not_a_member');
  });

  test('one lookup of the membership per request, however often it is asked', async () => {
    for (const [method, path, body] of [
      ['GET', '/members', undefined],
      ['PATCH', `/members/${ids.get('ada')}`, { role: 'admin' }],
      ['GET', '/organizations/north/settings', undefined],
    ] as const) {
      const { result, queries } = await countQueries(() => call('ada', method, path, 'north', body));
      expect(result.status).toBe(200);
      expect(queries.filter(({ sql }) => sql.startsWith('select role from members'))).toHaveLength(1);
    }
  });

  test('a new role counts with the next request', async () => {
    const { items } = (await call('ada', 'GET', '/members', 'north')).body as { items: { id: string; user_id: string }[] };
    const bob = items.find(({ user_id }) => user_id === ids.get('bob'))?.id ?? '';
    expect((await call('bob', 'GET', '/organizations/north/settings')).status).toBe(403);
    await call('ada', 'PATCH', `/members/${bob}`, 'north', { role: 'admin' });
    expect((await call('bob', 'GET', '/organizations/north/settings')).status).toBe(200);
  });

  describe('a member who leaves', () => {
    test('is out with the next request, API keys included; the keys stay those of the user', async () => {
      await add('eve', 'south', 'bob', 'member');
      const { items } = (await call('ada', 'GET', '/members', 'north')).body as { items: { id: string; user_id: string }[] };
      const bob = items.find(({ user_id }) => user_id === ids.get('bob'))?.id ?? '';
      expect((await call('ada', 'DELETE', `/members/${bob}`, 'north')).status).toBe(204);
      expect((await call('bob', 'GET', '/members', 'north')).body.code).toBe('not_a_member');
      expect((await call('bob', 'GET', '/organizations/north/settings')).body.code).toBe('not_a_member');
      expect((await call('bob', 'GET', '/members', 'south')).status).toBe(200);
      expect((await call('bob', 'GET', '/who')).body).toEqual({ user: 'bob' });
    });
  });
});
