import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { User } from '../../../auth/index.ts';
import { prepareAccountsAndKeys, startKeyApp, type KeyApp } from '../../../../test/key-app.ts';
import { LOOPBACK, migrateWebhooks } from '../../../../test/webhooks/outbox.ts';
import { startReceiver, type Receiver } from '../../../../test/webhooks/receiver.ts';
import { countQueries } from '../../../db/engine/query-observer.ts';
import { responseCache } from '../../../middleware/index.ts';
import { describeDatabases, fakeClock } from '../../../testing/index.ts';
import { publish, WebhookEndpointController, webhooks } from '../index.ts';
import { deliverDue } from './deliver.ts';

const clock = fakeClock('2030-01-01T00:00:00.000Z');
const mount = { '/v2': { '/hooks': WebhookEndpointController } };

describeDatabases(
  'cached responses about deliveries',
  (database) => {
    let kit: KeyApp;
    let receiver: Receiver;
    let user: User;
    let id: string;
    beforeAll(async () => {
      receiver = await startReceiver();
      kit = await startKeyApp(database.db, {
        clock,
        modules: [webhooks({ jitter: false, urlPolicy: LOOPBACK })],
        app: { mount, middleware: [responseCache({ routes: () => true, maxAgeMs: 600_000 })] },
      });
      user = await kit.user('listener');
      ({ id } = (await call('POST', '/hooks', { url: receiver.url('/listener'), events: ['*'] })).body);
    });
    afterAll(async () => {
      await kit.app.close();
      await receiver.close();
    });
    const call = (method: string, path: string, payload?: unknown) =>
      kit.call(method, `/v2${path}`, { 'x-act-as': user.username }, payload);
    const states = async (): Promise<string[]> =>
      (await call('GET', `/hooks/${id}/deliveries`)).body.items.map(({ status }: { status: string }) => status);
    const send = () => database.db.transaction((tx) => publish(tx, 'order.paid', {}, { owner: user.id }));
    /** On PostgreSQL the notification of the commit arrives a moment later. */
    const eventually = (expected: readonly string[]) => vi.waitFor(async () => expect(await states()).toEqual(expected), 5_000);

    test('are dropped when a delivery is published and when a worker has stored its result, and kept otherwise', async () => {
      expect(await states()).toEqual([]);
      await send();
      await eventually(['pending']);
      const isCached = async () => (await countQueries(() => states())).queries.every(({ sql }) => !sql.includes('webhook_deliveries'));
      await vi.waitFor(async () => expect(await isCached()).toBe(true), 5_000);
      await deliverDue(database.db);
      await eventually(['succeeded']);
      receiver.answer('/listener', (_request, response) => void response.writeHead(500).end());
      await send();
      await deliverDue(database.db);
      await eventually(['pending', 'succeeded']);
      // The failure of a delivery is the failure of its endpoint.
      await vi.waitFor(async () => expect((await call('GET', `/hooks/${id}`)).body.consecutive_failures).toBe(1), 5_000);
    });
  },
  {
    database: { clock },
    template: 'announced_results',
    async prepare(db) {
      await prepareAccountsAndKeys(db);
      await migrateWebhooks(db);
    },
  },
);
