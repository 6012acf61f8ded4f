import { dbErrors } from '../../../errors.ts';

/** When a statement ends before its rows are there. */
export interface StatementLimits {
  /** From now. */
  readonly deadlineMs: number;
  /** Aborted when nobody waits for the rows any longer. */
  readonly signal?: AbortSignal | undefined;
}

/** The deadline of one statement and the end of its caller, whichever comes first. */
export class StatementEnd {
  /** Rejects when one of them is reached. */
  readonly reached: Promise<never>;
  readonly #signal: AbortSignal | undefined;
  readonly #timer: NodeJS.Timeout;
  #isReached = false;
  #stop: (() => void) | undefined;
  #reject!: (error: unknown) => void;
  readonly #abort = (): void => this.#end(this.#signal?.reason);

  constructor({ deadlineMs, signal }: StatementLimits) {
    this.reached = new Promise<never>((_, reject) => (this.#reject = reject));
    // It may be reached when nothing is waiting for it.
    this.reached.catch(() => undefined);
    this.#signal = signal;
    this.#timer = setTimeout(
      () => this.#end(dbErrors.statement_timeout({ message: `the statement did not end within ${deadlineMs} ms` })),
      deadlineMs,
    );
    signal?.addEventListener('abort', this.#abort, { once: true });
    if (signal?.aborted === true) this.#abort();
  }

  get isReached(): boolean {
    return this.#isReached;
  }

  /** What is done when it is reached; replaces what was set before. */
  set stop(stop: (() => void) | undefined) {
    this.#stop = stop;
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener('abort', this.#abort);
  }

  #end(error: unknown): void {
    this.clear();
    this.#isReached = true;
    this.#reject(error);
    this.#stop?.();
  }
}
