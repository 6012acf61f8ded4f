import { Queue, Worker } from 'bullmq';
import { run as runGraphile, runMigrations } from 'graphile-worker';
import PgBoss from 'pg-boss';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { z } from 'zod';
import { startRedisServer, type RedisServer } from '../../../../../../test/provision/redis-server.ts';
import { migrateJobs } from '../../../../test/jobs/describe-jobs.ts';
import { openDatabase, type Database } from '../../../db/index.ts';
import { createPostgresDatabase, createSqliteDatabase, type DatabasePlace } from '../../../testing/test-database.ts';
import { job } from '../declare/job.ts';
import { unbindJobs, useJobs } from '../rows/jobs.ts';
import { startJob } from '../start/start-job.ts';
import { findJob } from '../rows/store.ts';
import { startJobWorker } from '../manage/work-jobs.ts';
import { bullMqQueue } from './bullmq-queue.ts';
import { graphileQueue } from './graphile-queue.ts';
import { pgBossQueue } from './pg-boss-queue.ts';
import type { TaskQueue } from '../start/task-queue.ts';
import { ImmediateTaskQueue, RecordingTaskQueue } from './test-queues.ts';

const failedOnce = new Set<string>();
const work = job('work', {
  input: z.object({ fails: z.boolean() }),
  retry: { backoff: 'fixed', firstDelaySeconds: 0.05 },
  async run({ id, input: { fails } }) {
    if (fails && !failedOnce.has(id)) {
      failedOnce.add(id);
      throw new Error('once');
    }
  },
});

const TIMEOUT_MS = 60_000;
const settled = (check: () => Promise<boolean>): Promise<unknown> => vi.waitUntil(check, { timeout: TIMEOUT_MS, interval: 50 });

/** One place and the jobs on it, run by an engine. */
class Bench {
  readonly place: DatabasePlace;
  readonly db: Database;

  private constructor(place: DatabasePlace, db: Database) {
    this.place = place;
    this.db = db;
  }

  static async open(kind: 'postgres' | 'sqlite'): Promise<Bench> {
    const place = kind === 'sqlite' ? await createSqliteDatabase() : await createPostgresDatabase(inject('postgresUrl' as never));
    const db = await openDatabase(place.url);
    await migrateJobs(db);
    return new Bench(place, db);
  }

  start(fails = false): Promise<string> {
    return this.db.transaction(async (tx) => (await startJob(tx, work, { fails })).id);
  }

  async hasSucceeded(id: string): Promise<boolean> {
    return (await findJob(this.db, id))?.status === 'succeeded';
  }

  async close(): Promise<void> {
    unbindJobs(this.db);
    await this.db.close();
    await this.place.remove();
  }
}

/** What every engine must do: run jobs of committed transactions, none of rolled-back ones, and retry by our row. */
async function expectServed(bench: Bench, queue: TaskQueue): Promise<void> {
  useJobs(bench.db, { jobs: [work], taskQueue: queue, pollIntervalMs: 50 });
  const sweeper = await startJobWorker(bench.db);
  try {
    await bench.db
      .transaction(async (tx) => {
        await startJob(tx, work, { fails: false });
        throw new Error('no');
      })
      .catch(() => undefined);
    const [plain, retried] = [await bench.start(), await bench.start(true)];
    await settled(() => bench.hasSucceeded(plain));
    await settled(() => bench.hasSucceeded(retried));
    expect(await findJob(bench.db, retried)).toMatchObject({ attempts: 2 });
    expect(await bench.db.query('select id from jobs')).toHaveLength(2);
  } finally {
    await sweeper.stop();
  }
}

describe('jobs run by other engines', () => {
  const closers: (() => Promise<unknown>)[] = [];
  let redis: RedisServer | undefined;
  beforeAll(async () => {
    redis = await startRedisServer();
  });
  afterAll(async () => {
    for (const close of closers.reverse()) await close().catch(() => undefined);
    await redis?.stop();
  });

  test(
    'graphile-worker: enqueued inside the transaction by its own SQL',
    async () => {
      const bench = await Bench.open('postgres');
      closers.push(() => bench.close());
      await runMigrations({ connectionString: bench.place.url });
      const queue = graphileQueue();
      const runner = await runGraphile({
        connectionString: bench.place.url,
        taskList: queue.taskList(bench.db),
        pollInterval: 100,
        noHandleSignals: true,
      });
      closers.push(() => runner.stop());
      await expectServed(bench, queue);
    },
    TIMEOUT_MS,
  );

  test(
    'pg-boss: enqueued inside the transaction by its own SQL',
    async () => {
      const bench = await Bench.open('postgres');
      closers.push(() => bench.close());
      const boss = new PgBoss({ connectionString: bench.place.url });
      boss.on('error', () => undefined);
      await boss.start();
      closers.push(() => boss.stop({ graceful: false }));
      await boss.createQueue('kit_jobs');
      const queue = pgBossQueue(boss);
      await queue.work({ pollingIntervalSeconds: 0.5 }, bench.db);
      await expectServed(bench, queue);
    },
    TIMEOUT_MS,
  );

  for (const kind of ['sqlite', 'postgres'] as const) {
    test(
      `BullMQ on ${kind}: handed over after the commit, and again when the process died in between`,
      async () => {
        const bench = await Bench.open(kind);
        closers.push(() => bench.close());
        const connection = { url: redis?.url ?? '' };
        const name = `kit-${kind}`;
        const bull = new Queue(name, { connection });
        closers.push(() => bull.close());
        const queue = bullMqQueue(bull);
        const worker = new Worker(name, queue.processor(bench.db), { connection });
        closers.push(() => worker.close());
        await expectServed(bench, queue);
        // The process died after the commit, before it told Redis.
        const lost = await bench.db.transaction(async (tx) => {
          const { id } = await startJob(
            { dialect: tx.dialect, database: tx.database, query: (text, values) => tx.query(text, values) },
            work,
            {
              fails: false,
            },
          );
          await tx.query('update jobs set run_at = $2 where id = $1', [id, new Date(Date.now() - 120_000)]);
          return id;
        });
        const sweeper = await startJobWorker(bench.db);
        await settled(() => bench.hasSucceeded(lost));
        await sweeper.stop();
      },
      TIMEOUT_MS,
    );
  }

  test('the queues for tests run at once, or only remember', async () => {
    const bench = await Bench.open('sqlite');
    const immediate = new ImmediateTaskQueue();
    useJobs(bench.db, { jobs: [work], taskQueue: immediate });
    const id = await bench.start();
    await immediate.settled();
    expect(await bench.hasSucceeded(id)).toBe(true);
    unbindJobs(bench.db);
    const recording = new RecordingTaskQueue();
    useJobs(bench.db, { jobs: [work], taskQueue: recording });
    const second = await bench.start();
    expect(recording.enqueued).toEqual([{ id: second, queue: 'default', priority: 0 }]);
    await bench.close();
  });

  test('what an engine cannot do fails the start', () => {
    const facts = { dialect: 'sqlite', queues: ['default'], limited: ['work'] } as const;
    expect(graphileQueue().faults?.(facts).join(' ')).toMatch(/PostgreSQL.*concurrency/s);
  });
});
