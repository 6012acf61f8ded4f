// Does a claim get slower as finished jobs pile up? PostgreSQL; claims of 50 ready jobs with an empty table and with a million finished ones
// behind them. Rows are made by SQL, measured calls are the module's.
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { claimReady } from '../packages/kit/src/contrib/jobs/running/claim-store.ts';
import { release } from '../packages/kit/src/contrib/jobs/running/result-store.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { contest, ratioOf, type Contender } from './harness/contest.ts';
import { ratePerSecond } from './harness/loop.ts';
import { kitQueue, type KitQueue } from './queues/kit-queue.ts';

const BATCH = 48;

async function side(finished: number): Promise<{ queue: KitQueue; stop: () => Promise<void> }> {
  const postgres = await startPostgresServer({ durable: true });
  const queue = await kitQueue({ url: postgres.url, concurrency: 10, handle: () => undefined });
  await queue.db.query(
    `insert into jobs (id, name, version, queue, status, is_ready, input, attempts, attempts_max, run_at, created_at, started_at, finished_at)
     select gen_random_uuid(), 'bench', 1, 'default', 'succeeded', false, '{}', 1, 5, now(), now(), now(), now() from generate_series(1, cast($1 as integer))`,
    [finished],
  );
  await queue.add(200);
  await queue.db.query('vacuum analyze jobs');
  return {
    queue,
    async stop() {
      await queue.close();
      await postgres.stop();
    },
  };
}

async function run(context: BenchmarkContext) {
  const [empty, full] = [await side(0), await side(context.quick ? 50_000 : 1_000_000)];
  const contender = (name: string, { queue: { db } }: typeof empty): Contender => {
    const round = { lastTurn: '' };
    return {
      name,
      measure: (seconds) =>
        ratePerSecond(async () => {
          await release(
            db,
            await claimReady(db, { queue: 'default', now: new Date(), leaseMs: 60_000, max: BATCH, worker: 'bench' }, round),
          );
        }, seconds),
    };
  };
  try {
    const result = await contest(context, [contender('empty', empty), contender('a million finished', full)]);
    return [{ name: 'jobs-growth', value: ratioOf(result, 'empty', 'a million finished'), goal: 1.2, atMost: true }];
  } finally {
    await empty.stop();
    await full.stop();
  }
}

export default defineBenchmark({ name: 'jobs-growth', question: 'Does a claim get slower as finished jobs pile up?', run });
