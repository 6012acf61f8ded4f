import { dbErrors } from '../errors.ts';
import { resultCode } from './result-code.ts';

const SQLITE_FULL = 13;

/** A full disk is for the operator to mend and for the caller to wait for; everything else stays what it is. */
export function translateFailure(error: unknown): unknown {
  if (resultCode(error) === SQLITE_FULL) return dbErrors.storage_full({ cause: error, message: (error as Error).message });
  return error;
}
