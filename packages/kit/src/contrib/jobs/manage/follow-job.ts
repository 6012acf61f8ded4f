import type { Database } from '../../../db/engine/db.ts';
import type { ServerSentEvent } from '../../../http/declare/server-sent-event.ts';
import { followerOf, stateOf } from './job-follower.ts';
import type { Job } from '../rows/store.ts';

export interface FollowOptions<Shown> {
  /** A job as its follower gets it. */
  readonly show: (job: Job) => Shown | Promise<Shown>;
  readonly signal: AbortSignal;
  /** The id of the last event that the client has seen: it is not sent again. */
  readonly lastEventId?: string | undefined;
}

/** The states of a job, one event each, until it has ended. */
export async function* followJob<Shown>(
  db: Database,
  first: Job,
  { show, signal, lastEventId }: FollowOptions<Shown>,
): AsyncGenerator<ServerSentEvent<Shown>> {
  const follower = followerOf(db);
  let seen = lastEventId;
  for (let job: Job | null = first; job !== null; job = await follower.next(first.id, seen, signal)) {
    const ended = job.finished_at !== null;
    const id = stateOf(job);
    if (id !== seen) yield { event: ended ? 'end' : 'progress', id, data: await show(job) };
    seen = id;
    if (ended) return;
  }
}
