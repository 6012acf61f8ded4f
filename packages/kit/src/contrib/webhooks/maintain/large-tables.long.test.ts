import { expect, test } from 'vitest';
import { LargeWork, type Operation } from '../../../../test/large/large-work.ts';
import type { Database } from '../../../db/engine/db.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { fakeClock } from '../../../testing/fake-clock.ts';

/** More rows than any list or count looks at, on both sides. Sizes for a machine with two cores; `npm run bench -- large-tables` has millions. */
const [SMALL, LARGE] = [60_000, 300_000];
/** Deliveries are counted one by one up to a million, and estimated from there on. */
const COUNTED = 'statistics of webhooks';
const COST_MAX = 1.3;
/** More levels of indexes, and what else the server does meanwhile. A statement that reads one of the tables to its end reads at least 5,000 blocks more. */
const SLACK_BLOCKS = 3_000;

const clock = fakeClock('2026-03-01T12:00:00.000Z');

/** Blocks of tables and indexes that the server has read for this database, from memory or disk: the same on a busy machine, unlike time. */
async function blocksRead(db: Database): Promise<number> {
  // Each connection reports what it did at the end of a statement, once a second at most.
  await new Promise((done) => setTimeout(done, 1100));
  await Promise.all(Array.from({ length: 20 }, () => db.query('select pg_stat_force_next_flush(), pg_sleep(0.05)')));
  await Promise.all(Array.from({ length: 20 }, () => db.query('select pg_sleep(0.05)')));
  const [row] = await db.query<{ blocks: number | bigint }>(
    'select blks_hit + blks_read as blocks from pg_stat_database where datname = current_database()',
  );
  return Number(row?.blocks ?? 0);
}

/** The second run: the first one may read the catalog. */
async function costOf(db: Database, { run }: Operation): Promise<number> {
  await run();
  const before = await blocksRead(db);
  await run();
  return (await blocksRead(db)) - before;
}

describeDatabases(
  'large tables',
  (database) => {
    test(
      `claims, lists, counts, prunes and admin pages read at ${LARGE} rows at most ${COST_MAX} times the blocks that they read at ${SMALL}`,
      { timeout: 7_200_000 },
      async (context) => {
        context.skip(database.dialect !== 'postgres', 'rows are made by generate_series');
        const work = await LargeWork.start(database.db, clock, SMALL);
        try {
          const small = new Map<string, number>();
          for (const operation of await work.operations()) small.set(operation.name, await costOf(database.db, operation));
          await work.grow(LARGE);
          const [measured, grown]: [string[], string[]] = [[], []];
          for (const operation of await work.operations()) {
            const before = small.get(operation.name) ?? 0;
            const after = await costOf(database.db, operation);
            const line = `${operation.name}: ${before} blocks, then ${after}`;
            measured.push(line);
            if (after > before * COST_MAX + SLACK_BLOCKS && operation.name !== COUNTED) grown.push(line);
          }
          console.info(measured.join('\n'));
          expect(grown).toEqual([]);
        } finally {
          await work.close();
        }
      },
    );
  },
  { database: { clock } },
);
