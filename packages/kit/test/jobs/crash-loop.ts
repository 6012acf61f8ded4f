import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { unbindJobs, useJobs } from '../../src/contrib/jobs/jobs.ts';
import { startJobs } from '../../src/contrib/jobs/start-job.ts';
import { openDatabase, type Database } from '../../src/db/index.ts';
import { crashJob } from './crash-job.ts';
import { migrateJobs } from './describe-jobs.ts';

export interface JobCrashOptions {
  readonly url: string;
  readonly workers: number;
  /** How often a random worker is killed with SIGKILL. */
  readonly kills: number;
  readonly restarts?: number;
  readonly restart?: () => Promise<void>;
}

/** What was promised against what happened. */
export interface JobReconciliation {
  readonly kills: number;
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
export async function runJobCrashLoop({ url, workers, kills, restarts = 0, restart }: JobCrashOptions): Promise<JobReconciliation> {
  const db = await openDatabase(url);
  await migrateJobs(db);
  await db.query('create table effects (job_id text not null, kind text not null)');
  useJobs(db, { jobs: [crashJob] });
  const running: ChildProcess[] = [];
  let started = 0;
  const add = async (): Promise<void> => {
    const inputs = Array.from({ length: JOBS_PER_KILL }, (_, n) => ({ n }));
    started += await patiently(() => db.transaction(async (tx) => (await startJobs(tx, crashJob, inputs)).ids.length));
  };
  try {
    for (let n = 0; n < workers; n++) running.push(await startWorker(url));
    const restartEvery = restarts === 0 ? Infinity : Math.max(1, Math.floor(kills / (restarts + 1)));
    for (let n = 1; n <= kills; n++) {
      await add();
      await pause(50 + Math.random() * 250);
      const [victim] = running.splice(Math.floor(Math.random() * running.length), 1);
      victim?.kill('SIGKILL');
      running.push(await startWorker(url));
      if (n % restartEvery === 0) await restart?.();
    }
    await finished(db);
    return { kills, started, ...(await reconcile(db)) };
  } finally {
    for (const child of running) child.kill('SIGKILL');
    unbindJobs(db);
    await db.close();
  }
}

async function startWorker(url: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['--conditions=source', join(import.meta.dirname, 'crash-worker-process.ts'), url], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  if (child.stdout !== null) await Promise.race([once(child.stdout, 'data'), once(child, 'close')]);
  return child;
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

async function reconcile(db: Database): Promise<Omit<JobReconciliation, 'kills' | 'started'>> {
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
