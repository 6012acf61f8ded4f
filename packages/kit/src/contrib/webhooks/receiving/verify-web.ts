// The receiver's side for edge runtimes: `kit/webhooks/verify-web`. WebCrypto only, no Node modules; same rules and
// errors as verify.ts (one table of tests runs over both), but asynchronous because WebCrypto is.
import { assertRawBody, listOf, noMatch, readMessage, Verified } from './received-message.ts';
import type { RawBody, ReceivedHeaders, ReceivedMessage, VerifiedMessage, VerifyOptions } from './received-message.ts';
import { InvalidSecret, parseSecret } from '../signing/secret.ts';

export { InvalidSignature } from './received-message.ts';
export type { InvalidSignatureReason, RawBody, ReceivedEvent, ReceivedHeaders, VerifiedMessage } from './received-message.ts';
export { InvalidSecret } from '../signing/secret.ts';

const HMAC = { name: 'HMAC', hash: 'SHA-256' };

/**
 * As `verifySignature` of `kit/webhooks/verify`; the promise rejects with `InvalidSignature`.
 *
 * @example
 * ```ts
 * const { id, event } = await verifySignature(secret, request.headers, await request.arrayBuffer());
 * ```
 */
export async function verifySignature(
  secrets: string | readonly string[],
  headers: ReceivedHeaders,
  rawBody: RawBody,
  options?: VerifyOptions,
): Promise<VerifiedMessage> {
  const keys = listOf(secrets).map((secret) => parseSecret(secret));
  if (keys.length === 0) throw new InvalidSecret('No webhook secret was given; pass at least one.');
  assertRawBody(rawBody);
  const message = readMessage(headers, options);
  const content = signedContent(message, rawBody);
  let matches = false;
  for (const key of keys) {
    if (key.kind === 'private') throw new InvalidSecret('Verify with the public key ("whpk_…"); the private key stays with the sender.');
    const found = await matchesKey(key, message, content);
    matches = found || matches;
  }
  if (!matches) throw noMatch();
  return new Verified(message, rawBody);
}

interface VerifyKey {
  readonly kind: 'symmetric' | 'public';
  readonly bytes: Uint8Array<ArrayBuffer>;
}

async function matchesKey(secret: VerifyKey, message: ReceivedMessage, content: Uint8Array<ArrayBuffer>): Promise<boolean> {
  const symmetric = secret.kind === 'symmetric';
  const algorithm = symmetric ? HMAC : { name: 'Ed25519' };
  const key = await crypto.subtle.importKey('raw', secret.bytes, algorithm, false, ['verify']);
  let matches = false;
  for (const { version, base64 } of message.signatures) {
    if (version !== (symmetric ? 'v1' : 'v1a')) continue;
    const signature = decodeSignature(base64, symmetric ? 32 : 64);
    // `subtle.verify` compares in constant time.
    const found = signature !== null && (await crypto.subtle.verify(algorithm.name, key, signature, content));
    matches = found || matches;
  }
  return matches;
}

function signedContent(message: ReceivedMessage, rawBody: RawBody): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder();
  const prefix = encoder.encode(message.signedPrefix);
  const body = typeof rawBody === 'string' ? encoder.encode(rawBody) : rawBody instanceof ArrayBuffer ? new Uint8Array(rawBody) : rawBody;
  const content = new Uint8Array(prefix.length + body.length);
  content.set(prefix);
  content.set(body, prefix.length);
  return content;
}

function decodeSignature(base64: string, length: number): Uint8Array<ArrayBuffer> | null {
  let binary: string;
  try {
    binary = atob(base64);
  } catch {
    return null;
  }
  // Re-encoding refuses the spellings `atob` accepts besides the canonical one (whitespace, missing padding).
  if (binary.length !== length || btoa(binary) !== base64) return null;
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}
