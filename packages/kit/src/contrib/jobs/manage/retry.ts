import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import { isUniqueViolation } from '../../../db/engine/constraint-violation.ts';
import type { Database, Db } from '../../../db/engine/db.ts';
import { type OptionRules, readOptions, requireArguments } from '../../../options/read-options.ts';
import { filledText, aDate, anObject, queryable } from '../../../options/value-rule.ts';
import { jobErrors } from '../errors.ts';
import { jobsOf } from '../rows/jobs.ts';
import { WAKE_CHANNEL, wakePayload } from '../start/start-store.ts';
import { findFailed, findJob, jobIdOf, requeueOne, type FailedJobFilter, type Job } from '../rows/store.ts';

/** Retries a failed or cancelled job with all its attempts. Recorded steps are not repeated. */
export async function retryJob(tx: Db, given: string): Promise<Job> {
  const { clock, database, settings } = jobsOf(tx);
  const id = jobIdOf(given);
  if (id === null) throw jobErrors.job_not_found();
  const now = clock.now();
  // In a savepoint: a unique key that is taken must not end the caller's transaction.
  const requeued = await tx
    .transaction((inner) => requeueOne(inner, id, now))
    .catch((error: unknown) => {
      if (isUniqueViolation(error)) throw jobErrors.unique_key_taken();
      throw error;
    });
  const job = await findJob(tx, id);
  if (job === null) throw jobErrors.job_not_found();
  // A cancelled job is not queued again only while it has a lease.
  if (requeued === null) throw job.status === 'cancelled' ? jobErrors.job_still_running() : jobErrors.job_not_retryable();
  const isReady = requeued.serial_key === null;
  await database.notify(tx, WAKE_CHANNEL, wakePayload({ isReady, queue: requeued.queue }));
  if (isReady) await settings.taskQueue?.enqueue(tx, id, requeued);
  return job;
}

const BATCH = 200;
const filterRules: OptionRules<FailedJobFilter> = { name: filledText, queue: filledText, code: filledText, since: aDate };
const FIRST_ID = '00000000-0000-0000-0000-000000000000';

export interface RetriedJobs {
  readonly retried: number;
  /** Not retried: another job uses their unique key. */
  readonly refused: number;
}

/** Retries every failed job that matches the filter, each in its own transaction. */
export async function retryFailed(db: Database, filter: FailedJobFilter, limit = Infinity): Promise<RetriedJobs> {
  requireArguments('retryFailed()', { db, filter }, { db: queryable, filter: anObject });
  // A misspelt name would start every failed job again.
  readOptions('retryFailed()', filter, filterRules);
  let [retried, refused, after] = [0, 0, FIRST_ID];
  while (retried + refused < limit) {
    const ids = await findFailed(db, filter, after, Math.min(BATCH, limit - retried - refused));
    if (ids.length === 0) break;
    for (const id of ids) {
      after = id;
      try {
        await db.transaction((tx) => retryJob(tx, id), CONFLICT_RETRIES);
        retried++;
      } catch (error) {
        if (!['unique_key_taken', 'job_not_retryable', 'job_not_found'].includes((error as { code?: string }).code ?? '')) throw error;
        refused++;
      }
    }
  }
  return { retried, refused };
}
