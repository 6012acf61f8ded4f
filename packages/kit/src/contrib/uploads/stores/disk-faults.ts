import { dbErrors } from '../../../db/errors.ts';
import { isKitError } from '../../../errors/kit-error.ts';
import { uploadErrors } from '../errors.ts';

/** What a failed call of the file system means to the caller. Paths stay in the log. */
export function storeFault(error: unknown): unknown {
  if (isKitError(error)) return error;
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG')
    return dbErrors.storage_full({ message: `The upload folder is full (${code}).`, cause: error });
  if (code === 'EEXIST') return uploadErrors.upload_url_used({ cause: error });
  if (code === 'ELOOP')
    return uploadErrors.store_unavailable({ message: 'A name in the upload folder is a symbolic link: rejected.', cause: error });
  if (typeof code === 'string' && code.startsWith('E') && !code.startsWith('ERR_'))
    return uploadErrors.store_unavailable({ message: `The upload folder cannot be used (${code}).`, cause: error });
  return error;
}
