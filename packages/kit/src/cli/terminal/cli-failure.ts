/** Ends the program with its sentence and an exit code: 1 the work failed, 2 the command line was wrong. */
export class CliFailure extends Error {
  readonly exitCode: 1 | 2;

  constructor(message: string, exitCode: 1 | 2 = 1, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CliFailure';
    this.exitCode = exitCode;
  }
}
