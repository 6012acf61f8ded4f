import { AccountController, accounts, accountsOf, createUser } from 'kit/contrib/accounts';
import { ApiKeyController, apiKeys, createApiKey } from 'kit/contrib/apikeys';
import { WebhookEndpointController, webhooks } from 'kit/contrib/webhooks';
import { describeDatabases, testApp, type TestApp } from 'kit/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { liveSettings } from '../settings.ts';
import { OrderController } from './controller.ts';
import { orders } from './module.ts';

describeDatabases('orders', (database) => {
  let test_: TestApp;
  const keys = new Map<string, string>();

  beforeAll(async () => {
    test_ = await testApp({
      database: database.db,
      modules: [accounts(), apiKeys(), webhooks(), orders()],
      services: [liveSettings],
      mount: {
        '/v1': {
          '/orders': OrderController,
          '/api-keys': ApiKeyController,
          '/webhooks': WebhookEndpointController,
          '/account': AccountController,
        },
      },
    });
    const { app } = test_;
    const management = accountsOf(app.db).management(null);
    for (const [name, scopes] of [
      ['ada', ['orders:*']],
      ['bob', ['orders:*']],
      ['reader', ['orders:read']],
    ] as const) {
      const user = await createUser(app.db, { username: name }, management);
      keys.set(name, (await createApiKey(app.db, { user, name, scopes })).raw);
    }
  });
  afterAll(() => test_.close());

  const call = async (who: string, method: 'GET' | 'POST', path: string, body?: object) => {
    const response = await test_.inject({
      method,
      url: `/v1/orders${path}`,
      headers: { 'x-api-key': keys.get(who) ?? '' },
      ...(body === undefined ? {} : { payload: body }),
    });
    return { status: response.statusCode, body: response.json<Record<string, unknown>>() };
  };
  const place = async (who: string, quantity = 3) => (await call(who, 'POST', '', { item: 'Filter paper', quantity })).body['id'] as string;

  test('an order is priced exactly by the settings', async () => {
    const { status, body } = await call('ada', 'POST', '', { item: 'Filter paper', quantity: 3 });
    expect(status).toBe(201);
    expect(body).toMatchObject({ item: 'Filter paper', quantity: 3, total: '37.50', currency: 'EUR', status: 'open' });
  });

  test('a quantity above the limit is refused with the limit, and nothing is written', async () => {
    const before = (await call('ada', 'GET', '')).body['count'];
    expect(await call('ada', 'POST', '', { item: 'Beans', quantity: 101 })).toMatchObject({
      status: 422,
      body: { code: 'quantity_too_large', quantity_max: 100 },
    });
    expect((await call('ada', 'GET', '')).body['count']).toBe(before);
  });

  test("another user's order does not exist", async () => {
    const id = await place('ada');
    expect(await call('bob', 'GET', `/${id}`)).toMatchObject({ status: 404, body: { code: 'not_found' } });
    expect(await call('bob', 'POST', `/${id}/pay`)).toMatchObject({ status: 404, body: { code: 'not_found' } });
    expect((await call('ada', 'GET', `/${id}`)).body['status']).toBe('open');
  });

  test('of ten payments at once exactly one is taken', async () => {
    const id = await place('ada');
    const answers = await Promise.all(Array.from({ length: 10 }, () => call('ada', 'POST', `/${id}/pay`)));
    expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, ...Array.from({ length: 9 }, () => 409)]);
    expect(await call('ada', 'POST', `/${id}/cancel`)).toMatchObject({
      status: 409,
      body: { code: 'invalid_transition', detail: 'The order is paid; only an open order can be cancelled.' },
    });
  });

  test('every change of an order is published in its transaction, a refused one is not', async () => {
    const id = await place('ada');
    await call('ada', 'POST', `/${id}/pay`);
    await call('ada', 'POST', `/${id}/cancel`);
    const events = await database.db.query<{ type: string }>('select type from webhook_events where ordering_key = $1 order by id', [id]);
    expect(events.map(({ type }) => type)).toEqual(['order.created', 'order.paid']);
  });

  test('a key without the scope reads and cannot write', async () => {
    expect((await call('reader', 'GET', '')).status).toBe(200);
    expect(await call('reader', 'POST', '', { item: 'Beans', quantity: 1 })).toMatchObject({
      status: 403,
      body: { code: 'insufficient_scope', required_scope: 'orders:write' },
    });
  });
});
