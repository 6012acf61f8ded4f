/** One fault found at start-up or by `kit check`. */
export interface Fault {
  /** `E…` stops the start; `W…` is logged. `kit explain` explains each. */
  readonly id: string;
  /** What is wrong, naming the place. */
  readonly message: string;
  /** What to do about it. */
  readonly hint?: string | undefined;
}
