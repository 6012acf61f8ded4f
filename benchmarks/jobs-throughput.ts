// How many empty jobs does one worker process run? Our worker on PostgreSQL (claims, leases, finished rows are kept) against graphile-worker
// with its batching and pg-boss on the same PostgreSQL, and BullMQ on Redis, which here writes its file once a second: a crash may lose a
// second of jobs. Contenders and databases in processes of their own.
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { startRedisServer } from '../test/provision/redis-server.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { startContender } from './harness/contender-process.ts';
import { contest, ratioOf } from './harness/contest.ts';
import type { JobRunnerOptions } from './queues/job-runner.ts';
import { installQueues } from './queues/webhook-queues.ts';

const CONCURRENCY = 100;
const jobsOf = (name: string, quick: boolean): number => (quick || name === 'pg-boss' ? 2000 : 50_000);
const GOALS = { bullmq: 1, 'graphile-worker': 1, 'pg-boss': 1 } as const;

async function run(context: BenchmarkContext) {
  const peers = installQueues((line) => context.print(line));
  const postgres = await startPostgresServer({ durable: true });
  const redis = await startRedisServer();
  const runner = new URL('./queues/job-runner.ts', import.meta.url);
  const started = [];
  try {
    for (const name of ['kit', 'bullmq', 'graphile-worker', 'pg-boss'] as const) {
      const options: JobRunnerOptions = {
        name,
        postgresUrl: postgres.url,
        redisUrl: redis.url,
        peers,
        concurrency: CONCURRENCY,
        jobs: jobsOf(name, context.quick),
      };
      started.push(await startContender(name, runner, [JSON.stringify(options)]));
    }
    const result = await contest(
      context,
      started.map(({ contender }) => contender),
    );
    return Object.entries(GOALS).map(([name, goal]) => ({ name: `jobs-throughput-vs-${name}`, value: ratioOf(result, 'kit', name), goal }));
  } finally {
    await Promise.all(started.map((process) => process.stop()));
    await redis.stop();
    await postgres.stop();
  }
}

export default defineBenchmark({
  name: 'jobs-throughput',
  question: 'How many empty jobs does one worker process run, and how do job queues do?',
  run,
});
