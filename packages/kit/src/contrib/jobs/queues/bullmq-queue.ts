import type { Database } from '../../../db/engine/db.ts';
import { PRIORITY_MAX } from '../models.ts';
import { runQueuedJob } from './run-queued-job.ts';
import { engineFaults, type TaskQueue } from '../start/task-queue.ts';

/** What is used of a `Queue` of BullMQ. */
export interface BullQueueLike {
  add(name: string, data: object, options: object): Promise<unknown>;
}

export interface BullMqQueue extends TaskQueue {
  /** For `new Worker(queue.name, queue.processor(), …)` of BullMQ. */
  processor(using?: string | Database): (job: { readonly data: unknown }) => Promise<void>;
  /** Resolves when everything that has committed is handed over: before a process ends, and in tests. */
  settled(): Promise<void>;
}

/**
 * Jobs are run by BullMQ. Redis is not part of your transaction: a job is handed over after its commit, and again by the sweeper of
 * `kit jobs work` (or `worker: true`) when the process died in between.
 */
export function bullMqQueue(queue: BullQueueLike, onError: (error: unknown) => void = () => undefined): BullMqQueue {
  const adding = new Set<Promise<unknown>>();
  return {
    enqueue(tx, id, { priority }) {
      // Its lowest number comes first, from 1 on. One attempt: our row schedules retries. Ended ones leave nothing in Redis.
      const options = { attempts: 1, priority: PRIORITY_MAX - priority + 1, removeOnComplete: true, removeOnFail: true };
      tx.afterCommit?.(() => {
        // The caller does not wait for Redis, and does not fail with it: the row is there, and the sweeper hands it over again.
        const added = queue.add('kit_job', { id }, options).catch(onError);
        adding.add(added);
        void added.finally(() => adding.delete(added));
      });
    },
    faults: (facts) => engineFaults('BullMQ', facts),
    processor: (using) => async (job) => void (await runQueuedJob((job.data as { id: string }).id, using)),
    async settled() {
      while (adding.size > 0) await Promise.all(adding);
    },
  };
}
