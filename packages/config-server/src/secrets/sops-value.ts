import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/** A value of a SOPS document: AES-256-GCM with a nonce of 32 bytes, and the key path as authenticated data. */
const SOPS_VALUE = /^ENC\[AES256_GCM,data:([A-Za-z0-9+/=]+),iv:([A-Za-z0-9+/=]+),tag:([A-Za-z0-9+/=]+),type:([a-z0-9]+)\]$/;

const NONCE_BYTES = 32;
const TAG_BYTES = 16;
export const DATA_KEY_BYTES = 32;

export interface SopsPlaintext {
  readonly type: string;
  readonly bytes: Buffer;
}

export function looksLikeSopsValue(text: string): boolean {
  return text.startsWith('ENC[AES256_GCM,');
}

/** What SOPS authenticates with a value: the keys above it. Elements of an array share the path of the array. */
export function sopsPath(keys: readonly string[]): string {
  return `${keys.join(':')}:`;
}

/** Decrypts one value; undefined when it is malformed, was changed, has another place or another data key. */
export function openSopsValue(text: string, dataKey: Uint8Array, authenticated: string): SopsPlaintext | undefined {
  const match = SOPS_VALUE.exec(text);
  if (match === null) return undefined;
  const [, data = '', iv = '', tag = '', type = ''] = match;
  const tagBytes = Buffer.from(tag, 'base64');
  const nonce = Buffer.from(iv, 'base64');
  // A shorter tag would be accepted by the cipher, and forged more easily.
  if (tagBytes.length !== TAG_BYTES || nonce.length !== NONCE_BYTES) return undefined;
  try {
    const decipher = createDecipheriv('aes-256-gcm', dataKey, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(authenticated));
    decipher.setAuthTag(tagBytes);
    return { type, bytes: Buffer.concat([decipher.update(Buffer.from(data, 'base64')), decipher.final()]) };
  } catch {
    return undefined;
  }
}

export function sealSopsValue({ type, bytes }: SopsPlaintext, dataKey: Uint8Array, authenticated: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', dataKey, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(authenticated));
  const data = Buffer.concat([cipher.update(bytes), cipher.final()]);
  const base64 = (part: Buffer): string => part.toString('base64');
  return `ENC[AES256_GCM,data:${base64(data)},iv:${base64(nonce)},tag:${base64(cipher.getAuthTag())},type:${type}]`;
}

/** A decrypted value as the document has it, or undefined when the text does not fit its type. */
export function decodeSopsValue({ type, bytes }: SopsPlaintext): unknown {
  const text = decodeUtf8(bytes);
  if (text === undefined) return undefined;
  switch (type) {
    case 'str':
    case 'bytes':
    case 'time':
      return text;
    case 'int':
      return /^[+-]?\d{1,20}$/.test(text) ? BigInt(text) : undefined;
    case 'float': {
      const value = Number(text);
      return text.trim() === '' || !Number.isFinite(value) ? undefined : value;
    }
    case 'bool':
      return /^(?:true|false)$/i.test(text) ? text.toLowerCase() === 'true' : undefined;
    default:
      return undefined;
  }
}

/** The text and type that SOPS encrypts for a value. */
export function encodeSopsValue(value: string | number | bigint | boolean): SopsPlaintext {
  const type = typeof value === 'string' ? 'str' : typeof value === 'boolean' ? 'bool' : isWhole(value) ? 'int' : 'float';
  return { type, bytes: macBytes(value) };
}

function isWhole(value: number | bigint): boolean {
  return typeof value === 'bigint' || (Number.isSafeInteger(value) && !Object.is(value, -0));
}

/** A value as the MAC covers it: numbers in decimal without an exponent, booleans as Python writes them. */
export function macBytes(value: string | number | bigint | boolean): Buffer {
  if (typeof value === 'boolean') return Buffer.from(value ? 'True' : 'False');
  return Buffer.from(typeof value === 'number' ? withoutExponent(value) : String(value));
}

function withoutExponent(value: number): string {
  const text = Object.is(value, -0) ? '-0' : String(value);
  const [mantissa = '', exponent] = text.split('e');
  if (exponent === undefined) return text;
  const sign = mantissa.startsWith('-') ? '-' : '';
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const point = whole.length + Number(exponent);
  const digits = whole + fraction;
  if (point <= 0) return `${sign}0.${'0'.repeat(-point)}${digits}`;
  return sign + (digits.length <= point ? digits.padEnd(point, '0') : `${digits.slice(0, point)}.${digits.slice(point)}`);
}

function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
