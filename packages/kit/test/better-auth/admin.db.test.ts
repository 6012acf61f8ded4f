import { afterAll, beforeAll, expect, test } from 'vitest';
import { admin } from '../../src/admin/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { siteFolder } from '../admin/admin-app.ts';
import { type AuthApp, Browser, makeAdmin, member, ORIGIN, startAuthApp } from './auth-app.ts';

const files = siteFolder();
afterAll(() => files.remove());

describeDatabases('the admin site with better-auth as its login', (database) => {
  let here: AuthApp;
  let staff: Browser;
  beforeAll(async () => {
    here = await startAuthApp(database.db, { modules: [admin({ site: files.url })], module: { loginUrl: '/login', accountUrl: '/me' } });
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

  test('without a login page the start says so', async () => {
    await expect(startAuthApp(await database.open(), { modules: [admin({ site: files.url })] })).rejects.toThrow(/E034/);
  });

  test('the start has no warnings', () => {
    expect(here.app.warnings).toEqual([]);
  });
});
