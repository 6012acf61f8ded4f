import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createApp, type App, migrateApp } from '../../src/app/index.ts';
import { accounts, createUser } from '../../src/contrib/accounts/index.ts';
import { users } from '../../src/contrib/accounts/models.ts';
import { apiKeys, createApiKey } from '../../src/contrib/apikeys/index.ts';
import { countQueries, createTable, migration, model, t } from '../../src/db/index.ts';
import { Controller, jsonSchema, route } from '../../src/http/index.ts';
import { allowAny, hasRole, isAuthenticated } from '../../src/permissions/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';

// The example of docs/guide/tenancy.md: memberships as a resource of the app, the tenant named by a header.

const columns = { id: t.uuidv7().pk(), tenant: t.text(100), role: t.enum(['admin', 'member']) };
const indexes = [{ columns: ['tenant', 'user_id'], unique: true }];
const tables = { ...columns, user_id: t.ref('users', { onDelete: 'cascade' }) };
const members = model('members', { ...columns, user_id: t.ref(() => users, { onDelete: 'cascade' }) }, { indexes });

class WhoController extends Controller {
  who = route.get('/', { permission: isAuthenticated, response: jsonSchema<object>({}) }, async ({ caller }) => {
    const { tenant, membership } = await caller();
    return { tenant, roles: membership?.roles ?? null };
  });
  admins = route.get('/admins', { permission: hasRole('admin') }, async ({ caller }) => void (await caller()));
  open = route.get('/open', { permission: allowAny, response: jsonSchema<object>({}) }, async ({ caller }) => ({
    tenant: (await caller()).tenant,
  }));
}

describeDatabases('memberships in tenants', (database) => {
  let app: App;
  const keys = new Map<string, string>();
  const ids = new Map<string, string>();
  let asked = 0;

  const start = () =>
    createApp({
      database: database.db,
      modules: [
        accounts(),
        apiKeys(),
        {
          name: 'team',
          models: [members],
          migrations: [migration('0001_initial', [createTable('members', tables, { indexes })])],
        },
      ],
      tenant: ({ headers }) => headers['x-tenant']?.toString() ?? null,
      async membership({ user, tenant, db }) {
        asked += 1;
        const [row] = await db.query<{ role: string }>('select role from members where tenant = $1 and user_id = $2', [tenant, user.id]);
        return row === undefined ? null : { roles: [row.role] };
      },
      mount: { '/v1': { '/who': WhoController } },
      log: { level: 'silent' },
    });

  beforeAll(async () => {
    app = start();
    await migrateApp(app);
    await app.ready();
    for (const [name, tenant, role] of [
      ['ada', 'north', 'admin'],
      ['bob', 'north', 'member'],
      ['eve', 'south', 'admin'],
    ] as const) {
      const user = await createUser(database.db, { username: name });
      ids.set(name, user.id);
      keys.set(name, (await createApiKey(database.db, { user, name, scopes: [] })).raw);
      await database.db.query('insert into members (id, tenant, user_id, role) values ($1, $2, $3, $4)', [user.id, tenant, user.id, role]);
    }
  });
  afterAll(() => app.close());

  const get = async (who: string | null, tenant: string | null, path = '') => {
    const headers = { ...(who === null ? {} : { 'x-api-key': keys.get(who) ?? '' }), ...(tenant === null ? {} : { 'x-tenant': tenant }) };
    const response = await app.inject({ method: 'GET', url: `/v1/who${path}`, headers });
    return { status: response.statusCode, body: response.body === '' ? null : response.json() };
  };

  test('a caller who names no tenant learns that one is required before any role is asked, and an anonymous one to log in', async () => {
    for (const who of ['ada', 'bob']) {
      const refused = await get(who, null, '/admins');
      expect(refused).toMatchObject({
        status: 403,
        body: { code: 'tenant_required', detail: expect.stringContaining('name one that you are a member of') },
      });
    }
    expect(await get(null, null, '/admins')).toMatchObject({ status: 401, body: { code: 'not_authenticated' } });
    const { paths } = (await app.inject('/openapi.json')).json();
    const { responses, description = '' } = paths['/v1/who/admins'].get;
    expect(JSON.stringify(responses['403'])).toContain('tenant_required');
    expect(description).not.toContain('No authentication required');
  });

  describe('a member', () => {
    test('acts in the tenant with the role, found with one statement', async () => {
      expect((await get('ada', 'north')).body).toEqual({ tenant: 'north', roles: ['admin'] });
      expect((await get('bob', 'north')).body).toEqual({ tenant: 'north', roles: ['member'] });
      const before = asked;
      const counted = await countQueries(() => get('ada', 'north', '/admins'));
      expect(counted.result.status).toBe(204);
      expect(asked - before).toBe(1);
      expect(counted.queries.filter(({ sql }) => sql.includes('from members'))).toHaveLength(1);
    });

    test('is refused what another role may', async () => {
      expect(await get('bob', 'north', '/admins')).toMatchObject({ status: 403, body: { code: 'permission_denied' } });
      expect(await get('ada', null, '/admins')).toMatchObject({ status: 403 });
      expect(await get(null, 'north', '/admins')).toMatchObject({ status: 401 });
    });

    test('who leaves is out with the next request, and so are the API keys, in this tenant only', async () => {
      await database.db.query(`insert into members (id, tenant, user_id, role) values ($1, 'south', $2, 'member')`, [
        '01890000-0000-7000-8000-000000000001',
        ids.get('bob'),
      ]);
      await database.db.query(`delete from members where tenant = 'north' and user_id = $1`, [ids.get('bob')]);
      expect(await get('bob', 'north')).toMatchObject({ status: 403, body: { code: 'not_a_member' } });
      expect((await get('bob', 'south')).body).toEqual({ tenant: 'south', roles: ['member'] });
      // The key is still the user's: what needs no tenant works.
      expect((await get('bob', null)).body).toEqual({ tenant: null, roles: null });
    });
  });

  test('nobody gets into a tenant by naming it', async () => {
    for (const tenant of ['north', 'NORTH', 'north ', "north' or '1'='1", 'nowhere'])
      for (const path of ['', '/admins']) expect(await get('eve', tenant, path)).toMatchObject({ status: 403 });
    expect((await get(null, 'north', '/open')).body).toEqual({ tenant: null });
  });
});
