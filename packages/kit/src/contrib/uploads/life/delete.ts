import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import { constraintViolation } from '../../../db/engine/constraint-violation.ts';
import type { Db } from '../../../db/engine/db.ts';
import { uploadErrors } from '../errors.ts';
import { recordChange, type ChangeContext } from '../rows/record-change.ts';
import { objectsOf } from './reject.ts';
import { scheduleRemovals } from './remove-objects.ts';
import { deleteUpload, lockUpload, type UploadScope } from '../rows/store.ts';

/** Deletes the row and has its objects removed. What still refers to the upload keeps it. */
export async function removeUpload(db: Db, scope: UploadScope | null, id: string, context: ChangeContext): Promise<void> {
  const remove = async (tx: Db) => {
    const upload = await lockUpload(tx, scope, id);
    if (upload === null) throw uploadErrors.upload_not_found();
    await deleteUpload(tx, upload.id);
    await recordChange(tx, 'deleted', { before: upload, after: null }, context);
    return scheduleRemovals(tx, objectsOf(tx, upload));
  };
  try {
    const removals = await db.transaction(remove, CONFLICT_RETRIES);
    await removals.afterCommit(db);
  } catch (error) {
    const kind = constraintViolation(error)?.kind;
    // PostgreSQL before 18 calls both the same.
    if (kind === 'restrict' || kind === 'foreign_key') throw uploadErrors.upload_in_use({ cause: error });
    throw error;
  }
}
