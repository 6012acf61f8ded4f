import { organization } from 'better-auth/plugins';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { admin } from '../../src/admin/index.ts';
import { requestLogs } from '../../src/contrib/requests/log/log.ts';
import { requests } from '../../src/contrib/requests/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { siteFolder } from '../admin/admin-app.ts';
import { type AuthApp, Browser, type instanceOptions, makeAdmin, member, ORIGIN, startAuthApp } from './auth-app.ts';

const files = siteFolder();
afterAll(() => files.remove());

describeDatabases('the admin site with better-auth as its login', (database) => {
  let here: AuthApp;
  let staff: Browser;
  beforeAll(async () => {
    const limited = (options: ReturnType<typeof instanceOptions>) => ({
      ...options,
      plugins: [...options.plugins.slice(1), organization({ membershipLimit: async (_user, { slug }) => (slug === 'eastern' ? 7 : 3) })],
    });
    here = await startAuthApp(database.db, {
      instance: limited,
      modules: [requests(), admin({ site: files.url })],
      module: { loginUrl: '/login', accountUrl: '/me' },
    });
    staff = await member(here, 'staff@example.com');
    await makeAdmin(database.db, 'staff@example.com');
  });
  afterAll(() => here.app.close());

  test('leads to the login page of the application', async () => {
    expect((await new Browser(here.app).get('/admin/api/login')).body).toMatchObject({ url: '/login', account_url: '/me' });
    expect((await new Browser(here.app).get('/admin/api/session')).status).toBe(401);
  });

  test('admits sessions of the role admin, and no other credential', async () => {
    expect((await staff.get('/admin/api/session')).body).toMatchObject({ user: { username: 'staff@example.com' } });
    const customer = await member(here, 'customer@example.com');
    expect(await customer.get('/admin/api/session')).toMatchObject({ status: 403, body: { code: 'staff_only' } });
    const [, value] = [...staff.cookies].find(([name]) => name.endsWith('session_token')) ?? [];
    const { body } = await staff.post('/v1/api-keys', { name: 'script', scopes: [] });
    for (const headers of [{ authorization: `Bearer ${value}` }, { 'x-api-key': String(body.key) }])
      expect((await new Browser(here.app).get('/admin/api/session', headers)).status).toBe(401);
  });

  test('logs out through better-auth, from its own pages only', async () => {
    const other = new Browser(here.app);
    await other.signIn('staff@example.com');
    const kept = new Map(other.cookies);
    other.origin = 'https://evil.example';
    expect((await other.post('/admin/api/logout')).status).toBe(403);
    expect((await other.get('/admin/api/session')).status).toBe(200);
    other.origin = ORIGIN;
    expect((await other.call('POST', '/admin/api/logout')).status).toBe(204);
    expect([...other.cookies.keys()].filter((name) => name.endsWith('session_token'))).toEqual([]);
    for (const [name, value] of kept) other.cookies.set(name, value);
    expect((await other.get('/admin/api/session')).status).toBe(401);
    // A dead cookie is cleared, too.
    expect((await other.call('POST', '/admin/api/logout')).status).toBe(204);
    expect((await staff.get('/admin/api/session')).status).toBe(200);
  });

  test('lists users, organizations and members by name, suspends and resumes an organization, and writes nothing else', async () => {
    const owner = await member(here, 'owner@example.com');
    const { body: made } = await owner.post('/auth/organization/create', { name: 'North', slug: 'north' });
    await member(here, 'bob@example.com');
    const list = async (name: string, query = '') => (await staff.get(`/admin/api/resources/${name}${query}`)).body;
    const users = await list('users', '?search=owner');
    expect(users.items).toMatchObject([{ title: 'owner@example.com', values: { is_active: true, is_staff: false } }]);
    expect((await list('users', '?filter.staff=yes')).items.map(({ title }: { title: string }) => title)).toEqual(['staff@example.com']);
    const [organization] = (await list('organizations')).items;
    expect(organization).toMatchObject({ id: made.id, title: 'North', values: { slug: 'north', state: { value: 'active' } } });
    const [row] = (await list('organization-members', `?filter.tenant=${made.id}`)).items;
    expect(row).toMatchObject({
      title: 'owner@example.com',
      values: { user_id: { text: 'owner@example.com' }, organization_id: { text: 'North' }, roles: 'owner', is_service: false },
    });
    const page = (await staff.get(`/admin/api/resources/organizations/${made.id}`)).body;
    expect(page.sections.map(({ title }: { title: string }) => title)).toEqual(expect.arrayContaining(['Organization', 'Members']));
    expect(page.actions).toEqual(['suspend']);
    // Nothing is edited, created or deleted here.
    expect([page.form, page.removable]).toEqual([undefined, false]);
    expect((await staff.call('DELETE', `/admin/api/resources/organizations/${made.id}`)).status).toBeGreaterThanOrEqual(400);
    expect(
      (await staff.call('PATCH', `/admin/api/resources/users/${users.items[0].id}`, { is_staff: true })).status,
    ).toBeGreaterThanOrEqual(400);
    const run = (action: string, fields = {}) =>
      staff.post(`/admin/api/resources/organizations/actions/${action}`, { ids: [made.id], fields });
    const named = { 'x-organization': 'north' };
    expect((await run('suspend', { reason: 'The invoice is open.' })).body.message).toBe('1 organization suspended.');
    expect((await owner.get('/v1/who', named)).body.code).toBe('tenant_suspended');
    expect((await list('organizations')).items[0].values.state.value).toBe('suspended');
    expect((await run('resume')).body.message).toBe('1 organization resumed.');
    expect((await owner.get('/v1/who', named)).body.tenant).toBe(made.id);
    const customer = await member(here, 'stranger@example.com');
    expect((await customer.get('/admin/api/resources/users')).status).toBe(403);
  });

  test('shows seats, owners, use and open invitations of an organization, and nothing of another', async () => {
    const made: Record<string, string> = {};
    for (const mark of ['eastern', 'western']) {
      const owner = await member(here, `${mark}@example.com`);
      made[mark] = (await owner.post('/auth/organization/create', { name: mark, slug: mark })).body.id;
      for (const guest of ['guest', 'gone'])
        await owner.post('/auth/organization/invite-member', {
          email: `${guest}-${mark}@example.com`,
          role: 'member',
          organizationId: made[mark],
        });
      const [, second] = (await owner.get(`/auth/organization/list-invitations?organizationId=${made[mark]}`)).body as {
        id: string;
        email: string;
      }[];
      expect((await owner.post('/auth/organization/cancel-invitation', { invitationId: second?.id })).status).toBe(200);
      expect((await owner.get('/v1/who', { 'x-organization': mark })).status).toBe(200);
    }
    await requestLogs.of(here.app.db).flush();
    const { items } = (await staff.get('/admin/api/resources/organizations?search=eastern')).body;
    expect(items).toHaveLength(1);
    const { members, seats, owners, requests: used, last_request_at: last } = items[0].values;
    expect({ members, seats, owners, used }).toEqual({ members: 1, seats: 7, owners: ['eastern@example.com'], used: 1 });
    expect(Date.parse(last)).toBeGreaterThan(0);
    const page = JSON.stringify((await staff.get(`/admin/api/resources/organizations/${made['eastern']}`)).body);
    for (const shown of ['eastern@example.com', 'guest-eastern@example.com']) expect(page).toContain(shown);
    for (const hidden of ['western', 'gone-eastern']) expect(page).not.toContain(hidden);
    const invited = (await staff.get(`/admin/api/resources/organization-invitations?filter.tenant=${made['western']}`)).body.items;
    expect(invited).toMatchObject([
      { title: 'guest-western@example.com', values: { organization_id: { text: 'western' }, roles: 'member' } },
    ]);
    expect((await staff.get(`/admin/api/resources/organization-invitations/${invited[0].id}`)).body.removable).toBe(false);
  });

  test('without a login page the start says so', async () => {
    await expect(startAuthApp(await database.open(), { modules: [admin({ site: files.url })] })).rejects.toThrow(/E034/);
  });

  test('the start has no warnings', () => {
    expect(here.app.warnings).toEqual([]);
  });
});
