import type { Database } from '../../../db/engine/db.ts';
import { jobsNamed, jobsOf } from '../rows/jobs.ts';
import { runById } from '../running/run-by-id.ts';

/** What the worker of another engine does with a job's id. False: there was nothing to do; an id may come more than once. */
export function runQueuedJob(id: string, using: string | Database = 'default'): Promise<boolean> {
  return runById(typeof using === 'string' ? jobsNamed(using) : jobsOf(using), id);
}
