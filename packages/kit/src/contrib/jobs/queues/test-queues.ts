import type { SqlExecutor } from '../../../db/engine/foreign/sql-executor.ts';
import { runQueuedJob } from './run-queued-job.ts';
import type { EnqueueOptions, TaskQueue } from '../start/task-queue.ts';

/** For tests: runs each job in this process as soon as its transaction has committed. */
export class ImmediateTaskQueue implements TaskQueue {
  readonly #running = new Set<Promise<unknown>>();

  enqueue(tx: SqlExecutor, id: string): void {
    const { database } = tx;
    if (database === undefined || tx.afterCommit === undefined)
      throw new TypeError(
        'ImmediateTaskQueue needs a transaction of the toolkit, or an adapter with { database } that can tell when it commits.',
      );
    tx.afterCommit(() => {
      const run = runQueuedJob(id, database).finally(() => this.#running.delete(run));
      this.#running.add(run);
    });
  }

  /** Resolves when nothing that was enqueued is still running. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }
}

/** For tests: remembers what was enqueued and runs nothing. */
export class RecordingTaskQueue implements TaskQueue {
  readonly enqueued: ({ readonly id: string } & EnqueueOptions)[] = [];

  enqueue(_tx: SqlExecutor, id: string, options: EnqueueOptions): void {
    this.enqueued.push({ id, ...options });
  }
}
