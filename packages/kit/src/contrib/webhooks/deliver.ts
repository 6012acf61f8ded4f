import type { Db } from '../../db/db.ts';
import type { DeliverySummary } from './result-writer.ts';
import { webhooksOf } from './webhooks.ts';
import { DeliveryWorker, type RunOptions, type WorkerOptions } from './worker.ts';

export type DeliverOptions = WorkerOptions & Pick<RunOptions, 'limit'>;

/** Sends what is due now and returns: for cron jobs and tests. Any number of processes may do so at once. */
export async function deliverDue(db: Db, { limit, ...options }: DeliverOptions = {}): Promise<DeliverySummary> {
  const worker = new DeliveryWorker(webhooksOf(db), options);
  try {
    return await worker.runOnce(limit === undefined ? {} : { limit });
  } finally {
    await worker.stop();
  }
}

/** A worker that goes on until `stop()`. */
export async function startWorker(db: Db, options: WorkerOptions = {}): Promise<DeliveryWorker> {
  const worker = new DeliveryWorker(webhooksOf(db), options);
  await worker.start();
  return worker;
}
