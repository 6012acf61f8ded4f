import { expect, test } from 'vitest';
import { z } from 'zod';
import { audit, AuditController } from '../src/contrib/audit/index.ts';
import { verifyChain } from '../src/contrib/audit/chain/verify-chain.ts';
import { allowAny, Controller, route, type Module, type Principal } from '../src/index.ts';
import { describeDatabases, testApp } from '../src/testing/index.ts';

const principal: Principal = {
  user: { id: 'u1', username: 'ada', email: null, is_active: true, is_staff: true, is_superuser: false },
  scheme: 'test',
  scopes: ['*'],
  credentialId: 'c1',
};

class Orders extends Controller {
  ship = route.post(
    '/:id/ship',
    { params: z.object({ id: z.string() }), body: z.object({ fail: z.boolean() }), permission: allowAny, status: 204 },
    async ({ db, params, body, audit: sink }) => {
      await db.transaction(async (tx) => {
        const entry = { action: 'order.shipped', target_type: 'order', target_id: params.id };
        await sink.record(tx, [entry, { ...entry, action: 'order.invoiced', actor: 'billing', request_id: 'other' }]);
        if (body.fail) throw new Error('after the entry');
      });
    },
  );
}

describeDatabases('the audit sink of a handler', (database) => {
  const start = (modules: readonly Module[]) =>
    testApp({
      database: database.db,
      modules,
      authenticators: [
        { name: 'test', challenge: 'Test', securityScheme: { type: 'http', scheme: 'test' }, authenticate: () => principal },
      ],
      mount: { '/v1': { '/orders': Orders, ...(modules.length === 0 ? {} : { '/audit': AuditController }) } },
    });
  const ship = (fail: boolean) => ({
    method: 'POST' as const,
    url: '/v1/orders/o1/ship',
    payload: { fail },
    headers: { 'x-request-id': 'r1' },
  });

  test('fills in who and which request, unless the entry says so itself, and rolls back with the change', async () => {
    await using app = await start([audit()]);
    expect((await app.inject(ship(false))).statusCode).toBe(204);
    expect((await app.inject(ship(true))).statusCode).toBe(500);
    const { items, count } = (await app.inject('/v1/audit?target_type=order')).json();
    expect(count).toBe(2);
    const byAction = Object.fromEntries(items.map((item: { action: string }) => [item.action, item]));
    expect(byAction).toMatchObject({
      'order.shipped': { actor_id: 'u1', actor_name: 'ada', actor_scheme: 'test', credential_id: 'c1' },
      'order.invoiced': { actor_id: null, actor_name: 'billing', request_id: 'other' },
    });
    expect(byAction['order.shipped'].request_id).toMatch(/./);
    expect(await verifyChain(database.db)).toMatchObject({ ok: true });
  });

  test('without the audit module the change fails, and the log says what to do', async () => {
    await using app = await start([]);
    expect((await app.inject(ship(false))).statusCode).toBe(500);
    expect(JSON.stringify(app.records)).toContain('No module records audit entries: add audit() to the modules of createApp.');
  });
});
