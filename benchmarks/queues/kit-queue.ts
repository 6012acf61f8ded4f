// Our own jobs as the benchmarks use them.
import { z } from 'zod';
import { coreTables } from '../../packages/kit/src/app/data/migration-modules.ts';
import { job } from '../../packages/kit/src/contrib/jobs/declare/job.ts';
import { unbindJobs, useJobs } from '../../packages/kit/src/contrib/jobs/rows/jobs.ts';
import { jobMigrations } from '../../packages/kit/src/contrib/jobs/migrations/all.ts';
import { jobModels, jobRows } from '../../packages/kit/src/contrib/jobs/models.ts';
import type { JobWorker } from '../../packages/kit/src/contrib/jobs/running/worker.ts';
import { startJobs } from '../../packages/kit/src/contrib/jobs/start/start-job.ts';
import { runDueJobs, startJobWorker } from '../../packages/kit/src/contrib/jobs/manage/work-jobs.ts';
import { triggeredTable } from '../../packages/kit/src/crud/write/change-log.ts';
import { applyTriggers } from '../../packages/kit/src/db/migrations/core/change-triggers.ts';
import { migrate, openDatabase, type Database } from '../../packages/kit/src/db/index.ts';

export interface KitQueue {
  readonly db: Database;
  add(count: number): Promise<void>;
  /** Runs everything that is due. */
  drain(): Promise<void>;
  work(): Promise<JobWorker>;
  close(): Promise<void>;
}

export async function kitQueue(options: {
  readonly url: string;
  readonly concurrency: number;
  readonly handle: () => void;
  /** Triggers log each change of a job, as while a list of them is live. */
  readonly isLive?: boolean;
}): Promise<KitQueue> {
  const db = await openDatabase(options.url);
  await migrate(db, [coreTables, { name: 'jobs', models: [...jobModels], migrations: jobMigrations }]);
  if (options.isLive === true) await applyTriggers(db, [triggeredTable(jobRows)]);
  const bench = job('bench', { input: z.object({ n: z.int() }), concurrency: options.concurrency, run: () => options.handle() });
  useJobs(db, { jobs: [bench] });
  return {
    db,
    async add(count) {
      for (let left = count; left > 0; left -= 1000) {
        const inputs = Array.from({ length: Math.min(left, 1000) }, (_, n) => ({ n }));
        await db.transaction((tx) => startJobs(tx, bench, inputs));
      }
    },
    drain: async () => void (await runDueJobs(db)),
    work: () => startJobWorker(db),
    async close() {
      unbindJobs(db);
      await db.close();
    },
  };
}
