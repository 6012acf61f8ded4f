import { createHash, type Hash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { Writable, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { uploadErrors } from '../errors.ts';

export interface ExpectedBytes {
  readonly length: number;
  /** SHA-256 in base64. */
  readonly sha256: string | null;
}

/** What may wait to be written: enough for one call of the system to take sixteen chunks of a connection, and flat whatever the file's size. */
const WAITING_BYTES_MAX = 1024 * 1024;

/** Writes every byte that arrives, and no more than announced. */
export async function writeStream(source: Readable, handle: FileHandle, { length, sha256 }: ExpectedBytes): Promise<void> {
  const file = new HashedFile(handle, length, sha256 === null ? null : createHash('sha256'));
  await pipeline(source, file);
  const { received } = file;
  if (received !== length) throw uploadErrors.upload_mismatch({ detail: `${received} bytes arrived; ${length} were announced.` });
  if (sha256 !== null && file.digest() !== sha256) throw uploadErrors.checksum_mismatch();
}

/** What has come together while the file system was writing is written by one call, and hashed meanwhile. */
class HashedFile extends Writable {
  received = 0;
  readonly #handle: FileHandle;
  readonly #length: number;
  readonly #hash: Hash | null;

  constructor(handle: FileHandle, length: number, hash: Hash | null) {
    super({ highWaterMark: WAITING_BYTES_MAX });
    this.#handle = handle;
    this.#length = length;
    this.#hash = hash;
  }

  digest(): string | undefined {
    return this.#hash?.digest('base64');
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#put([chunk], done);
  }

  override _writev(chunks: readonly { readonly chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#put(
      chunks.map(({ chunk }) => chunk),
      done,
    );
  }

  #put(chunks: readonly Buffer[], done: (error?: Error | null) => void): void {
    const position = this.received;
    for (const { length } of chunks) this.received += length;
    if (this.received > this.#length) {
      done(uploadErrors.upload_too_large({ extensions: { bytes_max: this.#length } }));
      return;
    }
    // oxlint-disable-next-line promise/no-callback-in-promise -- how a stream is told
    writeAll(this.#handle, chunks, position).then(() => done(), done);
    for (const chunk of chunks) this.#hash?.update(chunk);
  }
}

/** A call may write less than it was given. */
async function writeAll(handle: FileHandle, chunks: readonly Buffer[], position: number): Promise<void> {
  let left = chunks;
  let at = position;
  while (left.length > 0) {
    const { bytesWritten } = await handle.writev(left, at);
    at += bytesWritten;
    left = after(left, bytesWritten);
  }
}

function after(chunks: readonly Buffer[], bytes: number): Buffer[] {
  let skip = bytes;
  return chunks.flatMap((chunk) => {
    const skipped = Math.min(skip, chunk.length);
    skip -= skipped;
    return skipped === chunk.length ? [] : [chunk.subarray(skipped)];
  });
}

/** SHA-256 in base64 of a whole file. */
export async function hashOf(handle: FileHandle): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of handle.createReadStream({ start: 0, autoClose: false, highWaterMark: 1024 * 1024 }) as AsyncIterable<Buffer>)
    hash.update(chunk);
  return hash.digest('base64');
}
