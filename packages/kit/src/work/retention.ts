import { WakeUp } from './wake-up.ts';

export interface RetentionTask {
  /** Removes some old rows, in transactions that are short; returns how many. */
  readonly prune: () => Promise<number>;
  readonly failed: (error: unknown, retryInMs: number) => void;
}

/** After a batch, this many times as long as the batch took: removing takes a tenth of the time of one connection. */
const REST = 9;
/** Between two batches at least. */
const REST_MS_MIN = 20;
/** When nothing was left to remove, or it failed. */
const IDLE_MS = 10 * 60_000;
/** A process that has just started has other work. */
const FIRST_MS = 30_000;

/** Removes old rows in the background, batch by batch within a budget. Several processes may do so: each removes what another has not locked. */
export class Retention {
  readonly #task: RetentionTask;
  readonly #firstMs: number;
  readonly #wakeUp = new WakeUp();
  #isStopping = false;
  #loop: Promise<void> | undefined;

  constructor(task: RetentionTask, { firstMs = FIRST_MS } = {}) {
    this.#task = task;
    this.#firstMs = firstMs;
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#wakeUp.wake();
    await this.#loop;
  }

  async #run(): Promise<void> {
    await this.#wakeUp.next(this.#firstMs);
    while (!this.#isStopping) await this.#wakeUp.next(await this.#batch());
  }

  /** How long to rest. */
  async #batch(): Promise<number> {
    const start = performance.now();
    try {
      const removed = await this.#task.prune();
      return removed === 0 ? IDLE_MS : Math.max(REST_MS_MIN, REST * (performance.now() - start));
    } catch (error) {
      this.#task.failed(error, IDLE_MS);
      return IDLE_MS;
    }
  }
}
