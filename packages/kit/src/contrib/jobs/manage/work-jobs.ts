import type { Db } from '../../../db/engine/db.ts';
import { isQueueName } from '../declare/job.ts';
import { jobsOf } from '../rows/jobs.ts';
import type { WorkSummary } from '../running/result-writer.ts';
import { JobWorker, type WorkerOptions } from '../running/worker.ts';
import { type OptionRules, readOptions } from '../../../options/read-options.ts';
import { filledText, listOf, rule, wholeNumber } from '../../../options/value-rule.ts';

/** Runs what is due now and returns: for cron jobs and tests. Any number of processes may do so at once. */
export async function runDueJobs(db: Db, options: WorkerOptions = {}): Promise<WorkSummary> {
  const given = checked('runDueJobs()', options);
  const worker = new JobWorker(jobsOf(db), given);
  try {
    return await worker.runOnce();
  } finally {
    await worker.stop();
  }
}

/** A worker that goes on until `stop()`. */
export async function startJobWorker(db: Db, options: WorkerOptions = {}): Promise<JobWorker> {
  const given = checked('startJobWorker()', options);
  const worker = new JobWorker(jobsOf(db), given);
  await worker.start();
  return worker;
}

const workerRules: OptionRules<WorkerOptions> = {
  name: filledText,
  queues: listOf(rule('the name of a queue', isQueueName), { min: 1 }),
  concurrency: wholeNumber(1, 10_000),
  pollIntervalMs: wholeNumber(1, 3_600_000),
};

function checked(place: string, options: WorkerOptions): WorkerOptions {
  const given = readOptions(place, options, workerRules);
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}
