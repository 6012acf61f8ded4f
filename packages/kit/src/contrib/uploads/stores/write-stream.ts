import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { uploadErrors } from '../errors.ts';

export interface ExpectedBytes {
  readonly length: number;
  /** SHA-256 in base64. */
  readonly sha256: string | null;
}

/** Writes every byte that arrives, and no more than announced. One chunk is hashed while the file system writes it. */
export async function writeStream(source: Readable, handle: FileHandle, { length, sha256 }: ExpectedBytes): Promise<void> {
  const hash = sha256 === null ? null : createHash('sha256');
  let received = 0;
  let writing: Promise<unknown> = Promise.resolve();
  for await (const chunk of source as AsyncIterable<Buffer>) {
    const position = received;
    received += chunk.length;
    if (received > length) throw uploadErrors.upload_too_large({ extensions: { bytes_max: length } });
    await writing;
    writing = writeAll(handle, chunk, position);
    // Awaited with the next chunk or at the end; until then a failure must not count as unhandled.
    writing.catch(() => undefined);
    hash?.update(chunk);
  }
  await writing;
  if (received !== length) throw uploadErrors.upload_mismatch({ detail: `${received} bytes arrived; ${length} were announced.` });
  if (hash !== null && hash.digest('base64') !== sha256) throw uploadErrors.checksum_mismatch();
}

async function writeAll(handle: FileHandle, chunk: Buffer, position: number): Promise<void> {
  let written = 0;
  while (written < chunk.length) {
    const { bytesWritten } = await handle.write(chunk, written, chunk.length - written, position + written);
    written += bytesWritten;
  }
}

/** SHA-256 in base64 of a whole file. */
export async function hashOf(handle: FileHandle): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of handle.createReadStream({ start: 0, autoClose: false, highWaterMark: 1024 * 1024 }) as AsyncIterable<Buffer>)
    hash.update(chunk);
  return hash.digest('base64');
}
