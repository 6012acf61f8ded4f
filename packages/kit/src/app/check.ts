/** One fault found at start-up or by `kit check`. */
export interface CheckFault {
  /** `E…` stops the start; `W…` is logged. docs/reference/checks.md explains each. */
  readonly id: string;
  /** What is wrong, naming the place. */
  readonly message: string;
  /** What to do about it. */
  readonly hint?: string;
}

/** A check of a module. Runs at start-up, after `setup`. */
export interface Check<A = unknown> {
  readonly name: string;
  run(app: A): readonly CheckFault[] | Promise<readonly CheckFault[]>;
}
