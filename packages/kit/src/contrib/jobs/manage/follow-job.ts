import type { Database } from '../../../db/engine/db.ts';
import type { ServerSentEvent } from '../../../http/declare/server-sent-event.ts';
import type { JobCatalog } from '../declare/job-catalog.ts';
import { followerOf, stateOf } from './job-follower.ts';
import { jobRecord, type JobRecord } from '../rows/job-record.ts';
import type { Job } from '../rows/store.ts';

export interface FollowOptions {
  readonly catalog: JobCatalog;
  readonly signal: AbortSignal;
  /** The id of the last event that the client has seen: it is not sent again. */
  readonly lastEventId?: string | undefined;
}

/** The states of a job, one event each, until it has ended. */
export async function* followJob(db: Database, first: Job, options: FollowOptions): AsyncIterable<ServerSentEvent<JobRecord>> {
  const { catalog, signal } = options;
  const follower = followerOf(db);
  let seen = options.lastEventId;
  for (let job: Job | null = first; job !== null; job = await follower.next(first.id, seen, signal)) {
    const ended = job.finished_at !== null;
    const id = stateOf(job);
    if (id !== seen) yield { event: ended ? 'end' : 'progress', id, data: jobRecord(job, catalog) };
    seen = id;
    if (ended) return;
  }
}
