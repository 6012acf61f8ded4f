// Reading Standard Webhooks key material from its text form. Imports nothing: the receiver's entry points, one of
// which runs on edge runtimes without Node's modules, are built on this file.

/** The specification's lower bound for symmetric secrets; shorter ones can be guessed or were cut off by mistake. */
export const SECRET_BYTES_MIN = 24;
export const ED25519_KEY_BYTES = 32;

const SYMMETRIC_PREFIX = 'whsec_';
const PRIVATE_PREFIX = 'whsk_';
const PUBLIC_PREFIX = 'whpk_';

export type ParsedSecret =
  | { readonly kind: 'symmetric'; readonly bytes: Uint8Array<ArrayBuffer> }
  /** `bytes` is the 32-byte seed; the 64-byte form other senders print (seed and public key) is accepted too. */
  | { readonly kind: 'private'; readonly bytes: Uint8Array<ArrayBuffer>; readonly publicBytes: Uint8Array<ArrayBuffer> | null }
  | { readonly kind: 'public'; readonly bytes: Uint8Array<ArrayBuffer> };

/** Key material that cannot be used. A fault of configuration, so it is not an `InvalidSignature`: the message may be genuine. */
export class InvalidSecret extends Error {
  override readonly name = 'InvalidSecret';
  readonly code = 'invalid_secret';
}

export function parseSecret(text: unknown): ParsedSecret {
  if (typeof text !== 'string') throw new InvalidSecret('A webhook secret must be a string such as "whsec_…".');
  if (text.startsWith(PRIVATE_PREFIX)) return parsePrivateKey(decode(text.slice(PRIVATE_PREFIX.length)));
  if (text.startsWith(PUBLIC_PREFIX)) return { kind: 'public', bytes: exactly(decode(text.slice(PUBLIC_PREFIX.length)), 'whpk_') };
  const bytes = decode(text.startsWith(SYMMETRIC_PREFIX) ? text.slice(SYMMETRIC_PREFIX.length) : text);
  if (bytes.length === 0) throw new InvalidSecret('The webhook secret is empty; pass the value shown when the endpoint was created.');
  if (bytes.length < SECRET_BYTES_MIN) {
    throw new InvalidSecret(`The webhook secret is too short: ${bytes.length} bytes, at least ${SECRET_BYTES_MIN} are needed.`);
  }
  return { kind: 'symmetric', bytes };
}

function parsePrivateKey(bytes: Uint8Array<ArrayBuffer>): ParsedSecret {
  if (bytes.length !== 2 * ED25519_KEY_BYTES) return { kind: 'private', bytes: exactly(bytes, 'whsk_'), publicBytes: null };
  return { kind: 'private', bytes: bytes.slice(0, ED25519_KEY_BYTES), publicBytes: bytes.slice(ED25519_KEY_BYTES) };
}

function exactly(bytes: Uint8Array<ArrayBuffer>, prefix: string): Uint8Array<ArrayBuffer> {
  if (bytes.length === ED25519_KEY_BYTES) return bytes;
  throw new InvalidSecret(`A "${prefix}" key must hold ${ED25519_KEY_BYTES} bytes, this one holds ${bytes.length}.`);
}

/** Standard base64, padding optional. `atob` alone would also accept whitespace inside. */
function decode(base64: string): Uint8Array<ArrayBuffer> {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(base64)) throw notBase64();
  let binary: string;
  try {
    binary = atob(base64);
  } catch {
    throw notBase64();
  }
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index++) bytes[index] = binary.charCodeAt(index);
  return bytes;
}

function notBase64(): InvalidSecret {
  return new InvalidSecret('The webhook secret is not base64; pass it exactly as it was shown, including the "whsec_" prefix.');
}
