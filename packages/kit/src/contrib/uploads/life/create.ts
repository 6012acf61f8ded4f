import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { normalChecksum } from '../declare/checksum.ts';
import { displayName } from '../declare/file-name.ts';
import { uploadErrors } from '../errors.ts';
import { uploadsOf } from '../rows/in-use.ts';
import { newObjectKey } from '../declare/object-key.ts';
import { signParts, type PartAddress, type RequestedPart } from './parts.ts';
import { acceptedType, type CompletePolicy } from '../declare/policy.ts';
import { recordChange, type ChangeContext } from '../rows/record-change.ts';
import { objectsOf } from './reject.ts';
import { scheduleRemovals } from './remove-objects.ts';
import { changeState, deleteUpload, insertUpload, lockOwner, usageOf, type UploadScope } from '../rows/store.ts';
import { partCount, type Upload } from '../declare/upload.ts';
import type { SignedRequest } from '../declare/upload-store.ts';

export interface NewUpload extends ChangeContext {
  readonly scope: UploadScope;
  readonly policy: CompletePolicy;
  readonly filename: string;
  readonly contentType: string;
  readonly size: number;
  readonly checksumSha256?: string | null | undefined;
  readonly multipart?: boolean | undefined;
  /** Of a multipart upload: the checksums of its first parts, so that their addresses come at once. */
  readonly partChecksums?: readonly string[] | undefined;
}

export type CreatedUpload =
  | { readonly upload: Upload; readonly request: SignedRequest }
  | { readonly upload: Upload; readonly parts: readonly PartAddress[] };

/** Part addresses that come with a new upload; more are asked for. */
export const FIRST_PARTS = 100;

/** Checks the policy, writes the row and signs the address. No byte has moved when it returns. */
export async function createUpload(db: Db, input: NewUpload): Promise<CreatedUpload> {
  const { store, clock, place } = uploadsOf(db);
  const { policy, scope, size, multipart = false } = input;
  const checksum = input.checksumSha256 ?? null;
  const type = acceptedType(policy, { contentType: input.contentType, size, checksumSha256: checksum, multipart });
  const now = clock.now();
  const expiresAt = new Date(now.getTime() + policy.expiresInSeconds * 1000);
  const filename = displayName(input.filename);
  const upload = await db.transaction(async (tx) => {
    await requireRoom(tx, scope, policy, size, now);
    const created = await insertUpload(tx, {
      owner_id: scope.owner,
      tenant_key: scope.tenantKey,
      state: 'pending',
      filename,
      content_type: type,
      size: BigInt(size),
      checksum_sha256: checksum === null ? null : normalChecksum(checksum),
      pending_key: newObjectKey(place, 'pending', scope.owner, filename),
      final_key: null,
      etag: null,
      version_id: null,
      multipart_id: null,
      part_size: multipart ? policy.partBytes : null,
      received_at: null,
      reason: null,
      created_at: now,
      expires_at: expiresAt,
      complete_by: new Date(expiresAt.getTime() + policy.graceSeconds * 1000),
      completed_at: null,
      scan_due_at: null,
      scan_attempts: 0,
    });
    await recordChange(tx, 'created', { before: null, after: created }, input);
    return created;
  }, CONFLICT_RETRIES);
  if (multipart) return beginMultipart(db, upload, input);
  const request = await store.presign({
    operation: 'put',
    id: upload.id,
    key: upload.pending_key,
    contentType: type,
    size,
    checksumSha256: upload.checksum_sha256,
    expiresAt,
  });
  return { upload, request };
}

/** The row comes first: whatever the store begins afterwards is found again through it. */
async function beginMultipart(db: Db, upload: Upload, { partChecksums = [], ...context }: NewUpload): Promise<CreatedUpload> {
  const { store } = uploadsOf(db);
  let multipartId: string;
  try {
    multipartId = await store.createMultipart(upload.pending_key, { contentType: upload.content_type });
  } catch (error) {
    // The store may have begun one although its response was lost.
    await db.transaction(async (tx) => {
      await deleteUpload(tx, upload.id);
      await recordChange(tx, 'deleted', { before: upload, after: null }, context);
      await scheduleRemovals(tx, objectsOf(tx, upload));
    }, CONFLICT_RETRIES);
    throw error;
  }
  const begun = await changeState(db, upload.id, 'pending', { multipart_id: multipartId });
  if (begun === null) throw uploadErrors.upload_expired();
  const asked: RequestedPart[] = partChecksums
    .slice(0, Math.min(partCount(begun), FIRST_PARTS))
    .map((checksumSha256, index) => ({ number: index + 1, checksumSha256 }));
  return { upload: begun, parts: await signParts(db, begun, asked) };
}

async function requireRoom(
  tx: Db,
  scope: UploadScope,
  { quotaPerOwner: { bytes, count } }: CompletePolicy,
  size: number,
  now: Date,
): Promise<void> {
  if (bytes === null && count === null) return;
  await lockOwner(tx, scope, now);
  const used = await usageOf(tx, scope);
  if (count !== null && used.count + 1 > count)
    throw uploadErrors.quota_exceeded({ extensions: { limit: 'count', max: count, used: used.count } });
  if (bytes !== null && used.bytes + size > bytes)
    throw uploadErrors.quota_exceeded({ extensions: { limit: 'bytes', max: bytes, used: used.bytes } });
}
