import { setTimeout as pause } from 'node:timers/promises';
import type { Db } from '../../db/db.ts';
import type { ServerSentEvent } from '../../http/server-sent-event.ts';
import type { JobCatalog } from './job-catalog.ts';
import { jobRecord, type JobRecord } from './job-record.ts';
import { findJob, type Job } from './store.ts';

/** How often the job is read while a client follows it. */
const LOOK_EVERY_MS = 250;

export interface FollowOptions {
  readonly catalog: JobCatalog;
  readonly signal: AbortSignal;
  /** The id of the last event the client has seen: what it knows already is not sent again. */
  readonly lastEventId?: string | undefined;
}

/** What becomes of a job, event by event until it has ended. */
export async function* followJob(db: Db, first: Job, options: FollowOptions): AsyncIterable<ServerSentEvent<JobRecord>> {
  const { catalog, signal } = options;
  let seen = options.lastEventId;
  for (let job: Job | null = first; job !== null; job = await findJob(db, first.id)) {
    const ended = job.finished_at !== null;
    const id = eventId(job);
    if (id !== seen) yield { event: ended ? 'end' : 'progress', id, data: jobRecord(job, catalog) };
    seen = id;
    if (ended || signal.aborted) return;
    try {
      await pause(LOOK_EVERY_MS, undefined, { signal });
    } catch {
      return;
    }
  }
}

/** Tells one state of a job from another. */
function eventId({ status, attempts, progress, progress_message: message, finished_at: at }: Job): string {
  return `${status}.${attempts}.${progress ?? ''}.${at?.getTime() ?? ''}.${encodeURIComponent(message ?? '').slice(0, 100)}`;
}
