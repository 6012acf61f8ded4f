import { afterAll, beforeAll } from 'vitest';
import { migrate, type Database, type Db } from '../../src/db/index.ts';
import { createEndpoint, type EndpointInput } from '../../src/contrib/webhooks/endpoints/create-endpoint.ts';
import { webhookMigrations } from '../../src/contrib/webhooks/migrations/all.ts';
import { webhookModels } from '../../src/contrib/webhooks/models.ts';
import type { PublishOptions } from '../../src/contrib/webhooks/publishing/checked-call.ts';
import { publish } from '../../src/contrib/webhooks/publishing/publish.ts';
import type { WebhookDelivery, WebhookEndpoint } from '../../src/contrib/webhooks/endpoints/store.ts';
import { unbindWebhooks, useWebhooks, type UseWebhooksOptions, type Webhooks } from '../../src/contrib/webhooks/webhooks.ts';
import { describeDatabases, fakeClock, type FakeClock, type TestDatabase } from '../../src/testing/index.ts';
import { LOOPBACK } from './loopback.ts';
import { startReceiver, type Receiver } from './receiver.ts';

export { LOOPBACK };

export function migrateWebhooks(db: Database): Promise<unknown> {
  return migrate(db, [{ name: 'webhooks', models: [...webhookModels], migrations: webhookMigrations }]);
}

/** A migrated database with webhooks, a clock that stands still and a receiver, for one block of tests. */
export interface Outbox {
  readonly database: TestDatabase;
  readonly db: Database;
  readonly clock: FakeClock;
  readonly receiver: Receiver;
  readonly webhooks: Webhooks;
  /** Tests share the database and not their owners. */
  readonly owner: () => string;
  readonly endpoint: (input: Partial<EndpointInput> & { readonly owner: string; readonly path?: string }) => Promise<WebhookEndpoint>;
  readonly publish: (type: string, options: PublishOptions, data?: object) => Promise<string>;
  readonly deliveries: (where: { readonly endpoint?: string; readonly event?: string }) => Promise<WebhookDelivery[]>;
}

let owners = 0;

export function describeOutbox(name: string, define: (outbox: Outbox) => void, options: UseWebhooksOptions = {}): void {
  const clock = fakeClock('2026-03-01T12:00:00.000Z');
  describeDatabases(
    name,
    (database) => {
      let receiver: Receiver | undefined;
      let webhooks: Webhooks | undefined;
      beforeAll(async () => {
        receiver = await startReceiver();
        webhooks = useWebhooks(database.db, { urlPolicy: LOOPBACK, jitter: false, ...options });
      });
      afterAll(async () => {
        unbindWebhooks(database.db);
        await receiver?.close();
      });
      const started = <T>(value: T | undefined): T => {
        if (value === undefined) throw new Error('not started yet');
        return value;
      };
      define({
        database,
        clock,
        get db() {
          return database.db;
        },
        get receiver() {
          return started(receiver);
        },
        get webhooks() {
          return started(webhooks);
        },
        owner: () => `owner-${++owners}`,
        endpoint: ({ path, ...input }) =>
          database.db.transaction(async (tx) => {
            const url = started(receiver).url(path ?? `/${input.owner}`);
            return (await createEndpoint(tx, { url, events: ['*'], ...input })).endpoint;
          }),
        publish: (type, settings, data = { n: 1 }) => database.db.transaction(async (tx) => (await publish(tx, type, data, settings)).id),
        deliveries: (where) => deliveriesOf(database.db, where),
      });
    },
    { prepare: async (db) => void (await migrateWebhooks(db)), template: 'webhooks', database: { clock } },
  );
}

async function deliveriesOf(db: Db, { endpoint, event }: { endpoint?: string; event?: string }): Promise<WebhookDelivery[]> {
  const [column, value] = endpoint === undefined ? ['event_id', event] : ['endpoint_id', endpoint];
  return db.query<WebhookDelivery>(`select * from webhook_deliveries where ${column} = $1 order by id`, [value]);
}
