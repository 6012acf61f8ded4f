import { constraintViolation } from '../../db/constraint-violation.ts';
import type { Db } from '../../db/db.ts';
import { uploadErrors } from './errors.ts';
import { uploadsOf } from './in-use.ts';
import { recordChange, type ChangeContext } from './record-change.ts';
import { objectsOf } from './reject.ts';
import { removeObjects } from './remove-objects.ts';
import { addRemovals, deleteUpload, lockUpload, type UploadScope } from './store.ts';

/** Deletes the row and has its objects removed. What still refers to the upload keeps it. */
export async function removeUpload(db: Db, scope: UploadScope | null, id: string, context: ChangeContext): Promise<void> {
  const { clock } = uploadsOf(db);
  const remove = async (tx: Db): Promise<readonly string[]> => {
    const upload = await lockUpload(tx, scope, id);
    if (upload === null) throw uploadErrors.upload_not_found();
    await deleteUpload(tx, upload.id);
    await recordChange(tx, 'deleted', { before: upload, after: null }, context);
    return addRemovals(tx, clock.now(), objectsOf(upload));
  };
  let ids: readonly string[];
  try {
    ids = await db.transaction(remove);
  } catch (error) {
    const kind = constraintViolation(error)?.kind;
    // PostgreSQL before 18 calls both the same.
    if (kind === 'restrict' || kind === 'foreign_key') throw uploadErrors.upload_in_use({ cause: error });
    throw error;
  }
  await removeObjects(db, { ids });
}
