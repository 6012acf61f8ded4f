// Fernet (github.com/fernet/spec, version 0x80): AES-128-CBC with an HMAC-SHA256 over everything before it.
// Chosen because operators can read and write the tokens with any other Fernet library.
import { createCipheriv, createDecipheriv, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

const VERSION = 0x80;
const HEADER_BYTES = 1 + 8 + 16;
const BLOCK_BYTES = 16;
const MAC_BYTES = 32;
/** How far a token may be dated in the future when its age is checked, in seconds; the bound other libraries use. */
const CLOCK_SKEW_SECONDS = 60;

/** The token is not one of ours, was altered, or is too old. Which of these is not told: it would help only an attacker. */
export class InvalidToken extends Error {
  override readonly name = 'InvalidToken';
  readonly code = 'invalid_token';

  constructor() {
    super('The token cannot be decrypted with any of the given keys.');
  }
}

export interface FernetKey {
  readonly signingKey: Uint8Array;
  readonly encryptionKey: Uint8Array;
}

export function generateFernetKey(bytes: Uint8Array = randomBytes(32)): string {
  return encode(Buffer.from(bytes));
}

export function parseFernetKey(text: string): FernetKey {
  const bytes = decode(text);
  if (bytes?.length !== 32) throw new TypeError('A Fernet key is 32 bytes in padded base64url.');
  return { signingKey: bytes.subarray(0, 16), encryptionKey: bytes.subarray(16) };
}

export function encrypt(key: FernetKey, message: string | Uint8Array, now: Date, iv: Uint8Array = randomBytes(BLOCK_BYTES)): string {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt8(VERSION, 0);
  header.writeBigUInt64BE(BigInt(Math.floor(now.getTime() / 1000)), 1);
  header.set(iv, 9);
  const cipher = createCipheriv('aes-128-cbc', key.encryptionKey, iv);
  const signed = Buffer.concat([header, cipher.update(message), cipher.final()]);
  return encode(Buffer.concat([signed, mac(key, signed)]));
}

export interface AgeLimit {
  readonly ttlSeconds: number;
  readonly now: Date;
}

export function decrypt(key: FernetKey, token: string, age?: AgeLimit): Buffer {
  const bytes = decode(token);
  const ciphertextBytes = (bytes?.length ?? 0) - HEADER_BYTES - MAC_BYTES;
  if (bytes === null || bytes[0] !== VERSION || ciphertextBytes < BLOCK_BYTES || ciphertextBytes % BLOCK_BYTES !== 0)
    throw new InvalidToken();
  const signed = bytes.subarray(0, -MAC_BYTES);
  if (!timingSafeEqual(mac(key, signed), bytes.subarray(-MAC_BYTES))) throw new InvalidToken();
  if (age !== undefined) checkAge(Number(bytes.readBigUInt64BE(1)), age);
  try {
    const decipher = createDecipheriv('aes-128-cbc', key.encryptionKey, bytes.subarray(9, HEADER_BYTES));
    return Buffer.concat([decipher.update(signed.subarray(HEADER_BYTES)), decipher.final()]);
  } catch {
    throw new InvalidToken();
  }
}

/** Decrypts with the first key that fits, as `MultiFernet` does elsewhere; the index tells whether the token is due for re-encryption. */
export function decryptWithAny(keys: readonly FernetKey[], token: string, age?: AgeLimit): { message: Buffer; keyIndex: number } {
  for (const [keyIndex, key] of keys.entries()) {
    try {
      return { message: decrypt(key, token, age), keyIndex };
    } catch (error) {
      if (!(error instanceof InvalidToken)) throw error;
    }
  }
  throw new InvalidToken();
}

function checkAge(createdSeconds: number, { ttlSeconds, now }: AgeLimit): void {
  const nowSeconds = Math.floor(now.getTime() / 1000);
  if (createdSeconds + ttlSeconds < nowSeconds || createdSeconds > nowSeconds + CLOCK_SKEW_SECONDS) throw new InvalidToken();
}

function mac(key: FernetKey, signed: Uint8Array): Buffer {
  return createHmac('sha256', key.signingKey).update(signed).digest();
}

function encode(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('+', '-').replaceAll('/', '_');
}

/** Strict: Node skips characters it does not know, so only text that encodes back to itself counts. */
function decode(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64url');
  return encode(bytes) === text ? bytes : null;
}
