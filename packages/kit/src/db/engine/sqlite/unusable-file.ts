import { DAMAGED_FILE_REMEDY } from '../../errors.ts';
import { resultCode } from './result-code.ts';

/** A SQLite file that cannot be opened. The message names the file and says what to do. */
export class UnusableFile extends Error {
  readonly code = 'unusable_database_file';

  constructor(file: string, cause: unknown) {
    const { message } = cause as Error;
    super(`The database file ${file} cannot be opened: ${message.replace(/\.$/, '')}. ${remedyOf(cause)}`, { cause });
    this.name = 'UnusableFile';
  }
}

const REMEDIES: Readonly<Record<number, string>> = {
  // SQLITE_READONLY: journal_mode = wal writes to the file.
  8: 'This user needs the right to write to it and to its folder.',
  // SQLITE_CORRUPT
  11: `It is damaged. ${DAMAGED_FILE_REMEDY}`,
  // SQLITE_FULL
  13: 'Its disk is full: make room on it.',
  // SQLITE_NOTADB
  26: 'It is not a SQLite database, or it is damaged. Correct the database URL, or restore a backup.',
};

function remedyOf(cause: unknown): string {
  return REMEDIES[resultCode(cause) ?? 0] ?? 'The address must name a file, not a folder, that this user may create, read and write.';
}

/** What SQLite or the file system says about the file itself; others, such as a file that stays locked, are errors of their own. */
export function isAboutFile(error: unknown): boolean {
  return resultCode(error) !== undefined || (error as NodeJS.ErrnoException | null)?.syscall === 'mkdir';
}
