import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, type BrotliOptions, type InputType, type ZlibOptions } from 'node:zlib';
import { parseDocument, type Document } from './document.ts';
import { RemoteSourceError } from './errors.ts';
import { checkMediaType, connectionError, openExchange, statusError } from './exchange.ts';
import type { SectionAddress } from './options.ts';
import { parseEtag, parseGeneration } from './validators.ts';

const gunzipAsync = promisify<InputType, ZlibOptions, Buffer>(gunzip);
const brotliDecompressAsync = promisify<InputType, BrotliOptions, Buffer>(brotliDecompress);

export type Fetched =
  | { readonly document: Document; readonly body: Buffer; readonly etag: string | undefined; readonly generation: number | undefined }
  | { readonly document: undefined; readonly generation: number | undefined };

export interface FetchLimits {
  /** From name lookup to last byte, in milliseconds. */
  readonly timeout: number;
  /** Of the body, before and after decompression. */
  readonly maxBytes: number;
}

/** Fetches the document once. `document: undefined` means: unchanged since `etag`. Rejects with a RemoteSourceError only. */
export async function fetchDocument(address: SectionAddress, etag: string | undefined, limits: FetchLimits): Promise<Fetched> {
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), limits.timeout);
  try {
    const headers = { accept: 'application/json', 'accept-encoding': 'br, gzip', ...(etag === undefined ? {} : { 'if-none-match': etag }) };
    const response = await openExchange(address, '', headers, deadline.signal);
    try {
      return await readResponse(response, etag !== undefined, limits.maxBytes, address);
    } finally {
      response.destroy();
    }
  } catch (error) {
    if (deadline.signal.aborted)
      throw new RemoteSourceError('timeout', `no complete response from ${address.base} in ${limits.timeout} ms`);
    throw connectionError(error, address);
  } finally {
    clearTimeout(timer);
  }
}

async function readResponse(response: IncomingMessage, conditional: boolean, maxBytes: number, address: SectionAddress): Promise<Fetched> {
  const failure = statusError(response, conditional ? [200, 304] : [200], address);
  if (failure !== undefined) throw failure;
  const generation = parseGeneration(response.headers['config-generation']);
  if (response.statusCode === 304) return { document: undefined, generation };
  checkMediaType(response, 'application/json', address);
  const body = await readBody(response, maxBytes, address);
  return { document: parseDocument(body), body, etag: parseEtag(response.headers.etag), generation };
}

async function readBody(response: IncomingMessage, maxBytes: number, address: SectionAddress): Promise<Buffer> {
  const tooLarge = (): RemoteSourceError =>
    new RemoteSourceError('too-large', `the document at ${address.base} is larger than maxBytes (${maxBytes})`);
  const encoding = (response.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  if (encoding !== 'identity' && encoding !== 'gzip' && encoding !== 'br') {
    throw new RemoteSourceError('content-encoding', 'the response has a content encoding that was not asked for');
  }
  if (Number(response.headers['content-length'] ?? 0) > maxBytes) throw tooLarge();
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    bytes += (chunk as Buffer).length;
    // Compressed bytes count as well: an endless row of empty gzip members decompresses to nothing.
    if (bytes > maxBytes) throw tooLarge();
    chunks.push(chunk as Buffer);
  }
  const body = Buffer.concat(chunks, bytes);
  if (encoding === 'identity') return body;
  try {
    return await (encoding === 'gzip' ? gunzipAsync : brotliDecompressAsync)(body, { maxOutputLength: maxBytes });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge();
    throw new RemoteSourceError('content-encoding', 'the compressed body is broken or cut off');
  }
}
