import { betterAuth as createAuth } from 'better-auth';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { admin } from '../../src/admin/index.ts';
import { betterAuth } from '../../src/contrib/better-auth/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';
import { siteFolder } from '../admin/admin-app.ts';
import { instanceOptions, WhoController } from './auth-app.ts';

// The example of docs/reference/testing.md, with organizations of better-auth.

const files = siteFolder();
afterAll(() => files.remove());

describeDatabases('as(user) with organizations of better-auth', (database) => {
  let here: TestApp;
  let adaId: string;
  let bobId: string;
  beforeAll(async () => {
    const auth = createAuth(instanceOptions(database.db));
    here = await testApp({
      database: database.db,
      modules: [betterAuth(auth, { loginUrl: '/login' }), admin({ site: files.url })],
      mount: { '/v1': { '/who': WhoController } },
    });
    const signUp = async (name: string) =>
      (await auth.api.signUpEmail({ body: { name, email: `${name}@example.com`, password: 'correct horse battery' } })).user.id;
    [adaId, bobId] = [await signUp('ada'), await signUp('bob')];
    await auth.api.createOrganization({ body: { name: 'North', slug: 'north', userId: adaId } });
  });
  afterAll(() => here.close());

  test('the membership of the user is read from better-auth', async () => {
    const ada = here.as({ id: adaId }, { tenant: 'north' });
    expect((await ada.get('/v1/who')).json()).toMatchObject({ scheme: 'test', roles: ['owner'] });
    expect((await ada.get('/v1/who/admins')).statusCode).toBe(200);
    const bob = here.as({ id: bobId }, { tenant: 'north' });
    expect((await bob.get('/v1/who/admins')).json()).toMatchObject({ code: 'not_a_member' });
  });

  test('a staff user of a test uses the admin site; others do not', async () => {
    const staff = here.as({ id: adaId, is_staff: true, is_superuser: true });
    expect((await staff.get('/admin/api/session')).statusCode).toBe(200);
    expect((await here.as({ id: bobId }).get('/admin/api/session')).json()).toMatchObject({ code: 'staff_only' });
  });
});
