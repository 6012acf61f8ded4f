// How many signed, durable deliveries does one worker process make? Our worker on PostgreSQL (claims, leases, attempt
// history) against a bare loop that signs and POSTs with the same HTTP client and stores nothing, and against job queues
// whose handler does the same POST of the message in its job: graphile-worker and pg-boss on the same PostgreSQL, BullMQ on Redis.
// Contenders, receiver and databases in processes of their own.
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { startRedisServer } from '../test/provision/redis-server.ts';
import type { DelivererOptions } from './deliverers/deliverer.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { startContender } from './harness/contender-process.ts';
import { contest, ratioOf } from './harness/contest.ts';
import { startServer } from './harness/server-process.ts';
import { installQueues } from './queues/webhook-queues.ts';

const CONCURRENCY = 100;
const ENDPOINTS = 20;
/** A few seconds of work, so that what a process does first after a minute of waiting for its turn is little of it; pg-boss makes 200 a second. */
const jobsOf = (name: string, quick: boolean): number => (quick || name === 'pg-boss' ? 2000 : 30_000);
const GOALS = { 'bare loop': 0.5, bullmq: 1, 'graphile-worker': 1.1, 'pg-boss': 1 } as const;

async function run(context: BenchmarkContext) {
  const peers = installQueues((line) => context.print(line));
  const postgres = await startPostgresServer({ durable: true });
  const redis = await startRedisServer();
  const receiver = await startServer(new URL('./receivers/webhook-receiver.ts', import.meta.url), { isUnderTest: false });
  const shared = {
    origin: `http://127.0.0.1:${receiver.port}`,
    postgresUrl: postgres.url,
    redisUrl: redis.url,
    peers,
    endpoints: ENDPOINTS,
    concurrency: CONCURRENCY,
  };
  const deliverer = new URL('./deliverers/deliverer.ts', import.meta.url);
  const started = [];
  try {
    for (const name of ['kit', 'bare loop', 'bullmq', 'graphile-worker', 'pg-boss'] as const) {
      const options: DelivererOptions = { ...shared, name, jobs: jobsOf(name, context.quick) };
      started.push(await startContender(name, deliverer, [JSON.stringify(options)]));
    }
    const result = await contest(
      context,
      started.map(({ contender }) => contender),
    );
    return Object.entries(GOALS).map(([name, goal]) => ({
      name: `webhook-deliver-vs-${name === 'bare loop' ? 'bare' : name}`,
      value: ratioOf(result, 'kit', name),
      goal,
    }));
  } finally {
    await Promise.all(started.map((process) => process.stop()));
    await Promise.all([receiver.stop(), redis.stop()]);
    await postgres.stop();
  }
}

export default defineBenchmark({
  name: 'webhook-deliver',
  question: 'What share of a bare sign-and-POST loop does a durable worker reach, and how do job queues do?',
  run,
});
