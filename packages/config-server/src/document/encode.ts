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
 * A document as it leaves the server. The bytes are made once per install; a compressed form is made when the first caller
 * asks for it (1,000 sections would otherwise spend most of their start compressing for nobody) and then kept.
 */
export class EncodedDocument {
  readonly body: Buffer;
  #hash: string | undefined;
  #gzip: Promise<Buffer> | undefined;
  #brotli: Promise<Buffer> | undefined;

  constructor(document: Table) {
    this.body = Buffer.from(JSON.stringify(document));
  }

  /** Strong, from the content: the same document has the same tag in every process. Made for the first reader, as compressed forms are. */
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
