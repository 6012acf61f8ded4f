import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { LOOPBACK, migrateWebhooks } from '../../../test/webhooks/outbox.ts';
import { startReceiver, type Receiver } from '../../../test/webhooks/receiver.ts';
import { describeDatabases, testApp } from '../../testing/index.ts';
import { createEndpoint } from './endpoints/create-endpoint.ts';
import { generateFernetKey } from '../../db/sealing/fernet.ts';
import { webhooks } from './module.ts';
import { readWebhookOptions } from './options.ts';
import { findEndpoint } from './endpoints/store.ts';

describeDatabases(
  'the module',
  (database) => {
    let receiver: Receiver | undefined;
    beforeAll(async () => {
      receiver = await startReceiver();
    });
    afterAll(() => receiver?.close());

    test('fills the event registry, keeps secrets encrypted and delivers with a worker in the process', async () => {
      const key = generateFernetKey();
      await using test = await testApp({
        database: database.db,
        modules: [webhooks({ worker: true, urlPolicy: LOOPBACK, strictSecrets: true })],
        settings: { webhookSecretKeys: ` ${key}, ` },
        mount: {},
      });
      const url = receiver?.url('/module') ?? '';
      const { endpoint, secret } = await database.db.transaction((tx) => createEndpoint(tx, { owner: 'ann', url, events: ['order.*'] }));
      expect((await findEndpoint(database.db, endpoint.id))?.secret).toMatch(/^fernet:/);
      expect(endpoint.secret).not.toContain(secret);
      await test.app.start();
      await database.db.transaction(async (tx) => {
        await test.app.registry.events?.publish(tx, [{ type: 'order.paid', data: { n: 1 }, owner: 'ann' }]);
      });
      await vi.waitUntil(() => receiver?.of('/module').length === 1, { timeout: 300_000 });
      expect(JSON.stringify(test.records)).not.toContain(secret);
    });

    test('an event of the registry that cannot be stored fails its transaction, and nothing is saved', async () => {
      await using test = await testApp({ database: database.db, modules: [webhooks({ urlPolicy: LOOPBACK })], mount: {} });
      const { db } = database;
      if (db.dialect === 'postgres') {
        await db.query(
          `create function refuse_event() returns trigger language plpgsql as $$ begin raise exception 'no more events'; end $$`,
        );
        await db.query('create trigger refuse before insert on webhook_events for each row execute function refuse_event()');
      } else await db.query(`create trigger refuse before insert on webhook_events begin select raise(abort, 'no more events'); end`);
      const publishing = db.transaction(async (tx) => {
        await createEndpoint(tx, { owner: 'eve', url: 'http://127.0.0.1:9/eve', events: ['order.*'] });
        await test.app.registry.events?.publish(tx, [{ type: 'order.paid', data: { n: 2 }, owner: 'eve' }]);
      });
      await expect(publishing).rejects.toThrow('no more events');
      expect(await db.query('select id from webhook_endpoints where owner_id = $1', ['eve'])).toEqual([]);
      await db.query(db.dialect === 'postgres' ? 'drop trigger refuse on webhook_events' : 'drop trigger refuse');
    });

    test('a database that the app does not have is refused at start-up', async () => {
      const starting = testApp({ database: database.db, modules: [webhooks({ databases: ['reports'] })], mount: {} });
      await expect(starting).rejects.toThrow(/has tables in the database "reports", which the app does not have\. The app has default/);
    });
  },
  { prepare: async (db) => void (await migrateWebhooks(db)), template: 'webhooks' },
);

test('the defaults are the documented ones', () => {
  const hour = 3_600_000;
  expect(readWebhookOptions()).toMatchObject({
    concurrency: 100,
    concurrencyPerEndpoint: 10,
    timeoutMs: 15_000,
    schedule: [5, 300, 1800, 7200, 18_000, 36_000, 36_000],
    jitter: true,
    disableAfterMs: 120 * hour,
    rotationOverlapMs: 24 * hour,
    strictSecrets: false,
    payloadBytesMax: 256 * 1024,
    endpointsPerOwnerMax: 50,
    pollIntervalMs: 1000,
    worker: false,
    databases: ['default'],
  });
});

test('every fault of the options is reported at once', () => {
  const options = { concurency: 3, timeoutMs: 0, schedule: [-1], databases: [] };
  expect(() => webhooks(options as never)).toThrow(
    /unknown option "concurency". Did you mean "concurrency".*timeoutMs is 0.*schedule.*databases is empty/s,
  );
});
