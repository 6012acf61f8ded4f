import { expect, test } from 'vitest';
import { Controller } from '../../http/compile/controller.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { route } from '../../http/declare/route.ts';
import { allowAny, hasRole } from '../../permissions/built-ins.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { testApp } from '../../testing/test-app.ts';
import { accounts } from '../accounts/module.ts';
import { accountsOf } from '../accounts/users/accounts.ts';
import { createUser } from '../accounts/users/manage-users.ts';
import { metrics } from './module.ts';

class Desk extends Controller {
  look = route.get('/', { permission: hasRole('member'), response: jsonSchema<object>({}) }, () => ({}));
}

describeDatabases('requests by tenant', (database) => {
  test('are counted for the busiest tenants; names that strangers send are no label', async () => {
    const app = await testApp({
      database: database.db,
      modules: [accounts(), metrics({ path: '/metrics', permission: allowAny, process: false, tenants: 1 })],
      tenant: ({ headers }) => headers['x-tenant']?.toString() ?? null,
      membership: ({ tenant }) => (tenant.startsWith('our-') ? { roles: ['member'] } : null),
      mount: { '/v1': { '/desk': Desk } },
    });
    const user = await createUser(app.app.db, { username: 'ada' }, accountsOf(app.app.db).management(null));
    const look = async (tenant: string) =>
      (await app.as(user).inject({ method: 'GET', url: '/v1/desk', headers: { 'x-tenant': tenant } })).statusCode;
    for (let index = 0; index < 5; index += 1) expect(await look('our-busy')).toBe(200);
    expect(await look('our-quiet')).toBe(200);
    expect(await look('no-such-tenant')).toBe(403);
    const { body } = await app.inject({ method: 'GET', url: '/metrics' });
    expect(body.split('\n').filter((line) => line.startsWith('kit_tenant_requests{'))).toEqual([
      'kit_tenant_requests{tenant="our-busy",status="2xx"} 5',
      'kit_tenant_requests{tenant="other",status="2xx"} 1',
    ]);
    expect(body).not.toContain('no-such-tenant');
    await app.close();
  });
});
