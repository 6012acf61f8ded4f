import type { Row } from '../../../db/declare/rows.ts';
import type { uploads } from '../models.ts';
import type { UploadState } from './upload-state.ts';

export type Upload = Row<typeof uploads>;

/** An upload as clients see it. */
export interface UploadRecord {
  readonly id: string;
  readonly state: UploadState;
  readonly filename: string;
  readonly content_type: string;
  readonly size: number;
  readonly checksum_sha256: string | null;
  /** Why it was rejected. */
  readonly reason: string | null;
  readonly created_at: Date;
  readonly expires_at: Date;
  readonly completed_at: Date | null;
}

export function uploadRecord(upload: Upload): UploadRecord {
  const { id, state, filename, content_type, checksum_sha256, reason, created_at, expires_at, completed_at } = upload;
  return { id, state, filename, content_type, size: Number(upload.size), checksum_sha256, reason, created_at, expires_at, completed_at };
}

/** What audit entries and events say of an upload; keys of the store stay in it. */
export function uploadFacts(upload: Upload): Readonly<Record<string, unknown>> {
  const { owner_id, state, filename, content_type, checksum_sha256, reason } = upload;
  return { owner_id, state, filename, content_type, size: Number(upload.size), checksum_sha256, reason };
}

/** How many parts a multipart upload has; the last may be shorter. */
export function partCount({ size, part_size }: Pick<Upload, 'size' | 'part_size'>): number {
  return part_size === null ? 0 : Math.max(1, Math.ceil(Number(size) / part_size));
}

export function sizeOfPart({ size, part_size }: Pick<Upload, 'size' | 'part_size'>, number: number): number {
  const each = part_size ?? 0;
  return Math.min(each, Number(size) - (number - 1) * each);
}
