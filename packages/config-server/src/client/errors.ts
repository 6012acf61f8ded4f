/**
 * What a caller should do about a failure:
 * `auth` do not retry, the credential or the section is wrong; `remote` retry later; `cache` the copy on disk could not be kept or
 * used; `misuse` fix the calling code; `mismatch` the document does not match the schema.
 */
export type RemoteErrorKind = 'auth' | 'remote' | 'cache' | 'misuse' | 'mismatch';

/** Every code this package's client half can report. Codes do not change; messages may. */
export const CLIENT_ERROR_CODES = {
  unauthenticated: { kind: 'auth', meaning: 'the server refused the token (401)' },
  forbidden: { kind: 'auth', meaning: 'the server, or a proxy before it, refused the caller (403)' },
  'not-found': { kind: 'auth', meaning: 'no such application and profile for this token (404)' },
  timeout: { kind: 'remote', meaning: 'the deadline passed before the last byte arrived' },
  connection: { kind: 'remote', meaning: 'no connection, or it broke before the response was complete' },
  tls: { kind: 'remote', meaning: 'the TLS handshake failed or its files could not be used' },
  status: { kind: 'remote', meaning: 'a response with a status that carries no document; redirects are never followed' },
  'content-type': { kind: 'remote', meaning: 'the response was not of the expected media type' },
  'content-encoding': { kind: 'remote', meaning: 'the response was compressed in a way that was not asked for, or badly' },
  'too-large': { kind: 'remote', meaning: 'the response, after decompression, exceeds maxBytes' },
  'invalid-body': { kind: 'remote', meaning: 'the response was not a complete JSON object in UTF-8' },
  'invalid-event': { kind: 'remote', meaning: 'the stream carried something that is not a generation event' },
  silence: { kind: 'remote', meaning: 'the stream sent neither event nor heartbeat for too long' },
  ended: { kind: 'remote', meaning: 'the server ended the stream' },
  'cache-write': { kind: 'cache', meaning: 'the document was fetched but could not be written to cacheFile' },
  'cache-read': { kind: 'cache', meaning: 'cacheFile exists but cannot be trusted or used' },
  option: { kind: 'misuse', meaning: 'an option is missing or wrong' },
  path: { kind: 'misuse', meaning: 'a key path is empty or badly escaped' },
  'not-loaded': { kind: 'misuse', meaning: 'a value was asked for before any document was loaded' },
  'async-schema': { kind: 'misuse', meaning: 'parse was given a schema that validates asynchronously' },
  mismatch: { kind: 'mismatch', meaning: 'the document does not satisfy the schema' },
} as const satisfies Record<string, { kind: RemoteErrorKind; meaning: string }>;

export type RemoteErrorCode = keyof typeof CLIENT_ERROR_CODES;

/**
 * The error class of the client half: `code` identifies the error, `kind` says how to react.
 * It never has a `cause`: Node's own errors carry response bytes (`rawPacket`, JSON snippets), which are configuration values.
 */
export class RemoteSourceError extends Error {
  override readonly name: string = 'RemoteSourceError';
  readonly code: RemoteErrorCode;
  readonly kind: RemoteErrorKind;
  /** HTTP status, when a response arrived. */
  readonly status?: number;
  /** What the server asked for in `Retry-After`, in milliseconds. */
  readonly retryAfterMs?: number;

  constructor(code: RemoteErrorCode, message: string, detail: { status?: number; retryAfterMs?: number } = {}) {
    super(message);
    this.code = code;
    this.kind = CLIENT_ERROR_CODES[code].kind;
    if (detail.status !== undefined) this.status = detail.status;
    if (detail.retryAfterMs !== undefined) this.retryAfterMs = detail.retryAfterMs;
  }
}
