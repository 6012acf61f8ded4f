// What does publishing add to a business transaction on PostgreSQL? A transaction that inserts a row, compared with the
// same one that also publishes to 0, 10 and 100 matching endpoints. Statements are counted too: publishing is one.
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { createEndpoint } from '../packages/kit/src/contrib/webhooks/endpoints/create-endpoint.ts';
import { webhookMigrations } from '../packages/kit/src/contrib/webhooks/migrations/all.ts';
import { webhookModels } from '../packages/kit/src/contrib/webhooks/models.ts';
import { publish } from '../packages/kit/src/contrib/webhooks/publishing/publish.ts';
import { unbindWebhooks, useWebhooks } from '../packages/kit/src/contrib/webhooks/webhooks.ts';
import { countQueries, migrate, openDatabase, uuidv7, type Db } from '../packages/kit/src/db/index.ts';
import { defineBenchmark } from './harness/benchmark.ts';
import { contest, type Contender } from './harness/contest.ts';
import { ratePerSecond } from './harness/loop.ts';

const AUDIENCES = [0, 10, 100];

export default defineBenchmark({
  name: 'webhook-publish',
  question: 'How many round trips does publish add to a transaction, and what does it cost?',
  async run(context) {
    const postgres = await startPostgresServer({ durable: true });
    const database = await openDatabase(postgres.url);
    useWebhooks(database, { endpointsPerOwnerMax: 1000 });
    try {
      await migrate(database, [{ name: 'webhooks', models: [...webhookModels], migrations: webhookMigrations }]);
      await database.query('create table business_rows (id uuid primary key)');
      await database.transaction(async (tx) => {
        for (const endpoints of AUDIENCES)
          for (let n = 0; n < endpoints; n++)
            await createEndpoint(tx, { owner: `owner-${endpoints}`, url: 'https://example.com/', events: ['order.*'] });
      });
      const change = (tx: Db): Promise<unknown> => tx.query('insert into business_rows (id) values ($1)', [uuidv7()]);
      const contender = (name: string, work: (tx: Db) => Promise<unknown>): Contender => ({
        name,
        measure: (seconds) => ratePerSecond(() => database.transaction(work), seconds),
      });
      await contest(context, [
        contender('the change alone', change),
        ...AUDIENCES.map((endpoints) =>
          contender(`with an event to ${endpoints} endpoints`, async (tx) => {
            await change(tx);
            await publish(tx, 'order.paid', { n: 1 }, { owner: `owner-${endpoints}` });
          }),
        ),
      ]);
      const { count } = await countQueries(() =>
        database.transaction((tx) => publish(tx, 'order.paid', { n: 1 }, { owner: `owner-${AUDIENCES.at(-1)}` })),
      );
      return [{ name: 'webhook-publish-round-trips', value: count, goal: 1, atMost: true }];
    } finally {
      unbindWebhooks(database);
      await database.close();
      await postgres.stop();
    }
  },
});
