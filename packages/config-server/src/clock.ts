/** Time as a parameter: tests move it by hand. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Runs something once after a delay; the result calls it off. */
  after(ms: number, run: () => void): () => void;
}

export const systemClock: Clock = {
  now: Date.now,
  after(ms, run) {
    const timer = setTimeout(run, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
