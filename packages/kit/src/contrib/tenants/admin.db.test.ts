import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../../test/admin/admin-app.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { apiKeys, createApiKey } from '../apikeys/index.ts';
import { addMember, createTenant, inviteMember, tenants } from './index.ts';

describeDatabases('tenants in the admin site', (database) => {
  let site: AdminApp;
  let staff: Browser;

  beforeAll(async () => {
    site = await new AdminApp(database.db, [apiKeys(), tenants()]).ready();
    staff = await site.browser({ username: 'operator', is_staff: true });
  });
  afterAll(() => site.close());

  let count = 0;
  const fresh = (name: string) => `${name}${(count += 1)}`;
  const person = (name: string) => site.newUser({ username: fresh(name) });
  const listed = async (resource: string, query = '') => (await site.get(staff, `resources/${resource}?${query}`)).body;

  test('the list shows the state, the number of members, and the owners by name', async () => {
    const [ada, bob] = [await person('ada'), await person('bob')];
    const { id, slug } = await createTenant(site.app.db, { name: fresh('North'), owner: ada.id });
    await addMember(site.app.db, { tenant: id, user: bob.id, roles: ['member'] });
    const { items } = await listed('tenants', `search=${slug}`);
    expect(items).toHaveLength(1);
    expect(items[0].values).toMatchObject({ slug, members: 2, owners: [ada.username], condition: { value: 'active' } });
    expect((await site.act(staff, 'tenants', 'suspend', [id], { reason: 'not paid' })).status).toBe(200);
    expect((await listed('tenants', `search=${slug}`)).items[0].values.condition.value).toBe('suspended');
    expect((await site.act(staff, 'tenants', 'resume', [id])).status).toBe(200);
    expect((await listed('tenants', `search=${slug}`)).items[0].values.condition.value).toBe('active');
  });

  test('staff makes a tenant for an owner, renames it, deletes and restores it, each with an audit entry by staff', async () => {
    const ada = await person('ada');
    const name = fresh('South');
    const unknown = await site.send(staff, 'POST', 'resources/tenants', { name, slug: '', owner: 'nobody' });
    expect([unknown.status, unknown.body.errors[0].location]).toEqual([422, ['body', 'owner']]);
    const made = await site.send(staff, 'POST', 'resources/tenants', { name, slug: '', owner: ada.username });
    expect(made.status).toBe(201);
    const { id } = made.body;
    const taken = await site.send(staff, 'POST', 'resources/tenants', { name, slug: name.toLowerCase(), owner: ada.username });
    expect([taken.status, taken.body.errors[0].location]).toEqual([422, ['body', 'slug']]);
    const renamed = fresh('West');
    expect((await site.send(staff, 'PATCH', `resources/tenants/${id}`, { name: renamed })).status).toBe(200);
    expect((await site.send(staff, 'DELETE', `resources/tenants/${id}`)).status).toBeLessThan(300);
    expect((await listed('tenants', `search=${renamed}`)).items[0].values.condition.value).toBe('deleting');
    expect((await site.act(staff, 'tenants', 'undelete', [id])).status).toBe(200);
    const { items } = await listed('audit-log', `filter.tenant=${id}`);
    expect(items.map(({ values }: { values: { action: string } }) => values.action)).toEqual([
      'Tenant restored',
      'Tenant deletion started',
      'Tenant updated',
      'Member added',
      'Tenant created',
    ]);
  });

  test('the page of a tenant has its members, invitations and keys, and nothing of another', async () => {
    const [ada, eve] = [await person('ada'), await person('eve')];
    const north = await createTenant(site.app.db, { name: fresh('North'), owner: ada.id });
    const south = await createTenant(site.app.db, { name: fresh('South'), owner: eve.id });
    for (const [tenant, owner, mark] of [
      [north, ada, 'northern'],
      [south, eve, 'southern'],
    ] as const) {
      await inviteMember(site.app.db, { tenant: tenant.id, email: `${mark}@example.com`, roles: ['member'] });
      await createApiKey(site.app.db, { user: owner, name: `${mark} key`, scopes: [], tenant: tenant.id });
    }
    const page = JSON.stringify((await site.get(staff, `resources/tenants/${north.id}`)).body);
    for (const shown of [ada.username, 'northern@example.com', 'northern key']) expect(page).toContain(shown);
    for (const hidden of [eve.username, 'southern@example.com', 'southern key']) expect(page).not.toContain(hidden);
    const user = JSON.stringify((await site.get(staff, `resources/users/${ada.id}`)).body);
    expect(user).toContain(north.name);
  });

  test('staff adds a member, gives other roles and removes it; the last owner stays', async () => {
    const [ada, bob] = [await person('ada'), await person('bob')];
    const { id: tenant } = await createTenant(site.app.db, { name: fresh('North'), owner: ada.id });
    const add = { tenant, user: bob.username, roles: ['member'] };
    const made = await site.send(staff, 'POST', 'resources/tenant-members', add);
    expect(made.status).toBe(201);
    expect((await site.send(staff, 'POST', 'resources/tenant-members', add)).body.errors[0]).toMatchObject({ code: 'already_a_member' });
    const path = `resources/tenant-members/${made.body.id}`;
    // It is called what people call the user, not by its id.
    expect((await site.get(staff, path)).body.title).toBe(bob.username);
    expect((await site.send(staff, 'PATCH', path, { roles: ['admin'] })).body.message).toBe('Member saved.');
    expect((await site.send(staff, 'PATCH', path, { roles: ['king'] })).status).toBe(422);
    const { items } = await listed('tenant-members', `filter.tenant=${tenant}`);
    expect(items.map(({ title }: { title: string }) => title).toSorted()).toEqual([ada.username, bob.username].toSorted());
    expect(items.map(({ values }: { values: { roles: string[] } }) => values.roles)).toEqual(
      expect.arrayContaining([['owner'], ['admin']]),
    );
    const owner = items.find(({ values }: { values: { roles: string[] } }) => values.roles[0] === 'owner');
    expect((await site.send(staff, 'DELETE', `resources/tenant-members/${owner.id}`)).body.code).toBe('last_owner');
    expect((await site.send(staff, 'DELETE', path)).body.message).toBe('Member deleted.');
    expect((await listed('tenant-members', `filter.tenant=${tenant}`)).items).toHaveLength(1);
  });
});
