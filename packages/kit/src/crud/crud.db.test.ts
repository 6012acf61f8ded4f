import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startShop, type ShopApp } from '../../test/crud/shop.ts';
import { describeDatabases } from '../testing/databases.ts';

describeDatabases('generic operations', (database) => {
  let shop: ShopApp;
  beforeAll(async () => {
    shop = await startShop({ database: database.db });
  });
  afterAll(() => shop.close());

  describe('one row', () => {
    test('42: POST answers 201, Location leads to the row, its ETag and body equal those of GET', async () => {
      // The address of the request is what a client resolves against, also when it ends with a slash or has parameters.
      for (const address of ['/v1/orders', '/v1/orders/', '/v1/orders?expand=items', '/v1/orders/?expand=items']) {
        const made = await shop.call('ann', 'POST', address, { item: 'lamp', quantity: 2, total: '20.00' });
        expect([made.status, made.body.code ?? null]).toEqual([201, null]);
        const { pathname } = new URL(String(made.headers['location']), `http://x${address}`);
        expect(pathname).toBe(`/v1/orders/${made.body.id}`);
        const got = await shop.call('ann', 'GET', `${pathname}${new URL(address, 'http://x').search}`);
        expect(got.status).toBe(200);
        expect(got.body).toEqual(made.body);
        expect(got.headers['etag']).toBe(made.headers['etag']);
      }
    });
  });
});
