import type { Clock } from '../clock.ts';

/** Under a write storm the quiet period never comes; this many of them is the longest anybody waits. */
const CEILING_FACTOR = 4;

/** Runs once things have been quiet for a while. */
export class Debounce {
  readonly #quietMs: number;
  readonly #clock: Clock;
  readonly #run: (firstTouchedAt: number) => void;
  #first: number | undefined;
  #last = 0;
  #cancel: (() => void) | undefined;

  constructor(quietMs: number, clock: Clock, run: (firstTouchedAt: number) => void) {
    this.#quietMs = quietMs;
    this.#clock = clock;
    this.#run = run;
  }

  touch(): void {
    this.#last = this.#clock.now();
    if (this.#first !== undefined) return;
    this.#first = this.#last;
    this.#arm(this.#quietMs);
  }

  cancel(): void {
    this.#cancel?.();
    this.#first = undefined;
  }

  #arm(ms: number): void {
    this.#cancel = this.#clock.after(ms, () => this.#due());
  }

  /** Touches only note their time; the one timer finds out here whether it came too early. */
  #due(): void {
    const first = this.#first!;
    const now = this.#clock.now();
    const due = Math.min(this.#last + this.#quietMs, first + CEILING_FACTOR * this.#quietMs);
    const wait = due - now;
    // A clock that was set back tells nothing; the timer did wait.
    if (wait > 0 && now >= this.#last) {
      this.#arm(wait);
      return;
    }
    this.#first = undefined;
    this.#run(first);
  }
}
