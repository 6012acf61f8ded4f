import { createHash } from 'node:crypto';

export interface S3Object {
  readonly bytes: Buffer;
  readonly contentType: string;
  readonly etag: string;
  readonly versionId: string;
  readonly sha256: string | null;
  readonly modifiedAt: Date;
}

export interface S3Multipart {
  readonly key: string;
  readonly contentType: string;
  /** Created with `x-amz-checksum-algorithm: SHA256`: every part must carry one. */
  readonly checksums: boolean;
  readonly startedAt: Date;
  readonly parts: Map<number, { readonly bytes: Buffer; readonly etag: string; readonly sha256: string | null }>;
}

export const md5 = (bytes: Buffer) => createHash('md5').update(bytes).digest('hex');
export const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('base64');

/** What the bucket holds. Every write is a new version; the newest is what a key means. */
export class S3Objects {
  readonly objects = new Map<string, S3Object>();
  /** Everything ever written, oldest first, removed or not. */
  readonly versions: { readonly key: string; readonly object: S3Object }[] = [];
  readonly multiparts = new Map<string, S3Multipart>();

  put(key: string, object: Omit<S3Object, 'versionId'>): S3Object {
    const stored = { ...object, versionId: `v${this.versions.length + 1}` };
    this.objects.set(key, stored);
    this.versions.push({ key, object: stored });
    return stored;
  }

  keys(prefix = ''): string[] {
    return [...this.objects.keys()].filter((key) => key.startsWith(prefix)).toSorted();
  }
}
