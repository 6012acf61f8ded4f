// One contender of webhook-deliver: stores `jobs` deliveries, then measures until all of them are made.
import { coreTables } from '../../packages/kit/src/app/data/migration-modules.ts';
import { createEndpoint } from '../../packages/kit/src/contrib/webhooks/endpoints/create-endpoint.ts';
import { deliverDue } from '../../packages/kit/src/contrib/webhooks/delivery/deliver.ts';
import { webhookMigrations } from '../../packages/kit/src/contrib/webhooks/migrations/all.ts';
import { webhookDeliveries, webhookModels } from '../../packages/kit/src/contrib/webhooks/models.ts';
import { publish } from '../../packages/kit/src/contrib/webhooks/publishing/publish.ts';
import { URLPolicy } from '../../packages/kit/src/contrib/webhooks/network/url-policy.ts';
import { useWebhooks } from '../../packages/kit/src/contrib/webhooks/webhooks.ts';
import { triggeredTable } from '../../packages/kit/src/crud/write/change-log.ts';
import { applyTriggers } from '../../packages/kit/src/db/migrations/core/change-triggers.ts';
import { migrate, openDatabase } from '../../packages/kit/src/db/index.ts';
import { contending } from '../harness/contender-process.ts';
import { QUEUES, type Queue, type QueueName } from '../queues/webhook-queues.ts';
import { bareLoop, DATA, MESSAGE, SECRET } from './bare-loop.ts';

export interface DelivererOptions {
  /** `kit, live`: while a list of the deliveries is live, triggers log each change of a delivery. */
  readonly name: 'kit' | 'kit, live' | 'bare loop' | QueueName;
  readonly origin: string;
  readonly postgresUrl: string;
  readonly redisUrl: string;
  /** Where the queues are installed. */
  readonly peers: string;
  /** A multiple of the endpoints: each event is one delivery per endpoint. */
  readonly jobs: number;
  readonly endpoints: number;
  readonly concurrency: number;
}

/** Two of ours on one server have a database each. */
function databaseUrl({ name, postgresUrl }: Pick<DelivererOptions, 'name' | 'postgresUrl'>): string {
  return name === 'kit, live' ? new URL('/live', postgresUrl).href : postgresUrl;
}

async function kit({ name, postgresUrl, origin, jobs, endpoints, concurrency }: DelivererOptions): Promise<Queue> {
  if (name === 'kit, live') {
    const server = await openDatabase(postgresUrl);
    await server.query('create database live');
    await server.close();
  }
  const database = await openDatabase(databaseUrl({ name, postgresUrl }));
  useWebhooks(database, { urlPolicy: URLPolicy({ allowHttp: true, allowPrivateNetworks: true }), concurrency });
  await migrate(database, [coreTables, { name: 'webhooks', models: [...webhookModels], migrations: webhookMigrations }]);
  if (name === 'kit, live') await applyTriggers(database, [triggeredTable(webhookDeliveries)]);
  await database.transaction(async (tx) => {
    for (let n = 0; n < endpoints; n++) {
      await createEndpoint(tx, { owner: 'bench', url: `${origin}/`, events: ['*'], secret: `whsec_${SECRET.toString('base64')}` });
    }
  });
  return {
    async fill() {
      for (let n = 0; n < jobs; n += 100 * endpoints) {
        await database.transaction(async (tx) => {
          for (let each = n; each < Math.min(jobs, n + 100 * endpoints); each += endpoints)
            await publish(tx, 'order.paid', DATA, { owner: 'bench' });
        });
      }
    },
    async drain() {
      const { succeeded } = await deliverDue(database);
      if (succeeded !== jobs) throw new Error(`${succeeded} of ${jobs} deliveries succeeded`);
    },
  };
}

async function queueOf(options: DelivererOptions): Promise<Queue> {
  const { name, peers, origin, jobs, concurrency } = options;
  if (name === 'kit' || name === 'kit, live') return kit(options);
  const { send, run } = bareLoop(origin, concurrency);
  if (name === 'bare loop') return { fill: async () => undefined, drain: () => run(jobs) };
  return QUEUES[name](peers, { ...options, message: MESSAGE, send });
}

const USES_POSTGRES: ReadonlySet<DelivererOptions['name']> = new Set(['kit', 'kit, live', 'graphile-worker', 'pg-boss']);

/**
 * Does what earlier rounds and filling have left to do. Left to the server, the moment at which it does so would decide: graphile-worker, which
 * deletes its jobs when they are done, made 4,900 or 6,100 a second for a whole run, and once 1,370.
 */
async function tidyUp(postgresUrl: string): Promise<void> {
  const database = await openDatabase(postgresUrl);
  await database.query('vacuum (analyze)');
  await database.query('checkpoint');
  await database.close();
}

const options = JSON.parse(process.argv[2] ?? '') as DelivererOptions;
const queue = await queueOf(options);
contending(async () => {
  await queue.fill();
  if (USES_POSTGRES.has(options.name)) await tidyUp(databaseUrl(options));
  const start = performance.now();
  await queue.drain();
  return (options.jobs / (performance.now() - start)) * 1000;
});
