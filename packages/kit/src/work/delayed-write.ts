import { AsyncLocalStorage } from 'node:async_hooks';

/** Writes behind the requests: what they note is written together a moment later, one write after the other, and the rest at the end. */
export class DelayedWrite {
  readonly #write: () => Promise<void>;
  readonly #afterMs: number;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #stopped = false;
  // A timer inherits the async context it is set in: without this it would write inside the transaction of the code that noted something.
  readonly #outside = AsyncLocalStorage.snapshot();

  /** `write` never rejects. */
  constructor(afterMs: number, write: () => Promise<void>) {
    this.#afterMs = afterMs;
    this.#write = write;
  }

  /** Something waits to be written. */
  schedule(): void {
    if (this.#timer !== undefined || this.#stopped) return;
    this.#timer = setTimeout(() => void this.flush(), this.#afterMs);
    this.#timer.unref();
  }

  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#outside(this.#write));
    return this.#writing;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.flush();
  }
}
