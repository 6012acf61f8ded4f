import { expect, test } from 'vitest';
import { accountsOf, deactivateUser, deleteUser } from '../accounts/index.ts';
import { describeTenantApp } from '../../../test/tenants/tenant-app.ts';
import { addMember, createTenant, removeMember } from './index.ts';
import { restoreTenant } from './manage/tenants.ts';

let count = 0;
const fresh = (name: string) => `${name}${(count += 1)}`;

describeTenantApp('members of a tenant', { ownedMax: 3 }, (app) => {
  const { call, person, tenantOf, join } = app;
  const management = () => accountsOf(app.kit.app.db).management(null);

  test('who creates a tenant is its owner, and sees it in the list of own tenants', async () => {
    const ada = await person(fresh('ada'));
    const { status, body } = await call(ada, 'POST', '/tenants', { name: 'Nördlicht & Co' });
    expect([status, body]).toEqual([
      201,
      expect.objectContaining({ slug: 'nordlicht-co', name: 'Nördlicht & Co', state: 'active', roles: ['owner'], deletes_at: null }),
    ]);
    expect((await call(ada, 'GET', '/tenants')).body.items).toEqual([expect.objectContaining({ id: body.id, roles: ['owner'] })]);
    const members = await call(ada, 'GET', `/tenants/${body.id}/members?expand=user`);
    expect(members.body.items).toEqual([
      expect.objectContaining({ user_id: ada.id, roles: ['owner'], user: expect.objectContaining({ name: ada.username }) }),
    ]);
  });

  test('a name without usable characters, and one that is taken, still give a slug', async () => {
    const ada = await person(fresh('ada'));
    const slugs = [];
    for (const name of ['北京', 'Twice', 'Twice']) slugs.push((await call(ada, 'POST', '/tenants', { name })).body.slug);
    expect(slugs).toEqual([expect.stringMatching(/^tenant-[0-9a-f]{4}$/), 'twice', expect.stringMatching(/^twice-[0-9a-f]{4}$/)]);
  });

  test.each([
    ['www', 422],
    ['Upper', 422],
    ['a--b', 422],
    ['01890000-0000-7000-8000-000000000000', 422],
    ['x'.repeat(41), 422],
    ['taken', 409],
  ])('the slug %s is rejected with %i', async (slug, status) => {
    const [ada, bob] = [await person(fresh('ada')), await person(fresh('bob'))];
    if (slug === 'taken') await call(bob, 'POST', '/tenants', { name: 'T', slug: 'taken' });
    expect((await call(ada, 'POST', '/tenants', { name: 'T', slug })).status).toBe(status);
  });

  test('of twenty concurrent creations a user gets as many tenants as one may own', async () => {
    const ada = await person(fresh('ada'));
    const made = await Promise.all(Array.from({ length: 20 }, (_, index) => call(ada, 'POST', '/tenants', { name: `Many ${index}` })));
    expect(made.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 201, 201, ...Array.from({ length: 17 }, () => 409)]);
    expect(made.find(({ status }) => status === 409)?.body).toMatchObject({ code: 'tenant_limit_reached', limit: 3 });
  });

  test('of two restorations at the limit one succeeds: a tenant that is being deleted counts again', async () => {
    const ada = await person(fresh('ada'));
    const owned: string[] = [];
    for (let index = 0; index < 3; index += 1) owned.push((await tenantOf(ada)).id);
    for (const id of owned.slice(0, 2)) expect((await call(ada, 'DELETE', `/tenants/${id}`)).status).toBe(204);
    await tenantOf(ada);
    const restored = await Promise.all(owned.slice(0, 2).map((id) => call(ada, 'POST', `/tenants/${id}/undelete`)));
    expect(restored.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409]);
    expect(restored.find(({ status }) => status === 409)?.body).toMatchObject({ code: 'tenant_limit_reached', limit: 3 });
    // Staff is not limited.
    for (const id of owned) await restoreTenant(app.kit.app.db, id, { by: 'a test' });
    expect((await call(ada, 'GET', '/tenants')).body.items.map(({ state }: { state: string }) => state)).toEqual(Array(4).fill('active'));
  });

  test('a tenant of others does not exist: every route returns the same 404 as for an id that nobody has', async () => {
    const [ada, eve] = [await person(fresh('ada')), await person(fresh('eve'))];
    const { id } = await tenantOf(ada);
    const nobodys = '01890000-0000-7000-8000-00000000dead';
    const bytes = async (tenant: string) => {
      const answers = [];
      for (const [method, path, body] of [
        ['GET', '', undefined],
        ['PATCH', '', { name: 'Mine' }],
        ['DELETE', '', undefined],
        ['POST', '/leave', undefined],
        ['POST', '/undelete', undefined],
        ['POST', '/transfer', { user_id: eve.id }],
        ['GET', '/members', undefined],
        ['GET', '/invitations', undefined],
        ['POST', '/invitations', { email: 'eve@example.com', roles: ['owner'] }],
      ] as const) {
        const { status, body: error } = await call(eve, method, `/tenants/${tenant}${path}`, body);
        answers.push([method, path, status, error?.code, error?.detail]);
      }
      return answers;
    };
    const answers = await bytes(id);
    expect(answers).toEqual(await bytes(nobodys));
    expect(answers.map(([, , status]) => status)).toEqual(Array.from({ length: 9 }, () => 404));
    expect((await call(eve, 'GET', '/tenants')).body.items).toEqual([]);
  });

  test('members read, managers change, owners decide about owners', async () => {
    const [ada, bob, cleo, dan] = [
      await person(fresh('ada')),
      await person(fresh('bob')),
      await person(fresh('cleo')),
      await person(fresh('dan')),
    ];
    const { id } = await tenantOf(ada);
    const admin = await join(ada, id, bob, ['admin']);
    const member = await join(ada, id, cleo, ['member']);
    const other = await join(bob, id, dan, ['member']);
    const owner = (await call(ada, 'GET', `/tenants/${id}/members?limit=100`)).body.items.find(
      (each: { user_id: string }) => each.user_id === ada.id,
    ).id;
    const patch = async (who: typeof ada, row: string, roles: string[]) =>
      (await call(who, 'PATCH', `/tenants/${id}/members/${row}`, { roles })).status;
    // A member changes nobody, not even itself.
    expect([await patch(cleo, member, ['admin']), await patch(cleo, other, ['member'])]).toEqual([403, 403]);
    expect((await call(cleo, 'GET', `/tenants/${id}/members`)).status).toBe(200);
    // An admin makes, changes and removes no owner.
    expect([await patch(bob, admin, ['owner']), await patch(bob, owner, ['member'])]).toEqual([403, 403]);
    expect((await call(bob, 'DELETE', `/tenants/${id}/members/${owner}`)).status).toBe(403);
    expect([await patch(bob, member, ['admin', 'member']), await patch(bob, admin, ['member'])]).toEqual([200, 200]);
    // The right is gone with the role.
    expect(await patch(bob, member, ['member'])).toBe(403);
    expect(await patch(ada, admin, ['owner'])).toBe(200);
    expect(await patch(ada, other, ['boss'])).toBe(422);
    expect(await patch(ada, other, [])).toBe(422);
    expect((await call(ada, 'DELETE', `/tenants/${id}/members/${other}`)).status).toBe(204);
    expect((await call(dan, 'GET', `/tenants/${id}`)).status).toBe(404);
  });

  test('the last owner can neither leave nor be demoted nor be removed, and a deactivated owner does not count', async () => {
    const [ada, bob] = [await person(fresh('ada')), await person(fresh('bob'))];
    const { id } = await tenantOf(ada);
    const row = (await call(ada, 'GET', `/tenants/${id}/members`)).body.items[0].id;
    const attempts = async () =>
      Promise.all([
        call(ada, 'POST', `/tenants/${id}/leave`),
        call(ada, 'PATCH', `/tenants/${id}/members/${row}`, { roles: ['member'] }),
        call(ada, 'DELETE', `/tenants/${id}/members/${row}`),
      ]);
    for (const { status, body } of await attempts()) expect([status, body.code]).toEqual([409, 'last_owner']);
    await join(ada, id, bob, ['owner']);
    await deactivateUser(app.kit.app.db, bob.id, management());
    for (const { status, body } of await attempts()) expect([status, body.code]).toEqual([409, 'last_owner']);
  });

  test('of two owners who leave concurrently, one stays', async () => {
    const [ada, bob] = [await person(fresh('ada')), await person(fresh('bob'))];
    for (let round = 0; round < 3; round += 1) {
      const { id } = await createTenant(app.kit.app.db, { name: `Race ${round}`, owner: ada.id });
      await addMember(app.kit.app.db, { tenant: id, user: bob.id, roles: ['owner'] });
      const left = await Promise.all([call(ada, 'POST', `/tenants/${id}/leave`), call(bob, 'POST', `/tenants/${id}/leave`)]);
      expect(left.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([204, 409]);
      await removeMember(app.kit.app.db, { tenant: id, user: left[0].status === 204 ? bob.id : ada.id }).catch(() => undefined);
    }
  });

  test('a transfer makes one owner, and the former owner keeps the role below', async () => {
    const [ada, bob, eve] = [await person(fresh('ada')), await person(fresh('bob')), await person(fresh('eve'))];
    const { id } = await tenantOf(ada);
    await join(ada, id, bob, ['member']);
    expect((await call(bob, 'POST', `/tenants/${id}/transfer`, { user_id: bob.id })).body.code).toBe('manager_required');
    expect((await call(ada, 'POST', `/tenants/${id}/transfer`, { user_id: eve.id })).body.code).toBe('member_not_found');
    expect((await call(ada, 'POST', `/tenants/${id}/transfer`, { user_id: bob.id })).status).toBe(200);
    const { items } = (await call(ada, 'GET', `/tenants/${id}/members?limit=100`)).body;
    const roles = Object.fromEntries(items.map((each: { user_id: string; roles: string[] }) => [each.user_id, each.roles]));
    expect(roles).toEqual({ [ada.id]: ['admin'], [bob.id]: ['owner', 'member'] });
  });

  test('a deleted tenant is closed for its grace, can be restored by an owner, and then is gone', async () => {
    const [ada, bob] = [await person(fresh('ada')), await person(fresh('bob'))];
    const { id } = await tenantOf(ada);
    await join(ada, id, bob, ['admin']);
    expect((await call(bob, 'DELETE', `/tenants/${id}`)).body.code).toBe('manager_required');
    expect((await call(ada, 'DELETE', `/tenants/${id}`)).status).toBe(204);
    expect((await call(ada, 'GET', `/tenants/${id}`)).body).toMatchObject({ state: 'deleting', deletes_at: '2030-01-31T00:00:00.000Z' });
    expect((await call(ada, 'PATCH', `/tenants/${id}`, { name: 'Alive' })).status).toBe(404);
    expect((await call(bob, 'POST', `/tenants/${id}/undelete`)).body.code).toBe('manager_required');
    expect((await call(ada, 'POST', `/tenants/${id}/undelete`)).body).toMatchObject({ state: 'active', deletes_at: null });
    expect((await call(ada, 'PATCH', `/tenants/${id}`, { name: 'Alive' })).body.name).toBe('Alive');
    expect(await app.events(id)).toEqual([
      'tenant.created',
      'member.added',
      'member.added',
      'tenant.deletion_started',
      'tenant.restored',
      'tenant.updated',
    ]);
  });

  test('a deleted user is in no tenant, and the endpoints that the user had there are deleted', async () => {
    const [ada, bob] = [await person(fresh('ada')), await person(fresh('bob'))];
    const { id } = await tenantOf(ada);
    await join(ada, id, bob, ['member']);
    await deleteUser(app.kit.app.db, bob.id, management());
    const { items } = (await call(ada, 'GET', `/tenants/${id}/members`)).body;
    expect(items.map((each: { user_id: string }) => each.user_id)).toEqual([ada.id]);
    expect(await app.events(id)).toEqual(['tenant.created', 'member.added', 'member.added', 'member.removed']);
  });

  test('every change is recorded with who made it, and published to the endpoints of the tenant', async () => {
    const [ada, bob] = [await person(fresh('ada')), await person(fresh('bob'))];
    const before = (await app.audited('tenant_member')).length;
    const { id } = await tenantOf(ada);
    const row = await join(ada, id, bob, ['member']);
    await call(ada, 'PATCH', `/tenants/${id}/members/${row}`, { roles: ['admin'] });
    await call(bob, 'POST', `/tenants/${id}/leave`);
    expect((await app.audited('tenant_member')).slice(before)).toEqual([
      'member.added',
      'member.added',
      'member.changed',
      'member.removed',
    ]);
    expect(await app.events(id)).toEqual(['tenant.created', 'member.added', 'member.added', 'member.changed', 'member.removed']);
  });
});
