import type { Db } from '../../db/db.ts';
import type { KitError } from '../../errors/kit-error.ts';
import { uploadErrors } from './errors.ts';
import { uploadsOf } from './in-use.ts';
import { recordChange, type ChangeContext } from './record-change.ts';
import { removeObjects } from './remove-objects.ts';
import { addRemovals, changeState } from './store.ts';
import type { Upload } from './upload.ts';
import type { UploadState } from './upload-state.ts';

/** Rejects an upload for good and has its objects removed; returns the error to answer with. */
export async function rejectUpload(
  db: Db,
  upload: Upload,
  from: UploadState,
  code: 'upload_mismatch' | 'checksum_mismatch' | 'upload_infected',
  reason: string,
  context: ChangeContext,
): Promise<KitError> {
  const { clock } = uploadsOf(db);
  const ids = await db.transaction(async (tx) => {
    const after = await changeState(tx, upload.id, from, { state: 'rejected', reason });
    if (after === null) return [];
    await recordChange(tx, 'rejected', { before: upload, after }, context);
    return addRemovals(tx, clock.now(), objectsOf(upload));
  });
  await removeObjects(db, { ids });
  return uploadErrors[code]({ detail: reason });
}

/** Everything an upload may have in the store. */
export function objectsOf({
  pending_key,
  final_key,
  multipart_id,
  state,
}: Upload): { readonly key: string; readonly multipartId?: string | null }[] {
  return [
    ...(state === 'pending' ? [{ key: pending_key, multipartId: multipart_id }] : []),
    ...(final_key === null ? [] : [{ key: final_key }]),
  ];
}
