import { setTimeout as pause } from 'node:timers/promises';
import { unbindJobs, useJobs } from '../../src/contrib/jobs/rows/jobs.ts';
import { startJobs } from '../../src/contrib/jobs/start/start-job.ts';
import { openDatabase, type Database } from '../../src/db/index.ts';
import { killAtRandom, type RandomKills } from '../crash/kill-at-random.ts';
import { Processes } from '../crash/processes.ts';
import { crashJob } from './crash-job.ts';
import { migrateJobs } from './describe-jobs.ts';

export interface JobCrashOptions extends Omit<RandomKills, 'beforeKill'> {
  readonly url: string;
  readonly workers: number;
}

/** What was promised against what happened. */
export interface JobReconciliation {
  readonly kills: number;
  readonly restarts: number;
  readonly started: number;
  readonly succeeded: number;
  /** Neither succeeded nor failed at the end: must be 0. */
  readonly stuck: number;
  /** Jobs whose step or commit was saved twice or not at all: must be 0. */
  readonly notExactlyOnce: number;
}

const JOBS_PER_KILL = 40;
const PATIENCE_MS = 4 * 60_000;

/** Kills workers under load, then lets the others finish and compares what was started with what was saved. */
export async function runJobCrashLoop({ url, workers, ...random }: JobCrashOptions): Promise<JobReconciliation> {
  const db = await openDatabase(url);
  await migrateJobs(db);
  await db.query('create table effects (job_id text not null, kind text not null)');
  useJobs(db, { jobs: [crashJob] });
  const processes = new Processes({ worker: { script: new URL('./crash-worker-process.ts', import.meta.url), args: [url] } });
  const inputs = Array.from({ length: JOBS_PER_KILL }, (_, n) => ({ n }));
  let started = 0;
  const beforeKill = async (): Promise<void> => {
    started += await patiently(() => db.transaction(async (tx) => (await startJobs(tx, crashJob, inputs)).ids.length));
  };
  try {
    for (let n = 0; n < workers; n++) await processes.start('worker');
    await killAtRandom(processes, 'worker', { ...random, beforeKill });
    await finished(db);
    return { kills: random.kills, restarts: random.restarts ?? 0, started, ...(await reconcile(db)) };
  } finally {
    await processes.killAll();
    unbindJobs(db);
    await db.close();
  }
}

/** The database may be restarting. */
async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (tries === 100) throw error;
      await pause(200);
    }
  }
}

async function finished(db: Database): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (Date.now() < deadline) {
    const open = await patiently(() => db.query(`select id from jobs where status in ('queued', 'running') limit 1`));
    if (open.length === 0) return;
    await pause(200);
  }
}

async function reconcile(db: Database): Promise<Omit<JobReconciliation, 'kills' | 'restarts' | 'started'>> {
  const jobs = await db.query<{ id: string; status: string }>('select id, status from jobs');
  const effects = await db.query<{ job_id: string; kind: string }>('select job_id, kind from effects');
  const byJob = Map.groupBy(effects, ({ job_id: id }) => id);
  const exactlyOnce = (id: string): boolean =>
    (byJob.get(id) ?? [])
      .map(({ kind }) => kind)
      .sort((a, b) => a.localeCompare(b))
      .join() === 'commit,step';
  const succeeded = jobs.filter(({ status }) => status === 'succeeded');
  return {
    succeeded: succeeded.length,
    stuck: jobs.filter(({ status }) => status === 'queued' || status === 'running').length,
    notExactlyOnce: jobs.filter(({ id }) => !exactlyOnce(id)).length,
  };
}
