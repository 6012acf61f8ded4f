import type { Db } from '../../db/db.ts';
import type { KitError } from '../../errors/kit-error.ts';
import { uploadErrors } from './errors.ts';
import { recordChange, type ChangeContext } from './record-change.ts';
import { scheduleRemovals } from './remove-objects.ts';
import { changeState } from './store.ts';
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
  const removals = await db.transaction(async (tx) => {
    const after = await changeState(tx, upload.id, from, { state: 'rejected', reason });
    if (after === null) return null;
    await recordChange(tx, 'rejected', { before: upload, after }, context);
    return scheduleRemovals(tx, objectsOf(upload));
  });
  await removals?.afterCommit(db);
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
