import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../../../test/admin/admin-app.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { accountsGroups, addGroupMember, createGroup, deleteGroup, removeGroupMember, renameGroup, requireGroup } from './groups.ts';

describeDatabases('groups', (database) => {
  let site: AdminApp;
  let staff: Browser;
  const db = () => database.db;
  beforeAll(async () => {
    site = await new AdminApp(database.db).ready();
    staff = await site.browser({ username: 'operator', is_staff: true });
  });
  afterAll(() => site.close());

  test('a name is taken once per tenant, also by many at once', async () => {
    const made = await Promise.allSettled(Array.from({ length: 8 }, () => createGroup(db(), { name: 'racers', tenantKey: null })));
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const refused = made.flatMap((each) => (each.status === 'rejected' ? [(each.reason as { code: string }).code] : []));
    expect(refused).toEqual(Array.from({ length: 7 }, () => 'group_name_taken'));
    await createGroup(db(), { name: 'racers', tenantKey: 'north' });
    expect((await requireGroup(db(), 'racers', 'north')).tenant_key).toBe('north');
    expect((await requireGroup(db(), ' racers ')).tenant_key).toBe('');
    const other = await createGroup(db(), { name: 'walkers', tenantKey: null });
    await expect(renameGroup(db(), other.id, 'racers')).rejects.toMatchObject({ code: 'group_name_taken' });
    for (const name of ['', ' ', 'x'.repeat(151), 'a\nb', 'admins\u202e', 'ad\u200bmins'])
      await expect(createGroup(db(), { name, tenantKey: null })).rejects.toMatchObject({ code: 'invalid_group', status: 422 });
  });

  test('a group counts in its own tenant, a group of no tenant in all of them', async () => {
    const user = await site.newUser({ username: 'member' });
    const [all, north, south] = [
      await createGroup(db(), { name: 'all', tenantKey: null }),
      await createGroup(db(), { name: 'team', tenantKey: 'north' }),
      await createGroup(db(), { name: 'team', tenantKey: 'south' }),
    ];
    for (const { id } of [all, north, south]) expect(await addGroupMember(db(), id, user.id)).toBe(true);
    expect(await addGroupMember(db(), all.id, user.id)).toBe(false);
    expect(await accountsGroups.groupsOf(db(), user.id, 'north')).toEqual([all.id, north.id]);
    expect(await accountsGroups.groupsOf(db(), user.id, 'elsewhere')).toEqual([all.id]);
    expect(await accountsGroups.groupsOf(db(), user.id, null)).toEqual([all.id]);
    expect(await accountsGroups.allGroupsOf?.(db(), user.id)).toEqual([all.id, north.id, south.id]);
    expect(await accountsGroups.groupsOf(db(), 'not-a-uuid', null)).toEqual([]);
    expect(await accountsGroups.findByName(db(), 'team', 'south')).toEqual({ id: south.id, name: 'team', tenantKey: 'south' });
    expect(await removeGroupMember(db(), north.id, user.id)).toBe(true);
    expect(await accountsGroups.groupsOf(db(), user.id, 'north')).toEqual([all.id]);
    await deleteGroup(db(), all.id);
    expect(await accountsGroups.allGroupsOf?.(db(), user.id)).toEqual([south.id]);
    await expect(addGroupMember(db(), all.id, user.id)).rejects.toMatchObject({ code: 'group_not_found', status: 404 });
    await expect(addGroupMember(db(), south.id, all.id)).rejects.toMatchObject({ code: 'user_not_found', status: 404 });
  });

  test('the admin site makes, renames and deletes groups, and adds and removes members', async () => {
    const made = await site.send(staff, 'POST', 'resources/groups', { name: 'Desk', tenant_key: null });
    expect(made.status).toBe(201);
    const { id } = made.body;
    expect((await site.send(staff, 'POST', 'resources/groups', { name: 'Desk' })).body.errors).toMatchObject([
      { location: ['body', 'name'], code: 'group_name_taken' },
    ]);
    await site.newUser({ username: 'desk-clerk' });
    const added = await site.send(staff, 'POST', 'resources/groups/actions/add-member', { ids: [id], fields: { user: 'desk-clerk' } });
    expect(added.body.message).toBe('desk-clerk is a member now.');
    const unknown = await site.send(staff, 'POST', 'resources/groups/actions/add-member', { ids: [id], fields: { user: 'nobody' } });
    expect([unknown.status, unknown.body.errors?.[0]?.code]).toEqual([422, 'user_not_found']);
    const record = (await site.get(staff, `resources/groups/${id}`)).body;
    expect(record.sections[1].rows.map(({ title }: { title: string }) => title)).toEqual(['desk-clerk']);
    const user = (await site.get(staff, `resources/users?search=desk-clerk`)).body.items[0];
    const shown = (await site.get(staff, `resources/users/${user.id}`)).body.sections;
    expect(shown.find(({ title }: { title: string }) => title === 'Groups').rows).toMatchObject([{ title: 'Desk' }]);
    await site.send(staff, 'POST', 'resources/groups/actions/remove-member', { ids: [id], fields: { user: 'desk-clerk' } });
    expect((await site.get(staff, `resources/groups/${id}`)).body.sections[1].rows).toEqual([]);
    expect((await site.send(staff, 'PATCH', `resources/groups/${id}`, { name: 'Front desk' })).body.message).toBe('Front desk saved.');
    expect((await site.send(staff, 'DELETE', `resources/groups/${id}`)).status).toBe(200);
    expect((await site.get(staff, `resources/groups/${id}`)).status).toBe(404);
  });
});
