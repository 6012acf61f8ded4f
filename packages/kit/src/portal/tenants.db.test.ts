import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, PASSWORD, siteFolder } from '../../test/admin/admin-app.ts';
import { apiKeys, createApiKey } from '../contrib/apikeys/index.ts';
import { QuotaController, RequestController, requests, UsageController } from '../contrib/requests/index.ts';
import { requestLogs } from '../contrib/requests/log/log.ts';
import { describeDatabases } from '../testing/databases.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { portal } from './index.ts';

const members: Record<string, readonly string[]> = {};

describeDatabases('the portal in an app with tenants', (database) => {
  const clock = fakeClock('2030-01-15T10:00:00.000Z');
  const files = siteFolder();
  let app: AdminApp;
  let cookie: string;

  beforeAll(async () => {
    app = await new AdminApp(database.db, [apiKeys(), requests({ quotas: { key: '100/month' } }), portal({ site: files.url })], {
      clock,
      tenant: ({ headers }) => (typeof headers['x-team'] === 'string' ? headers['x-team'] : null),
      membership: ({ user, tenant }) => (members[user.id]?.includes(tenant) === true ? { roles: [] } : null),
      mount: { '/v1': { '/requests': RequestController, '/usage': UsageController, '/quotas': QuotaController } },
    }).ready();
    const user = await app.newUser();
    members[user.id] = ['north', 'south'];
    const answer = await app.call('POST', '/portal/api/login', {}, { login: user.username, password: PASSWORD });
    [cookie = ''] = String(answer.headers['set-cookie']).split(';', 1);
    for (const tenant of ['north', 'south']) {
      const { raw } = await createApiKey(database.db, { user, name: tenant, scopes: ['requests:read'] });
      expect((await app.call('GET', `/v1/requests?key_id=of-${tenant}`, { 'x-api-key': raw, 'x-team': tenant })).status).toBe(200);
    }
    await requestLogs.of(app.app.db).flush();
  });
  afterAll(async () => {
    await app.close();
    files.remove();
  });

  const list = (name: string, tenant: string) => app.call('GET', `/portal/api/resources/${name}`, { cookie, 'x-team': tenant });

  test.each(['requests', 'usage'])('twins: %s of one tenant are not those of the other, also for a member of both', async (name) => {
    const [north, south] = await Promise.all(['north', 'south'].map((tenant) => list(name, tenant)));
    const [[one], [other]] = [north!.body.items, south!.body.items];
    expect([north!.body.items, south!.body.items].map(({ length }) => length)).toEqual([1, 1]);
    expect(one.id).not.toBe(other.id);
    const read = (id: string, tenant: string) => app.call('GET', `/portal/api/resources/${name}/${id}`, { cookie, 'x-team': tenant });
    expect((await read(one.id, 'north')).status).toBe(200);
    expect((await read(other.id, 'north')).status).toBe(404);
  });

  test('a tenant that the person is no member of shows nothing', async () => {
    for (const name of ['requests', 'usage', 'quotas']) {
      const { status, body } = await list(name, 'elsewhere');
      expect([403, 404], `${name}: ${JSON.stringify(body)}`).toContain(status);
    }
  });
});
