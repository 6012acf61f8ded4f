/** The part of a pino logger that is needed. */
interface OutageLog {
  error(details: object, message: string): void;
  warn(details: object, message: string): void;
}

/** How a service that can fail is called in the log, and what happens while it does. */
export interface OutageWords {
  /** `redis`. */
  readonly storage: string;
  /** `throttle storage`. */
  readonly what: string;
  /** `each process limits on its own until it does.` */
  readonly meanwhile: string;
  readonly details?: object;
}

/** After a failure the service is left alone this long, so that requests do not queue behind its timeout. */
const PAUSE_MS = 1000;
/** One record per failure would drown the log exactly when it is needed. */
const LOG_EVERY_MS = 10_000;

/** Calls of a service that can fail: each has a deadline, and after a failure there are none for a second. Failures are logged as errors. */
export class Outage {
  readonly #timeoutMs: number;
  readonly #words: OutageWords;
  // Real time, not the app's clock: these measure the service, and must pass while a test's clock stands still.
  #pausedUntilMs = 0;
  #loggedAtMs = Number.NEGATIVE_INFINITY;
  #failures = 0;
  log: OutageLog | undefined;

  constructor(timeoutMs: number, words: OutageWords) {
    this.#timeoutMs = timeoutMs;
    this.#words = words;
  }

  /** The result of the work; undefined where it failed, was not begun or is late. `onLate` gets a late result. */
  async attempt<T>(work: () => Promise<T>, onLate?: (value: T) => void): Promise<{ readonly value: T } | undefined> {
    if (performance.now() < this.#pausedUntilMs) return undefined;
    const working = work();
    try {
      const value = await this.#within(working);
      this.#recovered();
      return { value };
    } catch (error) {
      this.#failed(error);
      // Work that failed is not late: it has no result.
      working.then(onLate, () => undefined);
      return undefined;
    }
  }

  #failed(error: unknown): void {
    const { storage, what, meanwhile, details } = this.#words;
    this.#failures += 1;
    const nowMs = performance.now();
    this.#pausedUntilMs = nowMs + PAUSE_MS;
    if (nowMs - this.#loggedAtMs < LOG_EVERY_MS) return;
    this.#loggedAtMs = nowMs;
    this.log?.error({ err: error, storage, ...details, failures: this.#failures }, `The ${storage} ${what} does not answer: ${meanwhile}`);
  }

  #recovered(): void {
    if (this.#failures === 0) return;
    const { storage, what } = this.#words;
    this.log?.warn({ storage, failures: this.#failures }, `The ${storage} ${what} answers again.`);
    this.#failures = 0;
    this.#loggedAtMs = Number.NEGATIVE_INFINITY;
  }

  async #within<T>(work: Promise<T>): Promise<T> {
    const { storage, what } = this.#words;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, fail) => {
      timer = setTimeout(() => fail(new Error(`the ${storage} ${what} did not answer within ${this.#timeoutMs} ms`)), this.#timeoutMs);
    });
    try {
      return await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}
