import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { isAuthenticated } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { testApp, type TestApp } from '../../testing/test-app.ts';
import { Controller } from '../compile/controller.ts';
import { route } from '../declare/route.ts';

const Seen = z.strictObject({ n: z.int(), cart: z.string(), warehouse: z.string() });
let runs = 0;

class Checkouts extends Controller {
  create = route.post(
    '/',
    {
      permission: isAuthenticated,
      atomic: true,
      idempotent: true,
      headers: z.object({ 'X-Warehouse': z.string(), authorization: z.string(), 'user-agent': z.string().optional() }),
      cookies: z.object({ cart: z.string() }),
      response: Seen,
    },
    ({ cookies, headers }) => ({ n: (runs += 1), cart: cookies.cart, warehouse: headers['X-Warehouse'] }),
  );
}

describeDatabases('a request with an idempotency key, whose route declares headers and cookies', (database) => {
  let kit: TestApp;
  beforeAll(async () => {
    kit = await testApp({
      database: database.db,
      authenticators: [
        {
          name: 'test',
          securityScheme: { type: 'http', scheme: 'bearer' },
          authenticate: () => ({
            user: { id: 'ann', username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false },
            scheme: 'test',
            scopes: null,
          }),
        },
      ],
      mount: { '/v1': { '/checkouts': Checkouts } },
    });
  });
  afterAll(() => kit.close());

  let keys = 0;
  const sender = () => {
    const key = `key-${(keys += 1)}`;
    return async (headers: Record<string, string> = {}) => {
      const sent = { authorization: 'Bearer one', 'x-warehouse': 'north', cookie: 'session=1; cart=blue', 'idempotency-key': key };
      const response = await kit.inject({ method: 'POST', url: '/v1/checkouts', headers: { ...sent, ...headers } });
      const { code } = response.json<{ code?: string }>();
      return code ?? `${String(response.headers['idempotent-replayed'] ?? 'ran')} ${response.body}`;
    };
  };

  test('is not the same with another value of one of them', async () => {
    const send = sender();
    const first = await send();
    expect(first).toBe(`ran {"n":${runs},"cart":"blue","warehouse":"north"}`);
    expect(await send({ cookie: 'cart=red' })).toBe('idempotency_key_reused');
    expect(await send({ 'x-warehouse': 'south' })).toBe('idempotency_key_reused');
    expect(await send()).toBe(first.replace('ran', 'true'));
  });

  test('is the same with a new credential, another session, and another program', async () => {
    const send = sender();
    const first = await send();
    const headers = { authorization: 'Bearer two', cookie: 'cart=blue; session=2; theme=dark', 'user-agent': 'another', 'x-other': '1' };
    expect(await send(headers)).toBe(first.replace('ran', 'true'));
  });
});
