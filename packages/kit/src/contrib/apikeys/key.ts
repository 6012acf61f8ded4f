import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

// <tag>_<prefix>_<secret><checksum>, for example kit_<12>_<43><6>. Prefix, secret and checksum have neither `_` nor `-`,
// so a double click selects the whole key and the three parts split in one way only.

/** The first word of every key unless the app chose its own, once, at set-up. */
export const DEFAULT_TAG = 'kit';
/** Locates the row; not secret. 62^12 is more than 2^71: two keys never meet. */
export const PREFIX_LENGTH = 12;
/** 62^43 is more than 2^256, so the secret is as strong as the digest that stands for it. */
export const SECRET_LENGTH = 43;
/** 62^6 holds every CRC32. */
export const CHECKSUM_LENGTH = 6;

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const TAG_GRAMMAR = /^[a-z]{2,8}$/;
const SEPARATOR = '_'.charCodeAt(0);
const NO_DIGIT = 255;
/** The value of each ASCII character as a digit of base62. */
const DIGITS = Uint8Array.from({ length: 128 }, (_, code) => {
  const digit = ALPHABET.indexOf(String.fromCharCode(code));
  return digit === -1 ? NO_DIGIT : digit;
});
/** CRC32 of each byte: reading a key takes one step per character, together with the check of its alphabet. */
const CRC_OF_BYTE = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit += 1) crc = (crc & 1) === 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});

/** The parts of a key that the database knows (prefix) or knows a digest of (secret). */
export interface KeyParts {
  readonly prefix: string;
  readonly secret: string;
}

/** What is wrong with a tag, as one sentence; null when it is fine. */
export function tagFault(tag: unknown): string | null {
  return typeof tag === 'string' && TAG_GRAMMAR.test(tag) ? null : `A key's tag is 2 to 8 of the letters a-z, not ${JSON.stringify(tag)}.`;
}

export function newPrefix(random: (size: number) => Uint8Array = randomBytes): string {
  return randomBase62(PREFIX_LENGTH, random);
}

export function newSecret(random: (size: number) => Uint8Array = randomBytes): string {
  return randomBase62(SECRET_LENGTH, random);
}

/** The raw key: the only time its parts stand in one text. */
export function formatKey(tag: string, { prefix, secret }: KeyParts): string {
  const body = `${tag}_${prefix}_${secret}`;
  return body + checksum(body);
}

/**
 * The parts of a well-formed key of this tag; null for everything else: another tag, length, alphabet or checksum. Decided from the
 * text alone, in one pass that makes no new text: a typing error, a truncated key or a random guess costs no database work.
 */
export function parseKey(raw: unknown, tag: string): KeyParts | null {
  if (typeof raw !== 'string') return null;
  const prefixAt = tag.length + 1;
  const secretAt = prefixAt + PREFIX_LENGTH + 1;
  const checksumAt = secretAt + SECRET_LENGTH;
  if (raw.length !== checksumAt + CHECKSUM_LENGTH || !raw.startsWith(tag)) return null;
  if (raw.charCodeAt(prefixAt - 1) !== SEPARATOR || raw.charCodeAt(secretAt - 1) !== SEPARATOR) return null;
  let crc = -1;
  for (let index = 0; index < checksumAt; index += 1) {
    const code = raw.charCodeAt(index);
    if (digitOf(code) === NO_DIGIT && index !== prefixAt - 1 && index !== secretAt - 1) return null;
    crc = (CRC_OF_BYTE[(crc ^ code) & 0xff] ?? 0) ^ (crc >>> 8);
  }
  let claimed = 0;
  for (let index = checksumAt; index < raw.length; index += 1) {
    const digit = digitOf(raw.charCodeAt(index));
    if (digit === NO_DIGIT) return null;
    claimed = claimed * 62 + digit;
  }
  if (claimed !== ~crc >>> 0) return null;
  return { prefix: raw.slice(prefixAt, secretAt - 1), secret: raw.slice(secretAt, checksumAt) };
}

/** For secret scanners, repository hooks and log filters: finds keys of this tag in any text. Also valid in RE2 (no lookaround). */
export function keyPatternFor(tag: string): RegExp {
  const fault = tagFault(tag);
  if (fault !== null) throw new TypeError(fault);
  return new RegExp(`\\b${tag}_[0-9A-Za-z]{${PREFIX_LENGTH}}_[0-9A-Za-z]{${SECRET_LENGTH + CHECKSUM_LENGTH}}\\b`);
}

/** {@link keyPatternFor} the default tag. */
export const keyPattern: RegExp = keyPatternFor(DEFAULT_TAG);

function digitOf(code: number): number {
  return DIGITS[code] ?? NO_DIGIT;
}

/** CRC32 in base62, always six characters: tells a mistyped or cut key from a wrong one. No secret, no signature. */
function checksum(text: string): string {
  let rest = crc32(text);
  let digits = '';
  for (let index = 0; index < CHECKSUM_LENGTH; index += 1) {
    digits = ALPHABET.charAt(rest % 62) + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}

/** Bytes from 248 on are drawn again: 256 is no multiple of 62, and a plain remainder would favour the first eight characters. */
function randomBase62(length: number, random: (size: number) => Uint8Array): string {
  let text = '';
  while (text.length < length) {
    for (const byte of random(length)) {
      if (byte < 248 && text.length < length) text += ALPHABET.charAt(byte % 62);
    }
  }
  return text;
}
