import type { Database } from '../../../db/engine/db.ts';
import type { SqlParameter } from '../../../db/engine/foreign/sql-executor.ts';
import { runQueuedJob } from './run-queued-job.ts';
import { postgresOnly, type TaskQueue } from '../start/task-queue.ts';
import { readOptions } from '../../../options/read-options.ts';
import { filledText } from '../../../options/value-rule.ts';

/** What is used of a PgBoss. */
export interface PgBossLike {
  send(name: string, data: object, options: object): Promise<string | null>;
  work(name: string, options: object, handler: (jobs: { readonly data: unknown }[]) => Promise<unknown>): Promise<string>;
}

export interface PgBossQueue extends TaskQueue {
  /** Starts a worker of pg-boss for the jobs: after `boss.start()` and `boss.createQueue(name)`. */
  work(options?: object, using?: string | Database): Promise<string>;
}

/** Jobs are run by pg-boss, and enqueued inside your transaction by its own SQL. */
export function pgBossQueue(
  boss: PgBossLike,
  options: {
    /** The queue of pg-boss. Default: `kit_jobs`. */
    readonly queue?: string;
  } = {},
): PgBossQueue {
  const { queue = 'kit_jobs' } = readOptions('pgBossQueue()', options, { queue: filledText });
  return {
    async enqueue(tx, id, { priority }) {
      const db = {
        executeSql: async (text: string, values: unknown[]) => ({ rows: await tx.query(text, values as SqlParameter[]) }),
      };
      // One attempt: our row schedules retries.
      await boss.send(queue, { id }, { db, priority, retryLimit: 0 });
    },
    faults: (facts) => postgresOnly('pg-boss', facts),
    work: (options = {}, using) =>
      boss.work(queue, options, async (jobs) => {
        for (const { data } of jobs) await runQueuedJob((data as { id: string }).id, using);
      }),
  };
}
