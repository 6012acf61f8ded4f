/** The migrations of the code and the history of the database contradict each other: the author must decide. Nothing was changed. */
export class MigrationRefused extends Error {
  readonly code = 'migration_refused';

  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'MigrationRefused';
  }
}
