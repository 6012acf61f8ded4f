import type { Database } from '../../../db/engine/db.ts';
import { runQueuedJob } from './run-queued-job.ts';
import { postgresOnly, type TaskQueue } from '../start/task-queue.ts';
import { readOptions } from '../../../options/read-options.ts';
import { filledText } from '../../../options/value-rule.ts';

export interface GraphileQueueOptions {
  /** Where graphile-worker has its tables. Default: `graphile_worker`. */
  readonly schema?: string;
  /** The name of its task. Default: `kit_job`. */
  readonly task?: string;
}

export interface GraphileQueue extends TaskQueue {
  /** For `run({ taskList: queue.taskList() })` of graphile-worker. */
  taskList(using?: string | Database): Record<string, (payload: unknown) => Promise<void>>;
}

/** Jobs are run by graphile-worker, and enqueued inside your transaction by its own SQL. */
export function graphileQueue(options: GraphileQueueOptions = {}): GraphileQueue {
  const { schema = 'graphile_worker', task = 'kit_job' } = readOptions('graphileQueue()', options, {
    schema: filledText,
    task: filledText,
  });
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(schema))
    throw new TypeError(`graphileQueue(): ${JSON.stringify(schema)} is not the name of a schema.`);
  // Its lowest number comes first. One attempt: our row schedules retries.
  const text = `select cast((${schema}.add_job(identifier => cast($1 as text), payload => json_build_object('id', cast($2 as text)),
    max_attempts => 1, priority => cast($3 as integer))).id as text) as id`;
  return {
    async enqueue(tx, id, { priority }) {
      await tx.query(text, [task, id, -priority]);
    },
    faults: (facts) => postgresOnly('graphile-worker', facts),
    taskList: (using) => ({
      [task]: async (payload) => void (await runQueuedJob((payload as { id: string }).id, using)),
    }),
  };
}
