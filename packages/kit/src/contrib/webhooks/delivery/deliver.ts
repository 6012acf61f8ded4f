import type { Db } from '../../../db/db.ts';
import type { DeliverySummary } from './result-writer.ts';
import { numericFaults } from '../options.ts';
import { webhooksOf } from '../webhooks.ts';
import { DeliveryWorker, type RunOptions, type WorkerOptions } from './worker.ts';

export type DeliverOptions = WorkerOptions & Pick<RunOptions, 'limit'>;

/** Sends what is due now and returns: for cron jobs and tests. Any number of processes may do so at once. */
export async function deliverDue(db: Db, { limit, ...options }: DeliverOptions = {}): Promise<DeliverySummary> {
  const faults =
    limit === undefined || limit === Infinity || (Number.isSafeInteger(limit) && limit >= 0)
      ? []
      : [`limit is ${limit}; use a whole number.`];
  const worker = new DeliveryWorker(webhooksOf(db), checked(options, faults));
  try {
    return await worker.runOnce(limit === undefined ? {} : { limit });
  } finally {
    await worker.stop();
  }
}

/** A worker that goes on until `stop()`. */
export async function startWorker(db: Db, options: WorkerOptions = {}): Promise<DeliveryWorker> {
  const worker = new DeliveryWorker(webhooksOf(db), checked(options));
  await worker.start();
  return worker;
}

/** A worker with half a slot or a timeout that no timer can hold would do harm quietly. */
function checked(options: WorkerOptions, faults: readonly string[] = []): WorkerOptions {
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const all = [...numericFaults(given), ...faults];
  if (all.length > 0) throw new TypeError(`The worker cannot start: ${all.join(' ')}`);
  return given;
}
