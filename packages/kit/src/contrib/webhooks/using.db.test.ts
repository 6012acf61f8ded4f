import { afterAll, beforeAll, expect, test } from 'vitest';
import { prepareAccountsAndKeys, startKeyApp, type KeyApp } from '../../../test/key-app.ts';
import { LOOPBACK, migrateWebhooks } from '../../../test/webhooks/outbox.ts';
import { startReceiver, type Receiver } from '../../../test/webhooks/receiver.ts';
import type { User } from '../../auth/index.ts';
import { openDatabase, type Database } from '../../db/index.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { createSqliteDatabase, type DatabasePlace } from '../../testing/test-database.ts';
import { WebhookEndpointController } from './controller.ts';
import { deliverDue } from './delivery/deliver.ts';
import { deliverEvent } from './delivery/deliver-event.ts';
import { webhooks } from './module.ts';
import { publish } from './publishing/publish.ts';

class ShopHooks extends WebhookEndpointController {
  static override readonly using: string = 'shop';
}

describeDatabases('webhooks in another database than the users', (database) => {
  const clock = fakeClock('2030-01-01T00:00:00.000Z');
  let place: DatabasePlace;
  let shop: Database;
  let receiver: Receiver;
  let kit: KeyApp;
  let ada: User;
  beforeAll(async () => {
    await prepareAccountsAndKeys(database.db);
    await migrateWebhooks(database.db);
    place = await createSqliteDatabase();
    shop = await openDatabase(place.url, { name: 'shop', clock });
    await migrateWebhooks(shop);
    receiver = await startReceiver();
    kit = await startKeyApp(database.db, {
      clock,
      modules: [webhooks({ databases: ['default', 'shop'], urlPolicy: LOOPBACK })],
      app: {
        database: { default: database.db, shop },
        mount: { '/v2': { '/hooks': WebhookEndpointController, '/shop': ShopHooks } },
      },
    });
    ada = await kit.user('ada');
  });
  afterAll(async () => {
    await kit.app.close();
    await shop.close();
    await receiver.close();
    await place.remove();
  });
  const call = (method: string, path: string, payload?: object) => kit.call(method, `/v2${path}`, { 'x-act-as': 'ada' }, payload);

  test('the controller’s `using` names the database that every route works in', async () => {
    const { status, body } = await call('POST', '/shop', { url: receiver.url('/shop'), events: ['*'] });
    expect(status).toBe(201);
    expect((await call('GET', '/shop')).body.items).toMatchObject([{ id: body.id }]);
    expect((await call('GET', '/hooks')).body).toMatchObject({ items: [], count: 0 });
    expect((await call('GET', `/hooks/${body.id}`)).status).toBe(404);
    expect((await call('PATCH', `/shop/${body.id}`, { description: 'of the shop' })).body).toMatchObject({ description: 'of the shop' });
    expect((await call('POST', `/shop/${body.id}/rotate-secret`)).status).toBe(200);
    expect((await call('POST', `/shop/${body.id}/ping`)).status).toBe(202);
    await deliverDue(database.db);
    expect(receiver.of('/shop')).toEqual([]);
    await deliverDue(shop);
    expect(receiver.of('/shop')).toHaveLength(1);
    const { items } = (await call('GET', `/shop/${body.id}/deliveries`)).body;
    expect(items).toMatchObject([{ event_type: 'webhook.ping', status: 'succeeded' }]);
    expect((await call('POST', `/shop/${body.id}/deliveries/${items[0].id}/retry`, { force: true })).status).toBe(200);
    expect((await call('DELETE', `/shop/${body.id}`)).status).toBe(204);
  });

  test('an event belongs to the database of its transaction, and its task is told which', async () => {
    await call('POST', '/shop', { url: receiver.url('/task'), events: ['*'] });
    const owner = ada.id;
    const told: string[] = [];
    const task = async (id: string, using: string) => {
      told.push(using);
      await deliverEvent(id, using);
    };
    const published = await shop.transaction((tx) => publish(tx, 'order.paid', {}, { owner, using: 'shop', task }));
    expect(published.deliveries).toBe(1);
    await expect.poll(() => receiver.of('/task').length).toBe(1);
    expect(told).toEqual(['shop']);
    const wrong = database.db.transaction((tx) => publish(tx, 'order.paid', {}, { owner, using: 'shop' }));
    await expect(wrong).rejects.toMatchObject({ code: 'wrong_database' });
  });
});
