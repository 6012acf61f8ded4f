import type { Db } from '../../../db/engine/db.ts';
import type { DeliverySummary } from './result-writer.ts';
import { workerRules } from '../options.ts';
import { checkDestinations, declareDestinations } from '../destinations/declare-destinations.ts';
import { webhooksOf } from '../webhooks.ts';
import { DeliveryWorker, type RunOptions, type WorkerOptions } from './worker.ts';
import { type OptionRules, readOptions } from '../../../options/read-options.ts';
import { filledText, rule } from '../../../options/value-rule.ts';

export type DeliverOptions = WorkerOptions & Pick<RunOptions, 'limit'>;

const workerOptionRules: OptionRules<WorkerOptions> = { ...workerRules, name: filledText };
const deliverRules: OptionRules<DeliverOptions> = {
  ...workerOptionRules,
  limit: rule('an integer', (value) => value === Infinity || (Number.isSafeInteger(value) && (value as number) >= 0)),
};

/** Sends what is due now and returns: for cron jobs and tests. Any number of processes may do so at once. */
export async function deliverDue(db: Db, options: DeliverOptions = {}): Promise<DeliverySummary> {
  const { limit, ...worker } = readOptions('deliverDue()', options, deliverRules);
  const webhooks = webhooksOf(db);
  await declareDestinations(webhooks);
  const running = new DeliveryWorker(webhooks, worker);
  try {
    return await running.runOnce(limit === undefined ? {} : { limit });
  } finally {
    await running.stop();
  }
}

/** A worker that goes on until `stop()`. */
export async function startWorker(db: Db, options: WorkerOptions = {}): Promise<DeliveryWorker> {
  const given = readOptions('startWorker()', options, workerOptionRules);
  const webhooks = webhooksOf(db);
  await declareDestinations(webhooks);
  void checkDestinations(webhooks);
  const worker = new DeliveryWorker(webhooks, given);
  await worker.start();
  return worker;
}
