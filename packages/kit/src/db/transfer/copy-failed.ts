/** Why a copy is not complete. Nothing of the source was changed. */
export class CopyFailed extends Error {
  readonly code = 'copy_failed';
  readonly problems: readonly string[];

  constructor(problems: readonly string[], cause?: unknown) {
    super(problems.join('\n'), cause === undefined ? undefined : { cause });
    this.name = 'CopyFailed';
    this.problems = problems;
  }
}
