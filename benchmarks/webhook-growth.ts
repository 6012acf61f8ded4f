// Does a claim get slower as finished deliveries pile up, and a publish as endpoints do? PostgreSQL; claims of 50 due
// deliveries with an empty table and with a million finished ones behind them; publishing to 10 endpoints of one owner
// alone and among 100,000 of others that subscribe to the same pattern. Rows are made by SQL, measured calls are the module's.
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { claimDue } from '../packages/kit/src/contrib/webhooks/delivery/claim-store.ts';
import { createEndpoint } from '../packages/kit/src/contrib/webhooks/endpoints/create-endpoint.ts';
import { webhookMigrations } from '../packages/kit/src/contrib/webhooks/migrations/all.ts';
import { webhookModels } from '../packages/kit/src/contrib/webhooks/models.ts';
import { publish } from '../packages/kit/src/contrib/webhooks/publishing/publish.ts';
import { releaseClaims } from '../packages/kit/src/contrib/webhooks/delivery/result-store.ts';
import { unbindWebhooks, useWebhooks } from '../packages/kit/src/contrib/webhooks/webhooks.ts';
import { migrate, openDatabase, type Database } from '../packages/kit/src/db/index.ts';
import { defineBenchmark } from './harness/benchmark.ts';
import { contest, ratioOf, type Contender } from './harness/contest.ts';
import { ratePerSecond } from './harness/loop.ts';

const BATCH = 50;
const URL_OF_NOBODY = 'https://example.com/';

/** An own server for each side, so that one's cache and vacuum are not the other's. */
async function side(finished: number, endpoints: number): Promise<{ database: Database; stop: () => Promise<void> }> {
  const postgres = await startPostgresServer({ durable: true });
  const database = await openDatabase(postgres.url);
  useWebhooks(database);
  await migrate(database, [{ name: 'webhooks', models: [...webhookModels], migrations: webhookMigrations }]);
  await database.transaction(async (tx) => {
    for (let n = 0; n < 10; n++) await createEndpoint(tx, { owner: 'bench', url: URL_OF_NOBODY, events: ['*'] });
  });
  await database.query(
    `insert into webhook_endpoints (id, owner_id, url, events, secret, created_at, updated_at)
     select gen_random_uuid(), 'owner-' || n, $2, '{*}', 'whsec_', now(), now() from generate_series(1, cast($1 as integer)) n`,
    [endpoints, URL_OF_NOBODY],
  );
  await database.query(
    `insert into webhook_subscriptions (pattern, tenant_key, owner_id, endpoint_id)
     select '*', '', owner_id, id from webhook_endpoints where owner_id <> 'bench'`,
  );
  await database.query(
    `with event as (
       insert into webhook_events (id, type, data, timestamp, audience, owner_id)
       select gen_random_uuid(), 'order.paid', '{}', now(), 'owner', 'bench' from generate_series(1, cast($1 as integer)) returning id
     )
     insert into webhook_deliveries (id, event_id, endpoint_id, event_type, status, attempts, created_at, delivered_at)
     select gen_random_uuid(), event.id, p.id, 'order.paid', 'succeeded', 1, now(), now()
     from event cross join (select id from webhook_endpoints where owner_id = 'bench') p`,
    [Math.ceil(finished / 10)],
  );
  await database.transaction(async (tx) => {
    for (let n = 0; n < 20; n++) await publish(tx, 'order.paid', { n }, { owner: 'bench' });
  });
  await database.query('vacuum analyze');
  return {
    database,
    async stop() {
      unbindWebhooks(database);
      await database.close();
      await postgres.stop();
    },
  };
}

async function claimAndRelease(database: Database): Promise<void> {
  const now = new Date();
  const limits = { now, until: new Date(now.getTime() + 75_000), free: BATCH, perEndpoint: BATCH, busy: new Map<string, number>() };
  const { claims } = await claimDue(database, limits);
  if (claims.length !== BATCH) throw new Error(`claimed ${claims.length} of ${BATCH}`);
  await releaseClaims(database, claims);
}

class RolledBack extends Error {}

/** Rolled back, so that the table stays as it is. */
async function publishOnce(database: Database): Promise<void> {
  await database
    .transaction(async (tx) => {
      const { deliveries } = await publish(tx, 'order.paid', { n: 1 }, { owner: 'bench' });
      if (deliveries !== 10) throw new Error(`published to ${deliveries} endpoints`);
      throw new RolledBack();
    })
    .catch((error: unknown) => {
      if (!(error instanceof RolledBack)) throw error;
    });
}

export default defineBenchmark({
  name: 'webhook-growth',
  question: 'What do a million finished deliveries cost a claim, and 100,000 other endpoints a publish?',
  async run(context) {
    const [finished, endpoints] = context.quick ? [100_000, 10_000] : [1_000_000, 100_000];
    const small = await side(0, 0);
    const large = await side(finished, endpoints);
    const contender = (name: string, operation: () => Promise<void>): Contender => ({
      name,
      measure: (seconds) => ratePerSecond(operation, seconds),
    });
    try {
      const claims = await contest(context, [
        contender('claim, empty table', () => claimAndRelease(small.database)),
        contender('claim, grown table', () => claimAndRelease(large.database)),
      ]);
      const publishes = await contest(context, [
        contender('publish, 10 endpoints', () => publishOnce(small.database)),
        contender('publish, 10 among many', () => publishOnce(large.database)),
      ]);
      return [
        { name: 'webhook-growth-claim-cost', value: ratioOf(claims, 'claim, empty table', 'claim, grown table'), goal: 1.2, atMost: true },
        {
          name: 'webhook-growth-publish-cost',
          value: ratioOf(publishes, 'publish, 10 endpoints', 'publish, 10 among many'),
          goal: 1.2,
          atMost: true,
        },
      ];
    } finally {
      await Promise.all([small.stop(), large.stop()]);
    }
  },
});
