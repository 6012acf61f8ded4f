import type { Db } from '../../../db/engine/db.ts';
import { uuidv7 } from '../../../db/values/uuidv7.ts';
import { jobErrors } from '../errors.ts';
import { jobsOf } from '../rows/jobs.ts';
import { WAKE_CHANNEL } from '../start/start-store.ts';
import { cancelUnfinished, findJob, jobIdOf, type Job } from '../rows/store.ts';

/**
 * Cancels a job: a queued one does not run, a running one can save nothing from here on and its handler is told. A job that has ended stays as
 * it is.
 */
export async function cancelJob(tx: Db, given: string): Promise<Job> {
  const { clock, database } = jobsOf(tx);
  const id = jobIdOf(given);
  if (id === null) throw jobErrors.job_not_found();
  const was = await cancelUnfinished(tx, id, clock.now(), uuidv7(clock));
  if (was === 'running') await database.notify(tx, WAKE_CHANNEL, `-${id}`);
  const job = await findJob(tx, id);
  if (job === null) throw jobErrors.job_not_found();
  // The next job of its serial key may run now.
  if (was !== null && job.serial_key !== null) await database.notify(tx, WAKE_CHANNEL, `~${job.queue}`);
  return job;
}
