import { expect, describe, test } from 'vitest';
import { byName, CustomerController, ItemController, OrderController, shop as shopModule, startShop } from '../../test/crud/shop.ts';
import { RawConnection } from '../../test/raw-http.ts';
import type { Authenticator } from '../auth/request/authenticator.ts';
import { coreErrors } from '../errors/core-errors.ts';
import { deprecation } from '../middleware/index.ts';
import { testApp } from '../testing/test-app.ts';

describe('lists beside other parts of a request', () => {
  test('18: Link has the pages beside the deprecation of the version', async () => {
    const old = await startShop({
      middleware: [deprecation()],
      mount: {
        '/v1': {
          controllers: { '/orders': OrderController, '/customers': CustomerController, '/items': ItemController },
          deprecated: { since: '2026-01-01', link: 'https://example.org/v2' },
        },
      },
    });
    try {
      for (let made = 0; made < 3; made += 1) await old.call('ann', 'POST', 'orders', { item: 'x', quantity: 1, total: '1.00' });
      const { headers, body } = await old.call('ann', 'GET', 'orders?limit=2');
      expect(headers['link']).toContain(`<${body.next}>; rel="next"`);
      expect(headers['link']).toContain('<https://example.org/v2>; rel="deprecation"');
    } finally {
      await old.close();
    }
  });

  test.each(['item__contains=>;rel="prev"', 'item__contains=<a>,<b>', 'item__contains=\\^`{|}', 'item__contains=a#&item__contains=b'])(
    '18: Link and next are references that lead to the next page, whatever characters a client sent: %s',
    async (filter) => {
      await using shop = await startShop();
      const item = '>;rel="prev" <a>,<b> \\^`{|}';
      for (let made = 0; made < 3; made += 1) await shop.call('ann', 'POST', 'orders', { item, quantity: 1, total: '1.00' });
      const address = await shop.app.listen({ port: 0 });
      await using connection = await RawConnection.open(address);
      connection.send(`GET /v1/orders?limit=2&${filter} HTTP/1.1\r\nhost: localhost\r\nx-user: ann\r\n\r\n`);
      const { status, headers, body } = await connection.answer();
      expect(status).toBe(200);
      const { next } = JSON.parse(body) as { next: string };
      expect(headers['link']?.match(/^<([^<>]*)>; rel="first", <([^<>]*)>; rel="next"$/)?.[2]).toBe(next);
      const second = await shop.call('ann', 'GET', `orders${next}`);
      expect([second.status, second.body.items.length, second.body.next]).toEqual([200, 1, null]);
    },
  );

  test('`next` as it is, sent as the cursor, leads to the next page', async () => {
    await using shop = await startShop();
    for (let made = 0; made < 3; made += 1) await shop.call('ann', 'POST', 'orders', { item: 'x', quantity: 1, total: '1.00' });
    const { body: first } = await shop.call('ann', 'GET', 'orders?limit=1');
    const second = await shop.call('ann', 'GET', `orders?limit=1&cursor=${encodeURIComponent(first.next)}`);
    expect([second.status, second.body.items]).toEqual([200, (await shop.call('ann', 'GET', `orders${first.next}`)).body.items]);
    const wrong = await shop.call('ann', 'GET', `orders?cursor=${encodeURIComponent('?limit=1')}`);
    expect([wrong.status, wrong.body.code]).toEqual([422, 'invalid_cursor']);
  });

  test('28: QUERY with a cookie needs no CSRF proof; its POST alias does', async () => {
    const cookie: Authenticator = {
      name: 'cookie',
      securityScheme: { type: 'apiKey', in: 'cookie', name: 'session' },
      authenticate: (request) => byName.authenticate({ ...request, headers: { 'x-user': request.headers['cookie'] } }),
      verifyCsrf() {
        throw coreErrors.permission_denied({ detail: 'no proof' });
      },
    };
    await using site = await testApp({
      authenticators: [cookie],
      tenant: () => 'north',
      mount: { '/v1': { '/orders': OrderController, '/customers': CustomerController, '/items': ItemController } },
      modules: [shopModule],
    });
    const ask = async (method: string, url: string) =>
      (await site.inject({ method: method as 'POST', url, headers: { cookie: 'ann' }, payload: { where: { status: 'open' } } })).statusCode;
    expect([await ask('QUERY', '/v1/orders'), await ask('POST', '/v1/orders/query')]).toEqual([200, 403]);
  });
});
