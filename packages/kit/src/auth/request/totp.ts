import { createHmac, timingSafeEqual } from 'node:crypto';

/** RFC 6238 with what every authenticator app takes: SHA-1, 30 seconds, 6 digits. */
const STEP_MS = 30_000;
const DIGITS = 6;
/** Steps before and after now, for clocks that differ and for people who type slowly. */
const TOLERANCE = 1;
/** As long as the digest, as RFC 4226 advises. */
export const SECRET_BYTES = 20;

const CODE = /^\d{6}$/;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** Anything else may be a recovery code. */
export function isTotpCode(text: string): boolean {
  return CODE.test(text);
}

export function stepAt(now: Date): number {
  return Math.floor(now.getTime() / STEP_MS);
}

/** The code of a step: HOTP of RFC 4226 with the step as counter. */
export function totpCode(secret: Uint8Array, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const digest = createHmac('sha1', secret).update(counter).digest();
  const offset = (digest[digest.length - 1] as number) & 0x0f;
  return String((digest.readUInt32BE(offset) & 0x7fffffff) % 10 ** DIGITS).padStart(DIGITS, '0');
}

/** The step, near now, whose code this is; null when there is none. Takes the same time for every code. */
export function matchingStep(secret: Uint8Array, code: string, now: Date): number | null {
  if (!isTotpCode(code)) return null;
  const current = stepAt(now);
  let found: number | null = null;
  for (let step = current - TOLERANCE; step <= current + TOLERANCE; step++)
    if (timingSafeEqual(Buffer.from(totpCode(secret, step)), Buffer.from(code))) found = step;
  return found;
}

/** What authenticator apps read from a QR code. */
export function otpauthUri(secret: string, { issuer, account }: { readonly issuer: string; readonly account: string }): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`;
  return `otpauth://totp/${label}?secret=${secret}&issuer=${encodeURIComponent(issuer)}&algorithm=SHA1&digits=${DIGITS}&period=${STEP_MS / 1000}`;
}

/** RFC 4648, without padding. */
export function toBase32(bytes: Uint8Array): string {
  let text = '';
  let bits = 0;
  let value = 0;
  for (const byte of bytes) {
    value = (value << 8) | byte;
    for (bits += 8; bits >= 5; bits -= 5) text += ALPHABET[(value >>> (bits - 5)) & 31];
    value &= 0xff;
  }
  return bits === 0 ? text : text + (ALPHABET[(value << (5 - bits)) & 31] as string);
}

export function fromBase32(text: string): Uint8Array {
  const bytes: number[] = [];
  let bits = 0;
  let value = 0;
  for (const letter of text) {
    const digit = ALPHABET.indexOf(letter);
    if (digit === -1) throw new TypeError('Expected base32: A-Z and 2-7.');
    value = ((value << 5) | digit) & 0xfff;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push((value >>> bits) & 0xff);
  }
  return Uint8Array.from(bytes);
}
