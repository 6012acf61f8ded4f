import type { Clock } from '../clock.ts';

/** Under a write storm the quiet period never comes: a run waits at most this many periods. */
const CEILING_FACTOR = 4;

/** Runs once nothing has changed for a while. */
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

  /** `touch` only records the time; when the timer fires, this checks whether to wait longer. */
  #due(): void {
    const first = this.#first!;
    const now = this.#clock.now();
    const due = Math.min(this.#last + this.#quietMs, first + CEILING_FACTOR * this.#quietMs);
    const wait = due - now;
    // After the clock was set back the times cannot be compared, but the timer did wait.
    if (wait > 0 && now >= this.#last) {
      this.#arm(wait);
      return;
    }
    this.#first = undefined;
    this.#run(first);
  }
}
