// Standard Webhooks signing (sender's side): `v1` is HMAC-SHA256 with a `whsec_` secret, `v1a` is ed25519 with a
// `whsk_` key. Both sign the bytes `<id>.<timestamp>.<body>`.
import { createHmac, createPrivateKey, createPublicKey, createSecretKey, randomBytes, sign as signBytes } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { ED25519_KEY_BYTES, InvalidSecret, parseSecret } from './secret.ts';
import { requireArguments } from '../../../options/read-options.ts';
import { instanceOf } from '../../../options/value-rule.ts';

export const SECRET_BYTES = 32;

/** DER wrapping of a raw ed25519 seed (PKCS #8, RFC 8410). */
const ED25519_PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

export type SignatureVersion = 'v1' | 'v1a';

/** A parsed secret, kept by the worker between deliveries so that key parsing is paid once per endpoint, not per request. */
export interface SigningKey {
  readonly version: SignatureVersion;
  readonly key: KeyObject;
}

export interface MessageToSign {
  readonly id: string;
  /** Unix seconds of this attempt. */
  readonly timestamp: number;
  readonly body: string | Uint8Array;
}

/** Generates a signing secret for `v1` signatures (`whsec_…`). */
export function generateSecret(bytes: Uint8Array = randomBytes(SECRET_BYTES)): string {
  requireArguments('generateSecret()', { bytes }, { bytes: instanceOf(Uint8Array, 'bytes: a Uint8Array') });
  return `whsec_${Buffer.from(bytes).toString('base64')}`;
}

export interface SigningKeyPair {
  readonly privateKey: string;
  readonly publicKey: string;
}

/** Generates an Ed25519 key pair for `v1a` signatures. */
export function generateKeyPair(seed: Uint8Array = randomBytes(ED25519_KEY_BYTES)): SigningKeyPair {
  requireArguments('generateKeyPair()', { seed }, { seed: instanceOf(Uint8Array, 'bytes: a Uint8Array') });
  const privateKey = `whsk_${Buffer.from(seed).toString('base64')}`;
  return { privateKey, publicKey: publicKeyOf(privateKey) };
}

/** The `whpk_` key a receiver needs for messages signed with this `whsk_` key. */
export function publicKeyOf(privateKey: string): string {
  const secret = parseSecret(privateKey);
  if (secret.kind !== 'private') throw new InvalidSecret('Only a "whsk_" key has a public key.');
  return `whpk_${rawPublicKey(privateKeyObject(secret.bytes)).toString('base64')}`;
}

export function signingKey(text: string): SigningKey {
  const secret = parseSecret(text);
  if (secret.kind === 'public') throw new InvalidSecret('A public key ("whpk_…") cannot sign; pass the "whsk_" or "whsec_" secret.');
  if (secret.kind === 'symmetric') return { version: 'v1', key: createSecretKey(secret.bytes) };
  const key = privateKeyObject(secret.bytes);
  if (secret.publicBytes !== null && !rawPublicKey(key).equals(secret.publicBytes)) {
    throw new InvalidSecret('The two halves of the "whsk_" key do not belong together.');
  }
  return { version: 'v1a', key };
}

/** The value of `webhook-signature`: one signature per key, separated by spaces, the current key first. */
export function signatureHeader(keys: readonly SigningKey[], message: MessageToSign): string {
  if (keys.length === 0) throw new InvalidSecret('There is no key to sign with.');
  const prefix = signedPrefix(message);
  const [first] = keys;
  if (keys.length === 1 && first !== undefined) return signature(first, prefix, message.body);
  return keys.map((key) => signature(key, prefix, message.body)).join(' ');
}

/** The three headers of one attempt. */
export function signedHeaders(keys: readonly SigningKey[], message: MessageToSign): Record<string, string> {
  return {
    'webhook-id': message.id,
    'webhook-timestamp': String(message.timestamp),
    'webhook-signature': signatureHeader(keys, message),
  };
}

function signedPrefix({ id, timestamp }: MessageToSign): string {
  if (id === '' || id.includes('.')) throw new TypeError('A message id must not be empty or hold a dot.');
  if (!Number.isSafeInteger(timestamp) || timestamp < 0) throw new TypeError('A message timestamp must be whole Unix seconds.');
  return `${id}.${timestamp}.`;
}

function signature(signing: SigningKey, prefix: string, body: string | Uint8Array): string {
  if (signing.version === 'v1') return `v1,${createHmac('sha256', signing.key).update(prefix).update(body).digest('base64')}`;
  const content = Buffer.concat([Buffer.from(prefix), typeof body === 'string' ? Buffer.from(body) : body]);
  return `v1a,${signBytes(null, content, signing.key).toString('base64')}`;
}

function privateKeyObject(seed: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.concat([ED25519_PKCS8_PREFIX, seed]), format: 'der', type: 'pkcs8' });
}

function rawPublicKey(privateKey: KeyObject): Buffer {
  return createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-ED25519_KEY_BYTES);
}
