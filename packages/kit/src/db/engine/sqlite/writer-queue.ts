import { dbErrors } from '../../errors.ts';

/** First come, first served: one writer at a time within this process. */
export class WriterQueue {
  #held = false;
  readonly #waiting: (() => void)[] = [];

  get isHeld(): boolean {
    return this.#held;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Acquires it when nobody has it. */
  tryAcquire(): boolean {
    if (this.#held) return false;
    this.#held = true;
    return true;
  }

  async acquire(deadlineMs: number): Promise<void> {
    if (this.tryAcquire()) return;
    await new Promise<void>((granted, refused) => {
      const enter = (): void => {
        clearTimeout(timer);
        granted();
      };
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        refused(dbErrors.database_busy({ message: `a transaction of this process held the SQLite writer for more than ${deadlineMs} ms` }));
      }, deadlineMs);
      this.#waiting.push(enter);
    });
  }

  release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#held = false;
    else next();
  }
}
