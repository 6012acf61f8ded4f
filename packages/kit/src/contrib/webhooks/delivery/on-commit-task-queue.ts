import { deliverEvent } from './deliver-event.ts';
import type { DeliveryTask, EnqueueDetails, TaskQueue } from '../publishing/task-queue.ts';
import { readOptions } from '../../../options/read-options.ts';
import { aFunction } from '../../../options/value-rule.ts';

/** Delivers in this process as soon as the transaction has committed; the publisher does not wait. Workers do the retries. */
export class OnCommitTaskQueue implements TaskQueue {
  readonly #task: DeliveryTask | undefined;
  readonly #onError: ((error: unknown) => void) | undefined;
  readonly #running = new Set<Promise<void>>();

  constructor(
    options: {
      /** Sends the deliveries of an event. Default: `deliverEvent`. */
      readonly task?: DeliveryTask;
      /** Called with what a task throws; workers send what is left. */
      readonly onError?: (error: unknown) => void;
    } = {},
  ) {
    readOptions('new OnCommitTaskQueue()', options, { task: aFunction, onError: aFunction });
    this.#task = options.task;
    this.#onError = options.onError;
  }

  enqueue(eventId: string, using: string, details: EnqueueDetails = {}): void {
    const run = this.#run(eventId, using, details).finally(() => this.#running.delete(run));
    this.#running.add(run);
  }

  /** Resolves when nothing that was enqueued is still running: before a process ends, and in tests. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  async #run(eventId: string, using: string, { database, task = this.#task }: EnqueueDetails): Promise<void> {
    try {
      await (task === undefined ? deliverEvent(eventId, database ?? using) : task(eventId, using));
    } catch (error) {
      // This is not awaited: the deliveries are stored, and a worker sends what is left.
      this.#onError?.(error);
    }
  }
}
