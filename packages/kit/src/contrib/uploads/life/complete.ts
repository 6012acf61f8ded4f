import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import { buffer } from 'node:stream/consumers';
import type { Db } from '../../../db/engine/db.ts';
import { isKitError } from '../../../errors/kit-error.ts';
import { uploadErrors } from '../errors.ts';
import { uploadsOf } from '../rows/in-use.ts';
import { contentMatches, SNIFFED_BYTES } from '../declare/media-type.ts';
import { newObjectKey } from '../declare/object-key.ts';
import { partsFault, requireKnownParts, type RequestedPart } from './parts.ts';
import { recordChange, type ChangeContext } from '../rows/record-change.ts';
import { rejectUpload, sendable } from './reject.ts';
import { scheduleRemovals } from './remove-objects.ts';
import { addRemovals, changeState, findUpload, withdrawRemoval } from '../rows/store.ts';
import type { Upload } from '../declare/upload.ts';
import type { StoredObject } from '../declare/upload-store.ts';

export interface Completion extends ChangeContext {
  /** Of a multipart upload: what its sender says of each part. */
  readonly parts?: readonly RequestedPart[];
}

/** Longer than any copy takes. A copy that no upload has adopted by then is removed. */
const COPY_MS_MAX = 6 * 3_600_000;

/** What a store reports of objects that are not as they were a moment ago. */
const STORE_CODES = ['upload_changed', 'not_uploaded', 'upload_url_used', 'store_unavailable'] as const;

/**
 * Verifies what arrived and makes it the upload's file. Repeatable, and safe against itself: everything slow happens outside of transactions, each
 * attempt copies to a key of its own, and the one update from `pending` decides whose copy counts. The pending object goes only after that, so a
 * process that dies in between has lost nothing.
 */
export async function completeUpload(db: Db, upload: Upload, completion: Completion): Promise<Upload> {
  const { clock, store, place } = uploadsOf(db);
  if (upload.state !== 'pending') return settled(upload);
  if (upload.complete_by.getTime() < clock.now().getTime()) throw uploadErrors.upload_expired();
  try {
    const found = await verified(db, upload, completion);
    const finalKey = newObjectKey(place, 'final', upload.owner_id, upload.filename);
    // Written before the copy is made: a process that ends now leaves no object that nothing removes.
    const now = clock.now();
    const [removalId = ''] = await addRemovals(db, now, [{ key: finalKey, dueAt: new Date(now.getTime() + COPY_MS_MAX) }]);
    const copied = await store.copy(upload.pending_key, finalKey, { ifMatch: found.etag });
    return await adopt(db, upload, { ...copied, finalKey, removalId }, completion);
  } catch (error) {
    // Another attempt may have been faster, and its verdict counts: this one finds its parts or its object gone, or there already.
    const current = STORE_CODES.some((code) => isKitError(error, code)) ? await findUpload(db, upload.id) : upload;
    if (current === null) throw uploadErrors.upload_not_found();
    if (current.state !== 'pending') return settled(current);
    throw error;
  }
}

/** The answer for an upload that is no longer pending. */
function settled(upload: Upload): Upload {
  if (upload.state === 'expired') throw uploadErrors.upload_expired();
  if (upload.state === 'rejected') throw uploadErrors.upload_mismatch({ detail: upload.reason ?? undefined });
  return upload;
}

async function verified(db: Db, upload: Upload, completion: Completion): Promise<StoredObject> {
  const { store } = uploadsOf(db);
  const { pending_key: key, checksum_sha256: checksum } = upload;
  const reject = (code: 'upload_mismatch' | 'checksum_mismatch', reason: string) =>
    rejectUpload(db, upload, 'pending', code, reason, completion);
  if (upload.part_size !== null) await assemble(db, upload, completion);
  const found = await store.head(key, { checksum: checksum !== null });
  if (found === null) throw uploadErrors.not_uploaded();
  const size = Number(upload.size);
  if (found.size !== size) throw await reject('upload_mismatch', `The file has ${found.size} bytes; ${size} were announced.`);
  if (found.contentType !== null && found.contentType !== upload.content_type)
    throw await reject('upload_mismatch', 'The file was sent with another type than announced.');
  if (checksum !== null && found.checksumSha256 === null)
    throw uploadErrors.store_unavailable({ message: 'The store did not report the SHA-256 of an object that was signed with one.' });
  if (checksum !== null && found.checksumSha256 !== checksum)
    throw await reject('checksum_mismatch', 'The SHA-256 of the file is not the announced one.');
  const head =
    size === 0
      ? Buffer.alloc(0)
      : await buffer(await store.read(key, { start: 0, end: Math.min(size, SNIFFED_BYTES), ifMatch: found.etag }));
  if (!contentMatches(upload.content_type, head)) throw await reject('upload_mismatch', `The content is not ${upload.content_type}.`);
  return found;
}

/** Puts the parts together, unless another attempt did. */
async function assemble(db: Db, upload: Upload, { parts = [], ...context }: Completion): Promise<void> {
  const { store } = uploadsOf(db);
  const { pending_key: key, multipart_id } = upload;
  if (multipart_id === null) throw uploadErrors.not_uploaded();
  if ((await store.head(key)) !== null) return;
  requireKnownParts(upload, parts);
  let fault: ReturnType<typeof partsFault>;
  try {
    const stored = await store.listParts(key, multipart_id);
    fault = partsFault(upload, stored, parts);
    if (fault === null) await store.completeMultipart(key, multipart_id, stored);
  } catch (error) {
    // The parts are gone as soon as another attempt has put them together.
    if ((await store.head(key)) === null) throw error;
    return;
  }
  if (fault === 'size')
    throw await rejectUpload(db, upload, 'pending', 'upload_mismatch', 'The parts do not have the announced sizes.', context);
  if (fault === 'checksum')
    throw await rejectUpload(db, upload, 'pending', 'checksum_mismatch', 'The SHA-256 of a part is not the announced one.', context);
}

interface Copy {
  readonly finalKey: string;
  /** Removes the copy unless an upload adopts it. */
  readonly removalId: string;
  readonly etag: string;
  readonly versionId: string | null;
}

/** The one update that decides. The second one removes its copy and answers like the first. */
async function adopt(db: Db, upload: Upload, { finalKey, removalId, etag, versionId }: Copy, context: ChangeContext): Promise<Upload> {
  const { clock, scan, jobs } = uploadsOf(db);
  const now = clock.now();
  const verdict =
    scan === null
      ? ({ state: 'complete', completed_at: now } as const)
      : ({ state: 'quarantined', scan_due_at: now, completed_at: null } as const);
  const outcome = await db.transaction(async (tx) => {
    const after = await changeState(tx, upload.id, 'pending', { ...verdict, final_key: finalKey, etag, version_id: versionId });
    const isKept = await withdrawRemoval(tx, removalId);
    if (after !== null && !isKept)
      throw uploadErrors.store_unavailable({ message: 'The copy of an upload took so long that it was removed before it was adopted.' });
    // Also where another attempt was faster: this one may have put the parts together again after that one's object was removed.
    const superfluous = [{ key: upload.pending_key }, ...(after !== null ? sendable(tx, upload) : isKept ? [{ key: finalKey }] : [])];
    const removals = await scheduleRemovals(tx, superfluous);
    if (after !== null && scan !== null) await jobs()?.scan(tx, upload.id);
    if (after !== null) await recordChange(tx, scan === null ? 'completed' : 'quarantined', { before: upload, after }, context);
    return { after, removals };
  }, CONFLICT_RETRIES);
  await outcome.removals.afterCommit(db);
  if (outcome.after !== null) return outcome.after;
  const current = await findUpload(db, upload.id);
  if (current === null) throw uploadErrors.upload_not_found();
  return settled(current);
}
