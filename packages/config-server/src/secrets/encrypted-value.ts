import { join, sep } from 'node:path';
import type { AgeLibrary } from './age-library.ts';

/**
 * A single encrypted value: `ENC[age,<base64>]`, where the base64 is a binary age file. Its plaintext is JSON with three members,
 * `file`, `key` and `value`. age authenticates no context, so without the first two a value could be copied to a key or a file that
 * another caller may read.
 */
const ENCRYPTED_VALUE = /^ENC\[age,([A-Za-z0-9+/]+={0,2})\]$/;

/** One value is a password, a key or a small table; a megabyte is a mistake or an attack. */
export const VALUE_BYTES_MAX = 1024 * 1024;

export interface BoundValue {
  /** The path of the file the value belongs to: its name, or its name and the folders above it. */
  readonly file: string;
  /** The key path in the file, the application's table included. */
  readonly key: string;
  readonly value: unknown;
}

export function looksEncrypted(text: string): boolean {
  return text.startsWith('ENC[age,');
}

/** The age file of an encrypted value; undefined when the text is malformed or too long. */
export function ciphertextOf(text: string): Buffer | undefined {
  if (text.length > VALUE_BYTES_MAX * 2) return undefined;
  const base64 = ENCRYPTED_VALUE.exec(text)?.[1];
  return base64 === undefined ? undefined : Buffer.from(base64, 'base64');
}

export async function sealValue(age: AgeLibrary, bound: BoundValue, recipients: readonly string[]): Promise<string> {
  const encrypter = new age.Encrypter();
  for (const recipient of recipients) encrypter.addRecipient(recipient);
  const { file, key, value } = bound;
  return `ENC[age,${Buffer.from(await encrypter.encrypt(JSON.stringify({ file, key, value }))).toString('base64')}]`;
}

/** Reads the plaintext of an encrypted value; undefined when it does not have exactly the three members. */
export function parseBoundValue(plaintext: Uint8Array, parse: (bytes: Uint8Array) => Record<string, unknown>): BoundValue | undefined {
  let bound: Record<string, unknown>;
  try {
    bound = parse(plaintext);
  } catch {
    return undefined;
  }
  const { file, key } = bound;
  if (Object.keys(bound).sort().join() !== 'file,key,value' || typeof file !== 'string' || typeof key !== 'string') return undefined;
  return { file, key, value: bound['value'] };
}

/** Whether a value bound to `file` may be in the file at `path`: the last segments of the path must be exactly these. */
export function isBoundTo(file: string, path: string): boolean {
  const bound = file.split('/');
  if (bound.some((segment) => segment === '' || segment === '.' || segment === '..')) return false;
  // The path of a file in a repository is relative to its root.
  const actual = join(sep, path).split(sep);
  return actual.length > bound.length && bound.every((segment, index) => segment === actual[actual.length - bound.length + index]);
}
