// The receiver's side on Node: `kit/webhooks/verify`. Depends on node:crypto and two files without imports, so that a
// receiver can use it without loading the toolkit; verify.test.ts walks the import graph to keep it so.
import { createHmac, createPublicKey, createSecretKey, timingSafeEqual, verify as verifyBytes } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { assertRawBody, listOf, noMatch, readMessage, Verified } from './received-message.ts';
import type { RawBody, ReceivedHeaders, ReceivedMessage, VerifiedMessage, VerifyOptions } from './received-message.ts';
import { InvalidSecret, parseSecret } from '../signing/secret.ts';
import { BoundedMap } from '../../../db/values/bounded-map.ts';

export { InvalidSignature } from './received-message.ts';
export type { InvalidSignatureReason, RawBody, ReceivedEvent, ReceivedHeaders, VerifiedMessage } from './received-message.ts';
export { InvalidSecret } from '../signing/secret.ts';

/** DER wrapping of a raw ed25519 public key (SubjectPublicKeyInfo, RFC 8410). */
const ED25519_SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

/**
 * Throws `InvalidSignature` unless the message was signed with one of the secrets within the tolerance.
 * During a rotation pass `[new, old]`. Secrets are `whsec_…` (v1) or public keys `whpk_…` (v1a).
 *
 * @example
 * ```ts
 * const { id, event } = verifySignature(secret, request.headers, rawBody);
 * ```
 */
export function verifySignature(
  secrets: string | readonly string[],
  headers: ReceivedHeaders,
  rawBody: RawBody,
  options?: VerifyOptions,
): VerifiedMessage {
  const keys = listOf(secrets).map((secret) => verifyKey(secret));
  if (keys.length === 0) throw new InvalidSecret('No webhook secret was given; pass at least one.');
  assertRawBody(rawBody);
  const message = readMessage(headers, options);
  const body = rawBody instanceof ArrayBuffer ? new Uint8Array(rawBody) : rawBody;
  let matches = false;
  // Every key is tried: how long the check takes does not tell which of several secrets is in use.
  for (const key of keys) {
    const found = key.type === 'secret' ? matchesHmac(key, message, body) : matchesEd25519(key, message, body);
    matches = found || matches;
  }
  if (!matches) throw noMatch();
  return new Verified(message, rawBody);
}

/** Turning bytes into a key costs five times the HMAC itself (27 of 33 µs measured), so the keys of recent secrets are kept. */
const KEYS_KEPT_MAX = 256;
const recentKeys = new BoundedMap<string, KeyObject>(KEYS_KEPT_MAX);

function verifyKey(text: string): KeyObject {
  const recent = recentKeys.get(text);
  if (recent !== undefined) return recent;
  const secret = parseSecret(text);
  if (secret.kind === 'private') throw new InvalidSecret('Verify with the public key ("whpk_…"); the private key stays with the sender.');
  const key =
    secret.kind === 'symmetric'
      ? createSecretKey(secret.bytes)
      : createPublicKey({ key: Buffer.concat([ED25519_SPKI_PREFIX, secret.bytes]), format: 'der', type: 'spki' });
  recentKeys.set(text, key);
  return key;
}

function matchesHmac(key: KeyObject, message: ReceivedMessage, body: string | Uint8Array): boolean {
  const expected = Buffer.from(createHmac('sha256', key).update(message.signedPrefix).update(body).digest('base64'), 'latin1');
  let matches = false;
  for (const { version, base64 } of message.signatures) {
    if (version !== 'v1' || base64.length !== expected.length) continue;
    const given = Buffer.from(base64, 'latin1');
    matches = timingSafeEqual(given, expected) || matches;
  }
  return matches;
}

function matchesEd25519(key: KeyObject, message: ReceivedMessage, body: string | Uint8Array): boolean {
  const content = Buffer.concat([Buffer.from(message.signedPrefix), typeof body === 'string' ? Buffer.from(body) : body]);
  return message.signatures.some(({ version, base64 }) => {
    if (version !== 'v1a') return false;
    const signature = Buffer.from(base64, 'base64');
    // Re-encoding refuses what Buffer decodes leniently (missing padding, foreign characters).
    return signature.length === 64 && signature.toString('base64') === base64 && verifyBytes(null, content, key, signature);
  });
}
