import type { Readable } from 'node:stream';
import type { Clock } from '../../../db/clock.ts';

/** An object as the store has it. */
export interface StoredObject {
  readonly size: number;
  readonly contentType: string | null;
  readonly etag: string;
  readonly versionId: string | null;
  /** SHA-256 in base64, where the store knows it. */
  readonly checksumSha256: string | null;
  readonly modifiedAt: Date;
}

export interface StoredPart {
  readonly number: number;
  readonly size: number;
  readonly etag: string;
  readonly checksumSha256: string | null;
}

export interface ListedObject {
  readonly key: string;
  readonly size: number;
  readonly modifiedAt: Date;
}

interface PresignedUpload {
  readonly id: string;
  readonly key: string;
  readonly size: number;
  readonly checksumSha256: string | null;
  readonly expiresAt: Date;
}

/** The one request an address is made for. */
export type PresignRequest =
  | (PresignedUpload & { readonly operation: 'put'; readonly contentType: string })
  | (PresignedUpload & {
      readonly operation: 'part';
      readonly multipartId: string;
      readonly number: number;
      readonly checksumSha256: string;
    })
  | {
      readonly operation: 'get';
      readonly id: string;
      readonly key: string;
      readonly contentType: string;
      readonly fileName: string;
      readonly disposition: 'inline' | 'attachment';
      readonly expiresAt: Date;
    };

/** A request for the client to make, exactly so. */
export interface SignedRequest {
  readonly method: 'PUT' | 'POST' | 'GET';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Of a POST: the form fields that come before `file`. */
  readonly fields?: Readonly<Record<string, string>>;
}

/** What a store is told by the app it works in. */
export interface StoreHost {
  readonly clock: Clock;
  /** UPLOAD_URL_KEYS, for stores whose addresses the app itself serves. */
  readonly urlKeys: readonly string[];
}

/**
 * Where the bytes are. Every method may fail with `store_unavailable`, after which the caller tries again later. Removing and aborting what is not
 * there is done.
 */
export interface UploadStore {
  /** Names the store in logs and problems: `s3`. */
  readonly name: string;
  /** In front of every key: empty, or `a/b`. */
  readonly prefix: string;
  /** Where its addresses lead, when that is not the application itself: `https://bucket.s3.example.com`. */
  readonly origin?: string | undefined;
  /** True where a URL to send to works once, and only while its upload is pending. Otherwise it works until it expires, whatever becomes of the upload. */
  readonly hasSingleUseUrls?: boolean;
  /** Called once, before anything else. */
  attach(host: StoreHost): void;
  /** A request that a client may send without further credentials: to upload, to send a part, or to download. */
  presign(request: PresignRequest): Promise<SignedRequest>;
  /** Null when there is no such object. `checksum` asks for its SHA-256 too. */
  head(key: string, options?: { readonly checksum?: boolean }): Promise<StoredObject | null>;
  /** The bytes from `start` to before `end`. With `ifMatch` it fails with `upload_changed` when the object is another one by now. */
  read(key: string, options?: { readonly start?: number; readonly end?: number; readonly ifMatch?: string }): Promise<Readable>;
  /** Copies what still has this etag, or fails with `upload_changed`. The source stays. */
  copy(from: string, to: string, options: { readonly ifMatch: string }): Promise<Pick<StoredObject, 'etag' | 'versionId'>>;
  /** Deletes an object; one that does not exist is not an error. */
  remove(key: string): Promise<void>;
  /** Every object below a prefix. */
  list(prefix: string): AsyncIterable<ListedObject>;
  /** Every part must carry its SHA-256. */
  createMultipart(key: string, options: { readonly contentType: string }): Promise<string>;
  /** The parts that have arrived. */
  listParts(key: string, multipartId: string): Promise<readonly StoredPart[]>;
  /** Joins the parts into the object. */
  completeMultipart(key: string, multipartId: string, parts: readonly StoredPart[]): Promise<void>;
  /** Ends a multipart upload and deletes its parts. */
  abortMultipart(key: string, multipartId: string): Promise<void>;
  /** Multipart uploads that were begun and neither completed nor aborted. */
  listMultiparts(prefix: string): AsyncIterable<{ readonly key: string; readonly multipartId: string; readonly startedAt: Date }>;
}
