import { expect, test } from 'vitest';
import { addPerson, people, setEnabled } from '../../../../test/people.ts';
import { describeHookApp } from '../../../../test/webhooks/hook-app.ts';
import { LOOPBACK, migrateWebhooks } from '../../../../test/webhooks/outbox.ts';
import { startReceiver } from '../../../../test/webhooks/receiver.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { createApp } from '../../../app/assemble/create-app.ts';
import type { StartUpError } from '../../../app/check/start-up-error.ts';
import { activateUser, deactivateUser } from '../../accounts/index.ts';
import { apiKeys } from '../../apikeys/index.ts';
import { createEndpoint } from '../endpoints/create-endpoint.ts';
import { publish } from '../publishing/publish.ts';
import { webhooks } from '../module.ts';
import type { WebhookDelivery } from '../endpoints/store.ts';
import { unbindWebhooks, useWebhooks } from '../webhooks.ts';
import { deliverDue } from './deliver.ts';
import { recoverEndpoint } from '../maintain/recover.ts';

describeHookApp('endpoints of a deactivated user', { urlPolicy: LOOPBACK }, (hooks) => {
  test('receive nothing, of no audience, until the user is active again; recover sends the missed events', async () => {
    const { db, clock } = hooks;
    const receiver = await startReceiver();
    try {
      const [ada, bob] = [await hooks.person(), await hooks.person()];
      const add = (owner: string, path: string, tenantKey = '') =>
        db.transaction((tx) => createEndpoint(tx, { owner, tenantKey, url: receiver.url(path), events: ['*'] }));
      const { endpoint } = await add(ada.id, '/ada');
      await add(ada.id, '/ada-acme', 'acme');
      await add(bob.id, '/bob-acme', 'acme');
      // An owner that is not a user, with an id that users could have, and with one that they could not.
      await add('01890000-0000-7000-8000-00000000000a', '/team', 'acme');
      await add('team-7', '/team7', 'acme');
      const publishAll = () =>
        db.transaction(async (tx) => {
          await publish(tx, 'order.paid', { n: 1 }, { owner: ada.id });
          await publish(tx, 'order.paid', { n: 2 }, { tenantKey: 'acme' });
          await publish(tx, 'order.paid', { n: 3 }, { broadcast: true });
        });
      const received = () => ['/ada', '/ada-acme', '/bob-acme', '/team', '/team7'].map((path) => receiver.of(path).length);
      const since = clock.now();

      // What waits from before is not sent either.
      await publishAll();
      await deactivateUser(db, ada.id);
      await deliverDue(db);
      expect(received()).toEqual([0, 0, 2, 2, 2]);
      const failed = await db.query<WebhookDelivery>('select * from webhook_deliveries where endpoint_id = $1', [endpoint.id]);
      expect(failed).toHaveLength(2);
      for (const delivery of failed)
        expect(delivery).toMatchObject({
          status: 'failed',
          failure_reason: 'audience_changed',
          attempts: 0,
          last_error: 'The owner of the endpoint is deactivated.',
        });
      expect((await db.query('select is_active, failing_since from webhook_endpoints where id = $1', [endpoint.id]))[0]).toEqual({
        is_active: true,
        failing_since: null,
      });

      await activateUser(db, ada.id);
      await publishAll();
      await deliverDue(db);
      expect(received()).toEqual([2, 2, 4, 4, 4]);
      expect(await db.transaction((tx) => recoverEndpoint(tx, endpoint, since))).toEqual({ requeued: 2, added: 0, complete: true });
      await deliverDue(db);
      expect(received()).toEqual([4, 2, 4, 4, 4]);
    } finally {
      await receiver.close();
    }
  });
});

describeDatabases(
  'an app whose users are in a table that does not exist',
  (database) => {
    test('does not start, and says so once, whichever modules need the table', async () => {
      const users = { table: { ...people.table, name: 'peple' } };
      const app = createApp({ database: database.db, log: { level: 'silent' }, users, modules: [apiKeys(), webhooks()], mount: {} });
      const error = await app.ready().catch((thrown: unknown) => thrown as StartUpError);
      expect(error).toMatchObject({ faults: [{ id: 'E011', message: expect.stringContaining('there is no table "peple"') }] });
      await app.close();
    });
  },
  { prepare: async (db) => void (await migrateWebhooks(db)) },
);

describeDatabases(
  'endpoints without an application',
  (database) => {
    test('of users in a table of your own obey its flag; nothing is sent while the users cannot be read', async () => {
      const { db } = database;
      const receiver = await startReceiver();
      useWebhooks(db, { urlPolicy: LOOPBACK, jitter: false, users: people });
      try {
        const ada = await addPerson(db, 'ada');
        await db.transaction((tx) => createEndpoint(tx, { owner: ada.id, url: receiver.url('/ada'), events: ['*'] }));
        const send = async () => {
          await db.transaction((tx) => publish(tx, 'order.paid', { n: 1 }, { owner: ada.id }));
          await deliverDue(db);
        };
        // No change is told: the flag alone counts.
        await setEnabled(db, 'ada', false);
        await send();
        expect(receiver.of('/ada')).toHaveLength(0);
        await setEnabled(db, 'ada', true);

        await db.query('alter table people rename to others');
        await expect(send()).rejects.toThrow(/people/);
        expect(receiver.of('/ada')).toHaveLength(0);
        await db.query('alter table others rename to people');
        // The claim was released: the delivery is due and not held by a worker that is gone.
        await deliverDue(db);
        expect(receiver.of('/ada')).toHaveLength(1);
      } finally {
        unbindWebhooks(db);
        await receiver.close();
      }
    });
  },
  {
    prepare: async (db) => {
      await migrateWebhooks(db);
      await db.query(
        'create table people (person_no text primary key, handle text, mail text, enabled boolean not null, staff boolean not null, root boolean not null)',
      );
    },
  },
);
