/** Ends what one command printed. No program prints a NUL. */
export const END_OF_RUN = '\0';

export interface ProgramCommand {
  /** Of the program, below `src`. */
  readonly main: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
}
