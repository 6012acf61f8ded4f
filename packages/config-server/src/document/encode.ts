import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Table } from './value.ts';

const gzipBuffer = promisify(gzip);
const brotliBuffer = promisify(brotliCompress);

/** Below this a compressed body saves less than its headers cost. */
const COMPRESSED_BYTES_MIN = 1024;

export type Encoding = 'identity' | 'gzip' | 'br';

/**
 * A document as it leaves the server. Bytes, tag and compressed forms are each made when the first caller asks for them and then
 * kept: otherwise 1,000 sections would spend much of their start, and every `/check`, on bytes that are not read.
 */
export class EncodedDocument {
  readonly #document: Table;
  #body: Buffer | undefined;
  #hash: string | undefined;
  #gzip: Promise<Buffer> | undefined;
  #brotli: Promise<Buffer> | undefined;

  constructor(document: Table) {
    this.#document = document;
  }

  get body(): Buffer {
    return (this.#body ??= Buffer.from(JSON.stringify(this.#document)));
  }

  /** Strong, from the content: the same document has the same tag in every process. */
  get hash(): string {
    return (this.#hash ??= hash('sha256', this.body, 'base64url').slice(0, 27));
  }

  get compressible(): boolean {
    return this.body.length >= COMPRESSED_BYTES_MIN;
  }

  etag(encoding: Encoding): string {
    return encoding === 'identity' ? `"${this.hash}"` : `"${this.hash}-${encoding}"`;
  }

  compressed(encoding: 'gzip' | 'br'): Promise<Buffer> {
    if (encoding === 'gzip') return (this.#gzip ??= gzipBuffer(this.body, { level: 9 }));
    // Quality 5 compresses a megabyte in tens of milliseconds; 11, the default, takes seconds for a few percent.
    return (this.#brotli ??= brotliBuffer(this.body, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }));
  }
}
