import type { Db } from '../../db/db.ts';
import { isQueueName } from './job.ts';
import { jobsOf } from './jobs.ts';
import type { WorkSummary } from './running/result-writer.ts';
import { JobWorker, type WorkerOptions } from './running/worker.ts';
import { requireArguments } from '../../options/read-options.ts';
import { anObject } from '../../options/value-rule.ts';

/** Runs what is due now and returns: for cron jobs and tests. Any number of processes may do so at once. */
export async function runDueJobs(db: Db, options: WorkerOptions = {}): Promise<WorkSummary> {
  requireArguments('runDueJobs()', { options }, { options: anObject });
  const given = checked(options);
  const worker = new JobWorker(jobsOf(db), given);
  try {
    return await worker.runOnce();
  } finally {
    await worker.stop();
  }
}

/** A worker that goes on until `stop()`. */
export async function startJobWorker(db: Db, options: WorkerOptions = {}): Promise<JobWorker> {
  requireArguments('startJobWorker()', { options }, { options: anObject });
  const given = checked(options);
  const worker = new JobWorker(jobsOf(db), given);
  await worker.start();
  return worker;
}

const KNOWN = ['name', 'queues', 'concurrency', 'pollIntervalMs'];

function checked(options: WorkerOptions): WorkerOptions {
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as WorkerOptions;
  const faults = Object.keys(given)
    .filter((name) => !KNOWN.includes(name))
    .map((name) => `${name} is not an option; there are ${KNOWN.join(', ')}.`);
  const { concurrency = 1, pollIntervalMs = 10, queues = ['default'] } = given;
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > 10_000)
    faults.push('concurrency must be a whole number from 1 to 10000.');
  if (!Number.isInteger(pollIntervalMs) || pollIntervalMs < 1) faults.push('pollIntervalMs must be a whole number of milliseconds.');
  if (!queues.every(isQueueName)) faults.push('queues must list names of queues.');
  if (faults.length > 0) throw new TypeError(`The worker cannot start: ${faults.join(' ')}`);
  return given;
}
