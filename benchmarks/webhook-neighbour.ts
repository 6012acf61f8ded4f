// What do the endpoints of one owner that hang cost the other owners? One worker on PostgreSQL drains the deliveries of twenty healthy endpoints of
// other owners, with and without fifty endpoints of one owner that let every request hang for the full timeout. Then single events are published to the
// healthy ones while the others hang, and each is timed from its commit to its arrival.
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { createEndpoint } from '../packages/kit/src/contrib/webhooks/endpoints/create-endpoint.ts';
import { startWorker } from '../packages/kit/src/contrib/webhooks/delivery/deliver.ts';
import { webhookMigrations } from '../packages/kit/src/contrib/webhooks/migrations/all.ts';
import { webhookModels } from '../packages/kit/src/contrib/webhooks/models.ts';
import { publish } from '../packages/kit/src/contrib/webhooks/publishing/publish.ts';
import { URLPolicy } from '../packages/kit/src/contrib/webhooks/network/url-policy.ts';
import { unbindWebhooks, useWebhooks } from '../packages/kit/src/contrib/webhooks/webhooks.ts';
import { migrate, openDatabase, type Database } from '../packages/kit/src/db/index.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { contest, ratioOf } from './harness/contest.ts';
import { startServer } from './harness/server-process.ts';

const HEALTHY = 20;
const HANGING = 50;
const BACKLOG_PER_ENDPOINT = 40;
const data = { note: 'x'.repeat(940) };
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function prepare(database: Database, origin: string): Promise<void> {
  await migrate(database, [{ name: 'webhooks', models: [...webhookModels], migrations: webhookMigrations }]);
  await database.transaction(async (tx) => {
    for (let n = 0; n < HEALTHY; n++) await createEndpoint(tx, { owner: `healthy-${n}`, url: `${origin}/`, events: ['*'] });
    for (let n = 0; n < HANGING; n++) await createEndpoint(tx, { owner: 'noisy', url: `${origin}/hang`, events: ['*'] });
  });
}

async function fill(database: Database, owners: readonly string[], eventsEach: number): Promise<void> {
  for (const owner of owners) {
    await database.transaction(async (tx) => {
      for (let each = 0; each < eventsEach; each++) await publish(tx, 'order.paid', data, { owner });
    });
  }
}

const healthyOwners = Array.from({ length: HEALTHY }, (_, n) => `healthy-${n}`);

async function withBacklog<R>(database: Database, isNoisy: boolean, work: () => Promise<R>): Promise<R> {
  await fill(database, ['noisy'], BACKLOG_PER_ENDPOINT);
  if (!isNoisy) await database.query(`update webhook_deliveries set next_attempt_at = now() + interval '1 day' where status = 'pending'`);
  const result = await work();
  await database.query(`delete from webhook_deliveries where status = 'pending'`);
  return result;
}

/** Healthy deliveries per second, from the start of a worker until the last of them is stored. */
function throughput(database: Database, jobs: number, isNoisy: boolean): Promise<number> {
  return withBacklog(database, isNoisy, async () => {
    await fill(database, healthyOwners, jobs / HEALTHY);
    await database.query('checkpoint');
    const start = performance.now();
    const worker = await startWorker(database);
    while (worker.summary.succeeded < jobs) await sleep(2);
    const rate = (jobs / (performance.now() - start)) * 1000;
    await worker.stop();
    return rate;
  });
}

/** Milliseconds from the commit of a single event to its delivery, at the 99th percentile, beginning with the start of the worker. */
function latency(database: Database, events: number): Promise<number> {
  return withBacklog(database, true, async () => {
    const worker = await startWorker(database);
    const took: number[] = [];
    for (let n = 0; n < events; n++) {
      const owner = `healthy-${n % HEALTHY}`;
      const { id } = await database.transaction((tx) => publish(tx, 'order.paid', data, { owner }));
      const start = performance.now();
      for (;;) {
        const [row] = await database.query<{ status: string }>('select status from webhook_deliveries where event_id = $1', [id]);
        if (row?.status === 'succeeded') break;
        await sleep(5);
      }
      took.push(performance.now() - start);
    }
    await worker.stop();
    return took.toSorted((a, b) => a - b)[Math.floor(took.length * 0.99)] ?? Infinity;
  });
}

async function run(context: BenchmarkContext) {
  const jobs = context.quick ? 2000 : 10_000;
  const postgres = await startPostgresServer({ durable: true });
  const receiver = await startServer(new URL('./receivers/webhook-receiver.ts', import.meta.url), { isUnderTest: false });
  const database = await openDatabase(postgres.url);
  useWebhooks(database, {
    urlPolicy: URLPolicy({ allowHttp: true, allowPrivateNetworks: true }),
    endpointsPerOwnerMax: 100,
    timeoutMs: 5000,
  });
  try {
    await prepare(database, `http://127.0.0.1:${receiver.port}`);
    const result = await contest(context, [
      { name: 'other owners alone', measure: () => throughput(database, jobs, false) },
      { name: 'beside 50 endpoints of one owner that hang', measure: () => throughput(database, jobs, true) },
    ]);
    const p99 = await latency(database, context.quick ? 100 : 500);
    return [
      {
        name: 'webhook-neighbour-throughput',
        value: ratioOf(result, 'beside 50 endpoints of one owner that hang', 'other owners alone'),
        goal: 0.9,
      },
      { name: 'webhook-neighbour-p99-ms', value: p99, goal: 1000, atMost: true },
    ];
  } finally {
    unbindWebhooks(database);
    await Promise.all([database.close(), receiver.stop()]);
    await postgres.stop();
  }
}

export default defineBenchmark({
  name: 'webhook-neighbour',
  question: 'What do fifty endpoints of one owner that hang cost the other owners, in throughput and in latency?',
  run,
});
