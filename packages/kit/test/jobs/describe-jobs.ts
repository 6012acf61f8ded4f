import { afterAll, afterEach, beforeAll } from 'vitest';
import { jobMigrations } from '../../src/contrib/jobs/migrations/all.ts';
import { jobModels } from '../../src/contrib/jobs/models.ts';
import type { JobDefinition } from '../../src/contrib/jobs/declare/job.ts';
import { unbindJobs, useJobs, type Jobs, type UseJobsOptions } from '../../src/contrib/jobs/rows/jobs.ts';
import { startJob, type StartedJob, type StartOptions } from '../../src/contrib/jobs/start/start-job.ts';
import { findJob, type Job } from '../../src/contrib/jobs/rows/store.ts';
import { runDueJobs, startJobWorker } from '../../src/contrib/jobs/manage/work-jobs.ts';
import type { WorkSummary } from '../../src/contrib/jobs/running/result-writer.ts';
import type { JobWorker, WorkerOptions } from '../../src/contrib/jobs/running/worker.ts';
import { migrate, type Database } from '../../src/db/index.ts';
import type { Log } from '../../src/http/log.ts';
import { describeDatabases, fakeClock, type FakeClock, type TestDatabase } from '../../src/testing/index.ts';

export function migrateJobs(db: Database): Promise<unknown> {
  return migrate(db, [{ name: 'jobs', models: [...jobModels], migrations: jobMigrations }]);
}

/** A migrated database with jobs and a clock that stands still, for one block of tests. */
export interface JobBench {
  readonly database: TestDatabase;
  readonly db: Database;
  readonly clock: FakeClock;
  readonly jobs: Jobs;
  /** What was logged, newest last. */
  readonly logged: { readonly level: string; readonly fields: Record<string, unknown>; readonly message: string }[];
  readonly start: <Input>(definition: JobDefinition<Input>, input: Input, options?: StartOptions) => Promise<StartedJob>;
  readonly read: (id: string) => Promise<Job>;
  /** Runs what is due and returns. */
  readonly run: (options?: WorkerOptions) => Promise<WorkSummary>;
  /** A worker that is stopped after the test. */
  readonly work: (options?: WorkerOptions) => Promise<JobWorker>;
  /** Every lease ends now, whatever the clock of the database says. */
  readonly expireLeases: () => Promise<void>;
}

export function describeJobs(name: string, options: UseJobsOptions, define: (bench: JobBench) => void): void {
  const clock = fakeClock('2026-03-01T12:00:00.000Z');
  const logged: JobBench['logged'] = [];
  const at = (level: string) => (fields: object | string, message?: string) =>
    void logged.push(
      typeof fields === 'string' ? { level, fields: {}, message: fields } : { level, fields: { ...fields }, message: message ?? '' },
    );
  const log: Log = { trace: at('trace'), debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), fatal: at('fatal') };
  describeDatabases(
    name,
    (database) => {
      const workers: JobWorker[] = [];
      let jobs: Jobs | undefined;
      beforeAll(() => {
        jobs = useJobs(database.db, { stopTimeoutMs: 100, log, ...options });
      });
      afterEach(async () => {
        await Promise.all(workers.splice(0).map((worker) => worker.stop()));
        await database.db.query('delete from jobs');
        logged.length = 0;
      });
      afterAll(() => unbindJobs(database.db));
      define({
        database,
        clock,
        logged,
        get db() {
          return database.db;
        },
        get jobs() {
          if (jobs === undefined) throw new Error('not started yet');
          return jobs;
        },
        start: (definition, input, settings) => database.db.transaction((tx) => startJob(tx, definition, input, settings)),
        async read(id) {
          const job = await findJob(database.db, id);
          if (job === null) throw new Error(`there is no job ${id}`);
          return job;
        },
        run: (settings) => runDueJobs(database.db, settings),
        async work(settings) {
          const worker = await startJobWorker(database.db, { pollIntervalMs: 50, ...settings });
          workers.push(worker);
          return worker;
        },
        async expireLeases() {
          await database.db.query(
            `update jobs set claimed_until = ${database.dialect === 'postgres' ? `now() - interval '1 hour'` : `'2000-01-01T00:00:00.000Z'`} where claimed_until is not null`,
          );
        },
      });
    },
    { prepare: async (db) => void (await migrateJobs(db)), template: 'jobs', database: { clock } },
  );
}
