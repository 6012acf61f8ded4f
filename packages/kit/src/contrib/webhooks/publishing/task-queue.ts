import type { Database } from '../../../db/engine/db.ts';

/** Runs in the process that takes the job: `task(eventId, using)`, usually `deliverEvent(eventId, using)`. */
export type DeliveryTask = (eventId: string, using: string) => unknown;

/** Where `publish` announces an event for immediate delivery; called after the database has committed. */
export interface TaskQueue {
  /** Called in the transaction of the event. The deliveries are stored already: a worker sends them when the queue does not. */
  enqueue(eventId: string, using: string, details?: EnqueueDetails): unknown;
}

/** For queues that stay in this process. */
export interface EnqueueDetails {
  /** The database that `using` names. */
  readonly database?: Database | undefined;
  /** The `task` that `publish` was given. */
  readonly task?: DeliveryTask | undefined;
}
