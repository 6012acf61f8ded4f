// How many signed, durable deliveries does one worker process make? Our worker on PostgreSQL (claims, leases, attempt
// history) against a bare loop that signs and POSTs with the same HTTP client and stores nothing, and against job queues
// whose handler does the same POST of the message in its job: graphile-worker and pg-boss on the same PostgreSQL, BullMQ on Redis.
// Receiver and databases in processes of their own; all contenders drain the same number of jobs.
import { createHmac, createSecretKey } from 'node:crypto';
import { Pool } from 'undici';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { createEndpoint } from '../packages/kit/src/contrib/webhooks/create-endpoint.ts';
import { deliverDue } from '../packages/kit/src/contrib/webhooks/deliver.ts';
import { webhookMigrations } from '../packages/kit/src/contrib/webhooks/migrations/all.ts';
import { webhookModels } from '../packages/kit/src/contrib/webhooks/models.ts';
import { publish } from '../packages/kit/src/contrib/webhooks/publish.ts';
import { URLPolicy } from '../packages/kit/src/contrib/webhooks/url-policy.ts';
import { unbindWebhooks, useWebhooks } from '../packages/kit/src/contrib/webhooks/webhooks.ts';
import { migrate, openDatabase, type Database } from '../packages/kit/src/db/index.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { contest, ratioOf, type Contender } from './harness/contest.ts';
import { startServer } from './harness/server-process.ts';
import { queueContenders } from './queues/webhook-queues.ts';

const CONCURRENCY = 100;
const ENDPOINTS = 20;
const secret = Buffer.alloc(32, 7);
const data = { note: 'x'.repeat(940) };
const message = { type: 'order.paid', timestamp: '2026-01-02T03:04:05.000Z', data };

/** Deliveries per second of `deliver`, which must send all `jobs` that `fill` has stored. */
async function rate(jobs: number, fill: (jobs: number) => Promise<void>, deliver: (jobs: number) => Promise<void>): Promise<number> {
  await fill(jobs);
  const start = performance.now();
  await deliver(jobs);
  return (jobs / (performance.now() - start)) * 1000;
}

export function bareLoop(
  origin: string,
  concurrency = CONCURRENCY,
): { send: (message?: object) => Promise<void>; close: () => Promise<void> } {
  const key = createSecretKey(secret);
  const pool = new Pool(origin, { connections: concurrency });
  const ready = Buffer.from(JSON.stringify(message));
  return {
    async send(given) {
      const body = given === undefined ? ready : Buffer.from(JSON.stringify(given));
      const timestamp = String(Math.floor(Date.now() / 1000));
      const signature = createHmac('sha256', key).update(`msg_1.${timestamp}.`).update(body).digest('base64');
      const headers = {
        'content-type': 'application/json',
        'webhook-id': 'msg_1',
        'webhook-timestamp': timestamp,
        'webhook-signature': `v1,${signature}`,
      };
      const response = await pool.request({ path: '/', method: 'POST', headers, body });
      await response.body.dump();
      if (response.statusCode !== 204) throw new Error(`the receiver answered ${response.statusCode}`);
    },
    close: () => pool.destroy(),
  };
}

async function prepare(database: Database, origin: string): Promise<void> {
  await migrate(database, [{ name: 'webhooks', models: [...webhookModels], migrations: webhookMigrations }]);
  await database.transaction(async (tx) => {
    for (let n = 0; n < ENDPOINTS; n++) {
      await createEndpoint(tx, { owner: 'bench', url: `${origin}/`, events: ['*'], secret: `whsec_${secret.toString('base64')}` });
    }
  });
}

async function fill(database: Database, jobs: number): Promise<void> {
  for (let n = 0; n < jobs; n += 100 * ENDPOINTS) {
    await database.transaction(async (tx) => {
      for (let each = n; each < Math.min(jobs, n + 100 * ENDPOINTS); each += ENDPOINTS)
        await publish(tx, 'order.paid', data, { owner: 'bench' });
    });
  }
}

async function run(context: BenchmarkContext) {
  // Rounded to whole events: each is one delivery per endpoint.
  const jobs = Math.ceil((context.quick ? 2000 : 10_000) / ENDPOINTS) * ENDPOINTS;
  const postgres = await startPostgresServer({ durable: true });
  const receiver = await startServer(new URL('./receivers/webhook-receiver.ts', import.meta.url));
  const origin = `http://127.0.0.1:${receiver.port}`;
  const database = await openDatabase(postgres.url);
  useWebhooks(database, { urlPolicy: URLPolicy({ allowHttp: true, allowPrivateNetworks: true }), concurrency: CONCURRENCY });
  const bare = bareLoop(origin);
  const queues = await queueContenders(context, { postgresUrl: postgres.url, jobs, concurrency: CONCURRENCY, message, send: bare.send });
  try {
    await prepare(database, origin);
    const kit: Contender = {
      name: 'kit',
      measure: () =>
        rate(
          jobs,
          (count) => fill(database, count),
          async (count) => {
            const { succeeded } = await deliverDue(database);
            if (succeeded !== count) throw new Error(`${succeeded} of ${count} deliveries succeeded`);
          },
        ),
    };
    const loop: Contender = {
      name: 'bare loop',
      measure: () =>
        rate(
          jobs,
          async () => undefined,
          async (count) => {
            let left = count;
            const lane = async (): Promise<void> => {
              while (left-- > 0) await bare.send();
            };
            await Promise.all(Array.from({ length: CONCURRENCY }, lane));
          },
        ),
    };
    const result = await contest(context, [kit, loop, ...queues.contenders]);
    return [
      { name: 'webhook-deliver-vs-bare', value: ratioOf(result, 'kit', 'bare loop'), goal: 0.5 },
      ...queues.goals.map(({ name, goal }) => ({ name: `webhook-deliver-vs-${name}`, value: ratioOf(result, 'kit', name), goal })),
    ];
  } finally {
    unbindWebhooks(database);
    await queues.close();
    await Promise.all([bare.close(), database.close(), receiver.stop()]);
    await postgres.stop();
  }
}

export default defineBenchmark({
  name: 'webhook-deliver',
  question: 'What share of a bare sign-and-POST loop does a durable worker reach, and how do job queues do?',
  run,
});
