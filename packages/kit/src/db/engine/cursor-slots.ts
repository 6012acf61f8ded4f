import { INPUT_LIMITS } from '../../options/input-limits.ts';
import { dbErrors } from '../errors.ts';

/** How many streamed queries a pool of `connections` may serve at the same time; at least one. */
export function cursorsMaxOf(connections: number): number {
  return Math.max(1, Math.floor((connections * INPUT_LIMITS.cursorsPercent) / 100));
}

/**
 * Streamed queries keep a connection for as long as their reader likes: an export waits for its client. They get a part of the pool, so that
 * a connection is left for everything else. First come, first served.
 */
export class CursorSlots {
  readonly #max: number;
  #used = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(connections: number) {
    this.#max = cursorsMaxOf(connections);
  }

  get used(): number {
    return this.#used;
  }

  /** The rows, while a slot is taken for them. Rejects with `too_many_cursors` when none is free in time. */
  async *during<R>(waitMsMax: number, rows: () => AsyncIterable<R>): AsyncIterableIterator<R> {
    await this.#acquire(waitMsMax);
    try {
      yield* rows();
    } finally {
      this.#release();
    }
  }

  async #acquire(waitMsMax: number): Promise<void> {
    if (this.#used < this.#max) {
      this.#used += 1;
      return;
    }
    if (waitMsMax <= 0) throw this.#refusal();
    await new Promise<void>((granted, refused) => {
      const enter = (): void => {
        clearTimeout(timer);
        granted();
      };
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        refused(this.#refusal());
      }, waitMsMax);
      this.#waiting.push(enter);
    });
  }

  #release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#used -= 1;
    else next();
  }

  #refusal(): Error {
    return dbErrors.too_many_cursors({
      message: `${this.#max} streamed queries are open, the most for this database`,
      extensions: { cursors_max: this.#max },
    });
  }
}
