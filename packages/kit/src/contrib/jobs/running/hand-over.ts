import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Jobs } from '../rows/jobs.ts';
import type { TaskQueue } from '../start/task-queue.ts';
import type { ReadyJob } from './due-store.ts';

/** Gives jobs that became ready to the queue of another engine. */
export async function handOver({ database }: Jobs, taskQueue: TaskQueue, ready: readonly ReadyJob[]): Promise<void> {
  if (ready.length === 0) return;
  await database.transaction(async (tx) => {
    for (const { id, queue, priority } of ready) await taskQueue.enqueue(tx, id, { queue, priority });
  }, CONFLICT_RETRIES);
}
