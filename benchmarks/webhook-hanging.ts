// What does an endpoint that never answers cost the others? One worker on PostgreSQL drains the same deliveries to twenty healthy
// endpoints, with and without the queue of one endpoint that lets every request hang for the full timeout. The hanging deliveries are due
// first, so the worker meets them wherever it looks; in the other case the same rows are there and due tomorrow, so that both drain
// the same tables.
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

const ENDPOINTS = 20;
const CONCURRENCY = 100;
const TIMEOUT_MS = 5000;
const data = { note: 'x'.repeat(940) };

async function prepare(database: Database, origin: string): Promise<void> {
  await migrate(database, [{ name: 'webhooks', models: [...webhookModels], migrations: webhookMigrations }]);
  await database.transaction(async (tx) => {
    for (let n = 0; n < ENDPOINTS; n++) await createEndpoint(tx, { owner: 'healthy', url: `${origin}/`, events: ['*'] });
    await createEndpoint(tx, { owner: 'hanging', url: `${origin}/hang`, events: ['*'] });
  });
}

async function fill(database: Database, owner: string, events: number): Promise<void> {
  for (let n = 0; n < events; n += 100) {
    await database.transaction(async (tx) => {
      for (let each = n; each < Math.min(events, n + 100); each++) await publish(tx, 'order.paid', data, { owner });
    });
  }
}

/** Healthy deliveries per second, from the start of a worker until the last of them is stored. */
async function measure(database: Database, jobs: number, { isHanging }: { isHanging: boolean }): Promise<number> {
  await fill(database, 'hanging', jobs / 2);
  if (!isHanging) await database.query(`update webhook_deliveries set next_attempt_at = now() + interval '1 day' where status = 'pending'`);
  await fill(database, 'healthy', jobs / ENDPOINTS);
  // What filling left to do is not part of the answer.
  await database.query('checkpoint');
  const start = performance.now();
  const worker = await startWorker(database);
  while (worker.summary.succeeded < jobs) await new Promise((resolve) => setTimeout(resolve, 2));
  const rate = (jobs / (performance.now() - start)) * 1000;
  await worker.stop();
  await database.query(`delete from webhook_deliveries where status = 'pending'`);
  return rate;
}

async function run(context: BenchmarkContext) {
  const jobs = context.quick ? 2000 : 10_000;
  const postgres = await startPostgresServer({ durable: true });
  const receiver = await startServer(new URL('./receivers/webhook-receiver.ts', import.meta.url), { isUnderTest: false });
  const database = await openDatabase(postgres.url);
  const urlPolicy = URLPolicy({ allowHttp: true, allowPrivateNetworks: true });
  useWebhooks(database, { urlPolicy, concurrency: CONCURRENCY, timeoutMs: TIMEOUT_MS });
  try {
    await prepare(database, `http://127.0.0.1:${receiver.port}`);
    const result = await contest(context, [
      { name: 'healthy alone', measure: () => measure(database, jobs, { isHanging: false }) },
      { name: 'behind one that hangs', measure: () => measure(database, jobs, { isHanging: true }) },
    ]);
    return [{ name: 'webhook-hanging-others', value: ratioOf(result, 'behind one that hangs', 'healthy alone'), goal: 0.9 }];
  } finally {
    unbindWebhooks(database);
    await Promise.all([database.close(), receiver.stop()]);
    await postgres.stop();
  }
}

export default defineBenchmark({
  name: 'webhook-hanging',
  question: 'What share of their throughput do endpoints keep while another one hangs for the full timeout?',
  run,
});
