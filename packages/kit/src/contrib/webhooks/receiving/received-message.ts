// What a receiver reads from a delivered request before any cryptography. Imports nothing, for the same reason as secret.ts.

export const DEFAULT_TOLERANCE_SECONDS = 300;

/** Bounds the work one request can cause: an ed25519 check costs about 100 µs, and a 16 KiB header holds 170 signatures. */
const SIGNATURES_MAX = 50;

export type InvalidSignatureReason =
  | 'missing_header'
  | 'malformed_id'
  | 'malformed_timestamp'
  | 'timestamp_too_old'
  | 'timestamp_too_new'
  | 'malformed_signature'
  | 'no_matching_signature';

/** Thrown when a webhook's signature is missing, malformed, too old or wrong. The message does not say which. */
export class InvalidSignature extends Error {
  override readonly name = 'InvalidSignature';
  readonly code = 'invalid_signature';
  readonly reason: InvalidSignatureReason;

  constructor(reason: InvalidSignatureReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** A plain object, Node's `request.headers`, or a fetch `Headers`. */
export type ReceivedHeaders =
  | {
      /** The value of a header, as `Headers` of fetch returns it. */
      get(name: string): string | null;
    }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/** The body exactly as received. Bytes are verified as bytes; a string is taken as UTF-8. */
export type RawBody = string | Uint8Array | ArrayBuffer;

export interface VerifyOptions {
  /** Seconds the timestamp may lie in the past or in the future. */
  readonly tolerance?: number;
  /** The receiver's time; a number is milliseconds, as from `Date.now()`. */
  readonly now?: Date | number;
}

export interface ReceivedEvent<Data = Readonly<Record<string, unknown>>> {
  readonly type: string;
  /** When it was published, in ISO 8601. */
  readonly timestamp: string;
  readonly data: Data;
}

export interface VerifiedMessage {
  /** The `webhook-id`: the same for every retry, so it is what a receiver deduplicates on. */
  readonly id: string;
  readonly timestamp: Date;
  /**
   * The body as an event; null where it is not JSON with `type`, `timestamp` and `data`. Read when it is first asked for. Throws an error with the
   * code `number_not_exact` where an integer of the body would become another number: read such a body yourself.
   */
  readonly event: ReceivedEvent | null;
}

/** A message whose signature was verified. */
export class Verified implements VerifiedMessage {
  readonly id: string;
  readonly timestamp: Date;
  readonly #body: RawBody;
  #event: ReceivedEvent | null | undefined;

  constructor({ id, timestamp }: ReceivedMessage, body: RawBody) {
    this.id = id;
    this.timestamp = timestamp;
    this.#body = body;
  }

  get event(): ReceivedEvent | null {
    return (this.#event ??= eventOf(this.#body));
  }
}

function eventOf(body: RawBody): ReceivedEvent | null {
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body);
  let event: Partial<ReceivedEvent> | null;
  try {
    event = JSON.parse(text) as Partial<ReceivedEvent> | null;
  } catch {
    return null;
  }
  if (typeof event?.type !== 'string' || typeof event.timestamp !== 'string' || typeof event.data !== 'object' || event.data === null)
    return null;
  const changed = inexactInteger(text);
  if (changed === undefined) return event as ReceivedEvent;
  throw Object.assign(
    new RangeError(
      `The number ${changed.slice(0, 40)} of the event has more digits than JavaScript keeps. Parse the raw body with a parser that keeps them, or have it sent as a string.`,
    ),
    { code: 'number_not_exact' },
  );
}

/** The bodies that may have such a number: most have none, and are not read again. */
const MANY_DIGITS = /\d[\d.eE+-]{15}/;
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/** The first integer of valid JSON that `JSON.parse` reads as another one; the rule of request bodies. */
function inexactInteger(json: string): string | undefined {
  if (!MANY_DIGITS.test(json)) return undefined;
  for (let at = 0; at < json.length; at += 1) {
    if (json[at] === '"') {
      for (at += 1; json[at] !== '"'; at += 1) if (json[at] === '\\') at += 1;
      continue;
    }
    NUMBER.lastIndex = at;
    const literal = NUMBER.exec(json)?.[0];
    if (literal === undefined) continue;
    const number = Number(literal);
    if (Math.abs(number) > Number.MAX_SAFE_INTEGER && significant(literal) !== significant(String(number))) return literal;
    at += literal.length - 1;
  }
  return undefined;
}

/** `-1.20e+30` → `12`. */
function significant(literal: string): string {
  return literal
    .replace(/e.*$/i, '')
    .replaceAll(/[^0-9]/g, '')
    .replace(/^0+/, '')
    .replace(/0+$/, '');
}

export interface ReceivedMessage extends Pick<VerifiedMessage, 'id' | 'timestamp'> {
  /** `<id>.<timestamp>.`: what stands before the body in the signed content. */
  readonly signedPrefix: string;
  readonly signatures: readonly { readonly version: 'v1' | 'v1a'; readonly base64: string }[];
}

export function readMessage(headers: ReceivedHeaders, options: VerifyOptions | undefined): ReceivedMessage {
  checkNames(options);
  if (typeof headers !== 'object' || (headers as unknown) === null)
    throw new TypeError('Pass the headers of the request: an object with their names, or fetch Headers.');
  const id = headerValue(headers, 'webhook-id');
  const timestamp = headerValue(headers, 'webhook-timestamp');
  const signature = headerValue(headers, 'webhook-signature');
  // A dot inside the id would let a captured message be cut at other places: the signed content is `<id>.<timestamp>.<body>`.
  if (id.includes('.')) throw new InvalidSignature('malformed_id', 'The webhook-id header holds a dot.');
  const date = checkTimestamp(timestamp, options);
  return { id, timestamp: date, signedPrefix: `${id}.${timestamp}.`, signatures: parseSignatures(signature) };
}

/** By hand: a receiver's copy of this file imports nothing else of the toolkit. */
function checkNames(options: VerifyOptions | undefined): void {
  const unknown = Object.keys(options ?? {}).find((name) => name !== 'tolerance' && name !== 'now');
  if (unknown !== undefined) throw new TypeError(`verifySignature(): unknown option "${unknown}". Known: tolerance, now.`);
}

function checkTimestamp(text: string, options: VerifyOptions | undefined): Date {
  const tolerance = options?.tolerance ?? DEFAULT_TOLERANCE_SECONDS;
  if (!Number.isFinite(tolerance) || tolerance < 0) throw new TypeError('tolerance must be a number of seconds, zero or more.');
  const nowMs = options?.now === undefined ? Date.now() : Number(options.now);
  if (!Number.isFinite(nowMs)) throw new TypeError('now must be a Date or milliseconds since 1970.');
  // Digits only: parseInt would accept "1700000000abc", Number "1.7e9", " 17 " and "".
  if (!/^(?:0|[1-9]\d{0,11})$/.test(text))
    throw new InvalidSignature('malformed_timestamp', 'The webhook-timestamp header is not an integer.');
  const seconds = Number(text);
  const ageSeconds = Math.floor(nowMs / 1000) - seconds;
  if (ageSeconds > tolerance) throw new InvalidSignature('timestamp_too_old', 'The message is older than the tolerance.');
  if (-ageSeconds > tolerance) throw new InvalidSignature('timestamp_too_new', 'The message is further in the future than the tolerance.');
  return new Date(seconds * 1000);
}

function parseSignatures(header: string): ReceivedMessage['signatures'] {
  const parts = header.split(' ');
  if (parts.length > SIGNATURES_MAX) {
    throw new InvalidSignature('malformed_signature', `The webhook-signature header holds more than ${SIGNATURES_MAX} signatures.`);
  }
  const signatures: { version: 'v1' | 'v1a'; base64: string }[] = [];
  for (const [index, part] of parts.entries()) {
    // Node and fetch join a repeated header with a comma and a space.
    if (part.endsWith(',') && index < parts.length - 1) throw repeated('webhook-signature');
    // Other versions are skipped, so that a sender may add schemes this receiver does not know yet.
    if (part.startsWith('v1,')) signatures.push({ version: 'v1', base64: part.slice(3) });
    else if (part.startsWith('v1a,')) signatures.push({ version: 'v1a', base64: part.slice(4) });
  }
  if (signatures.length === 0)
    throw new InvalidSignature('malformed_signature', 'The webhook-signature header holds no v1 or v1a signature.');
  return signatures;
}

function headerValue(headers: ReceivedHeaders, name: string): string {
  const value = typeof headers.get === 'function' ? headers.get(name) : lookUp(headers, name);
  if (typeof value === 'string' && value !== '') return value;
  if (Array.isArray(value) && value.length === 1 && typeof value[0] === 'string' && value[0] !== '') return value[0];
  throw repeated(name);
}

function repeated(name: string): InvalidSignature {
  return new InvalidSignature('missing_header', `The ${name} header is missing, empty or repeated.`);
}

function lookUp(headers: Readonly<Record<string, unknown>>, name: string): unknown {
  if (Object.hasOwn(headers, name)) return headers[name];
  for (const key of Object.keys(headers)) if (key.toLowerCase() === name) return headers[key];
  return undefined;
}

export function noMatch(): InvalidSignature {
  return new InvalidSignature(
    'no_matching_signature',
    'No signature matches; check the secret, and that the body is the raw bytes received.',
  );
}

export function assertRawBody(body: unknown): asserts body is RawBody {
  if (typeof body === 'string' || body instanceof Uint8Array || body instanceof ArrayBuffer) return;
  throw new TypeError(
    'Pass the raw request body (string, Buffer or Uint8Array): re-serialised JSON does not have the bytes that were signed.',
  );
}

export function listOf<T>(value: T | readonly T[]): readonly T[] {
  return Array.isArray(value) ? (value as readonly T[]) : [value as T];
}
