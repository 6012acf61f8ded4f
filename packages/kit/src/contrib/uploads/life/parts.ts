import type { Db } from '../../../db/engine/db.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import { normalChecksum } from '../declare/checksum.ts';
import { uploadErrors } from '../errors.ts';
import { uploadsOf } from '../rows/in-use.ts';
import type { CompletePolicy } from '../declare/policy.ts';
import { changeState } from '../rows/store.ts';
import { partCount, sizeOfPart, type Upload } from '../declare/upload.ts';
import type { SignedRequest, StoredPart } from '../declare/upload-store.ts';

export interface RequestedPart {
  readonly number: number;
  /** SHA-256 in base64: a store that was promised checksums takes no part without. */
  readonly checksumSha256: string;
}

export interface PartAddress extends SignedRequest {
  readonly number: number;
  readonly size: number;
}

/** A multipart upload is kept open by asking for addresses, but not for longer than this after it was created. */
const MULTIPART_SECONDS_MAX = 7 * 86_400;

/** New addresses for some parts, and what has arrived: everything a client needs to go on after an interruption. */
export async function resumeParts(
  db: Db,
  upload: Upload,
  policy: CompletePolicy,
  asked: readonly RequestedPart[],
): Promise<{ readonly upload: Upload; readonly parts: readonly PartAddress[]; readonly uploaded: readonly StoredPart[] }> {
  const { store } = uploadsOf(db);
  const { multipart_id } = upload;
  if (upload.part_size === null || multipart_id === null) throw uploadErrors.not_multipart();
  requireKnownParts(upload, asked);
  const open = await keepOpen(db, upload, policy);
  return { upload: open, parts: await signParts(db, open, asked), uploaded: await store.listParts(open.pending_key, multipart_id) };
}

/** A number that the upload does not have is a mistake of the request: it says nothing about the bytes that have arrived. */
export function requireKnownParts(upload: Upload, named: readonly RequestedPart[]): void {
  const count = partCount(upload);
  const message = count === 1 ? 'The upload has 1 part.' : `The upload has ${count} parts.`;
  const errors = named.flatMap(({ number }, index) =>
    number > count ? [{ location: ['body', 'parts', index, 'number'], code: 'out_of_range', message }] : [],
  );
  if (errors.length > 0) throw coreErrors.validation_error({ errors });
}

async function keepOpen(db: Db, upload: Upload, policy: CompletePolicy): Promise<Upload> {
  const { clock } = uploadsOf(db);
  const now = clock.now().getTime();
  if (upload.state !== 'pending' || upload.complete_by.getTime() < now) throw uploadErrors.upload_expired();
  const latest = upload.created_at.getTime() + MULTIPART_SECONDS_MAX * 1000;
  const expires = new Date(Math.min(now + policy.expiresInSeconds * 1000, latest));
  const changes = { expires_at: expires, complete_by: new Date(expires.getTime() + policy.graceSeconds * 1000) };
  const kept = await changeState(db, upload.id, 'pending', changes);
  if (kept === null) throw uploadErrors.upload_expired();
  return kept;
}

export async function signParts(db: Db, upload: Upload, asked: readonly RequestedPart[]): Promise<PartAddress[]> {
  const { store } = uploadsOf(db);
  const { id, pending_key: key, multipart_id, expires_at: expiresAt } = upload;
  return Promise.all(
    asked.map(async ({ number, checksumSha256 }) => {
      const size = sizeOfPart(upload, number);
      const part = { number, size, checksumSha256: normalChecksum(checksumSha256) };
      const request = await store.presign({ operation: 'part', id, key, multipartId: multipart_id ?? '', ...part, expiresAt });
      return { ...request, number, size };
    }),
  );
}

/** Numbers named in an error. */
const NAMED_MAX = 20;

/** Every part is there, with its exact size and the checksum its sender announced. Throws what is missing; returns what differs. */
export function partsFault(upload: Upload, stored: readonly StoredPart[], announced: readonly RequestedPart[]): 'size' | 'checksum' | null {
  const byNumber = new Map(stored.map((part) => [part.number, part]));
  const count = partCount(upload);
  const missing = Array.from({ length: count }, (_, index) => index + 1).filter((number) => !byNumber.has(number));
  if (missing.length > 0) throw uploadErrors.not_uploaded({ extensions: { missing_parts: missing.slice(0, NAMED_MAX) } });
  if (stored.length !== count || stored.some(({ number, size }) => size !== sizeOfPart(upload, number))) return 'size';
  if (stored.some(({ checksumSha256 }) => checksumSha256 === null)) return 'checksum';
  const differs = ({ number, checksumSha256 }: RequestedPart) => byNumber.get(number)?.checksumSha256 !== normalChecksum(checksumSha256);
  return announced.some(differs) ? 'checksum' : null;
}
