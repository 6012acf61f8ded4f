import { dbErrors } from '../../errors.ts';
import { resultCode } from './result-code.ts';

const SQLITE_READONLY = 8;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_NOTADB = 26;

/** A file that cannot be written, a full disk and a damaged file are for the operator to mend and for the caller to wait for; everything else stays what it is. */
export function translateFailure(error: unknown): unknown {
  switch (resultCode(error)) {
    case SQLITE_READONLY:
      return dbErrors.database_read_only({ cause: error, message: (error as Error).message });
    case SQLITE_FULL:
      return dbErrors.storage_full({ cause: error, message: (error as Error).message });
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return dbErrors.database_damaged({ cause: error, message: (error as Error).message });
    default:
      return error;
  }
}
