import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import { job, type JobDefinition } from '../../jobs/declare/job.ts';
import { jobsNamed, jobsOf } from '../../jobs/rows/jobs.ts';
import type { TaskQueue as JobTaskQueue } from '../../jobs/start/task-queue.ts';
import { startJob } from '../../jobs/start/start-job.ts';
import { deliverEvent } from './deliver-event.ts';
import type { TaskQueue } from '../publishing/task-queue.ts';

export interface WebhookQueue extends TaskQueue {
  /** To be listed in `jobs({ jobs: […] })`. */
  readonly job: JobDefinition<DeliverInput>;
}

export interface DeliverInput {
  readonly event_id: string;
}

/**
 * Delivers events at once by the engine that runs the jobs: `publish(tx, …, { queue: webhookQueue(taskQueue) })`. Give it the queue that
 * `jobs({ taskQueue })` has; without one, `kit jobs work` delivers. Failed attempts are retried by a webhook worker, as always.
 */
export function webhookQueue(taskQueue: JobTaskQueue | null = null): WebhookQueue {
  const deliver = job('webhooks.deliver', {
    queue: 'webhooks',
    // The deliveries schedule their own retries.
    retry: { attempts: 1 },
    input: jsonSchema<DeliverInput>({
      type: 'object',
      properties: { event_id: { type: 'string', maxLength: 100 } },
      required: ['event_id'],
    }),
    run: async ({ input, db }) => void (await deliverEvent(input.event_id, db)),
  });
  return {
    job: deliver,
    async enqueue(eventId, using, { database } = {}) {
      const jobs = database === undefined ? jobsNamed(using) : jobsOf(database);
      if (jobs.settings.taskQueue !== taskQueue)
        throw new TypeError(`webhookQueue() and jobs() of the database "${using}" have different task queues: give both the same one.`);
      await jobs.database.transaction((tx) => startJob(tx, deliver, { event_id: eventId }), CONFLICT_RETRIES);
    },
  };
}
