import type { Fault } from '../../options/fault.ts';

export type CheckFault = Fault;

/** A check of a module. Runs at start-up, after `setup`. `A` is the App; it is a parameter so that this file needs no module. */
export interface Check<A = unknown> {
  /** Names the check in the output of `kit check`. */
  readonly name: string;
  /** Returns what is wrong; an empty list when nothing is. */
  run(app: A): readonly CheckFault[] | Promise<readonly CheckFault[]>;
}
