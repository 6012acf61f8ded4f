import { afterAll, beforeAll, expect, test } from 'vitest';
import { destination, deliverDue, publish, webhooks, WebhookEndpointController } from '../../src/contrib/webhooks/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { fakeClock } from '../../src/testing/fake-clock.ts';
import { AdminApp, type Browser } from '../admin/admin-app.ts';

const clock = fakeClock();

describeDatabases(
  'destinations in the admin site',
  (database) => {
    const taken: string[] = [];
    const warehouse = destination({
      name: 'warehouse',
      async send({ id, type }) {
        if (type === 'order.lost') throw new Error('the broker is full');
        taken.push(id);
      },
    });
    let site: AdminApp;
    let staff: Browser;
    beforeAll(async () => {
      site = await new AdminApp(database.db, [webhooks({ destinations: [warehouse], schedule: [] })], {
        clock,
        mount: { '/v1': { '/webhooks': WebhookEndpointController } },
      }).ready();
      await site.app.start();
      staff = await site.browser();
    });
    afterAll(() => site.close());

    const send = async (type: string): Promise<string> => {
      const { id } = await database.db.transaction((tx) => publish(tx, type, {}, { owner: 'nobody' }));
      await deliverDue(database.db);
      return id;
    };

    test('a destination and its deliveries are in the lists, with what went wrong, and can be sent again', async () => {
      const [sent, lost] = [await send('order.paid'), await send('order.lost')];
      expect(taken).toEqual([sent]);
      const endpoints = await site.get(staff, 'resources/endpoints');
      expect(endpoints.status).toBe(200);
      expect(endpoints.text).toContain('warehouse');
      const deliveries = await site.get(staff, 'resources/deliveries?filter.status=failed');
      expect(deliveries.body.items).toHaveLength(1);
      const page = await site.get(staff, `resources/deliveries/${deliveries.body.items[0].id}`);
      expect(page.status).toBe(200);
      expect(page.text).toContain('the broker is full');
      expect((await site.get(staff, `resources/events/${lost}`)).status).toBe(200);
      expect((await site.get(staff, `resources/endpoints/${endpoints.body.items[0].id}`)).status).toBe(200);
      expect((await site.get(staff, 'overview?range=24h')).status).toBe(200);
    });
  },
  { database: { clock } },
);
