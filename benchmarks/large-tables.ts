// What do claims, lists, counts, prunes and admin pages cost when tables are large? PostgreSQL; one server with a million rows in each of events,
// deliveries, attempts, jobs, audit entries and idempotency records, one with five million. Rows are made by SQL, measured calls are the product's.
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { openDatabase } from '../packages/kit/src/db/index.ts';
import { fakeClock } from '../packages/kit/src/testing/fake-clock.ts';
import { LargeWork } from '../packages/kit/test/large/large-work.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { contest, ratioOf } from './harness/contest.ts';
import { ratePerSecond } from './harness/loop.ts';

async function side(rows: number) {
  const postgres = await startPostgresServer({ durable: true });
  const clock = fakeClock('2026-03-01T12:00:00.000Z');
  const database = await openDatabase(postgres.url, { clock });
  const work = await LargeWork.start(database, clock, rows);
  return {
    operations: new Map((await work.operations()).map(({ name, run }) => [name, run])),
    async stop() {
      await work.close();
      await database.close();
      await postgres.stop();
    },
  };
}

async function run(context: BenchmarkContext) {
  const small = await side(context.quick ? 50_000 : 1_000_000);
  const large = await side(context.quick ? 200_000 : 5_000_000);
  try {
    const ratios = [];
    for (const [name, operation] of small.operations) {
      const other = large.operations.get(name);
      if (other === undefined) continue;
      const result = await contest({ ...context, roundSeconds: context.roundSeconds / 4 }, [
        { name: `${name}, a million`, measure: (seconds) => ratePerSecond(operation, seconds) },
        { name: `${name}, five millions`, measure: (seconds) => ratePerSecond(other, seconds) },
      ]);
      const value = ratioOf(result, `${name}, a million`, `${name}, five millions`);
      ratios.push({ name: `large-tables: ${name}`, value, goal: 1.3, atMost: true });
    }
    return ratios;
  } finally {
    await small.stop();
    await large.stop();
  }
}

export default defineBenchmark({
  name: 'large-tables',
  question: 'What do five times a million rows cost claims, lists, counts, prunes and admin pages?',
  run,
});
