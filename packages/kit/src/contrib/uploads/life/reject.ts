import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { KitError } from '../../../errors/kit-error.ts';
import { limitLockWait } from '../../../work/lock-patience.ts';
import { uploadErrors } from '../errors.ts';
import { uploadsOf } from '../rows/in-use.ts';
import { recordChange, type ChangeContext } from '../rows/record-change.ts';
import { scheduleRemovals } from './remove-objects.ts';
import { ANY_MULTIPART, changeState, type RemovableObject } from '../rows/store.ts';
import type { Upload } from '../declare/upload.ts';
import type { UploadState } from '../declare/upload-state.ts';

/** Rejects an upload permanently and has its objects removed; returns the error to answer with. */
export async function rejectUpload(
  db: Db,
  upload: Upload,
  from: UploadState,
  code: 'upload_mismatch' | 'checksum_mismatch' | 'upload_infected',
  reason: string,
  context: ChangeContext,
): Promise<KitError> {
  const removals = await db.transaction(async (tx) => {
    // A verdict that waits for a locked row would hold up the scans behind it.
    if (from === 'quarantined') await limitLockWait(tx);
    const after = await changeState(tx, upload.id, from, { state: 'rejected', reason });
    if (after === null) return null;
    await recordChange(tx, 'rejected', { before: upload, after }, context);
    return scheduleRemovals(tx, objectsOf(tx, upload));
  }, CONFLICT_RETRIES);
  await removals?.afterCommit(db);
  return uploadErrors[code]({ detail: reason });
}

/** S3 accepts a request that it has begun to read before its URL expired; and clocks differ. */
const URL_MARGIN_MS = 60_000;

/** Everything an upload may have in the store, and what may still be sent to it. */
export function objectsOf(db: Db, upload: Upload): RemovableObject[] {
  const { pending_key, final_key, multipart_id, part_size, state, owner_id, tenant_key, size } = upload;
  const heldFor = { owner: owner_id, tenantKey: tenant_key, size };
  // A process that ended between beginning a multipart upload and storing its id has left one that nothing knows.
  const multipartId = multipart_id ?? (part_size === null ? null : ANY_MULTIPART);
  return [
    ...(state === 'pending' ? [{ key: pending_key, multipartId }] : []),
    ...(final_key === null ? [] : [{ key: final_key }]),
    ...sendable(db, upload, heldFor),
  ];
}

/**
 * The pending object once more, when its URL has expired: until then a client can send it again, whatever was removed. Empty where the store
 * itself takes nothing for an upload that is over.
 */
export function sendable(
  db: Db,
  { pending_key, part_size, expires_at }: Upload,
  heldFor?: NonNullable<RemovableObject['heldFor']>,
): RemovableObject[] {
  const { store, clock } = uploadsOf(db);
  // Parts go to a multipart upload, which is over permanently.
  if (store.hasSingleUseUrls === true || part_size !== null) return [];
  const dueAt = new Date(expires_at.getTime() + URL_MARGIN_MS);
  return dueAt.getTime() <= clock.now().getTime() ? [] : [{ key: pending_key, dueAt, ...(heldFor === undefined ? {} : { heldFor }) }];
}
