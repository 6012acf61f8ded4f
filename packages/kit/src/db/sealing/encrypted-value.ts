// The form of an encrypted value, `enc1.<key id>.<base64url>`, is documented in docs/decisions/data.md (072):
//   wrap nonce 12 | wrapped data key 32 | wrap tag 16 | nonce 12 | ciphertext | tag 16
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { KEY_BYTES } from './key-list.ts';

const VERSION = 'enc1';
const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const WRAPPED_BYTES = NONCE_BYTES + KEY_BYTES + TAG_BYTES;
const FORM = /^enc1\.([A-Za-z0-9_-]{1,32})\.([A-Za-z0-9_-]+)$/;

/** Where a value belongs. It cannot be read anywhere else. */
export interface ValuePlace {
  /** The stable id of the table. */
  readonly table: string;
  /** The stable id of the column. */
  readonly column: string;
  /** The primary key of the row, in the order of its columns. */
  readonly key: readonly string[];
}

/** An encrypted value that cannot be read: it was moved or altered, its key is missing, or it was never encrypted. */
export class EncryptedValueUnreadable extends Error {
  override readonly name = 'EncryptedValueUnreadable';
  readonly code = 'encrypted_value_unreadable';
}

/** A key of 32 bytes with the id under which the value finds it again. */
export interface WrappingKey {
  readonly id: string;
  readonly bytes: Uint8Array;
}

export function encryptValue(key: WrappingKey, place: ValuePlace, plaintext: Uint8Array): string {
  const dataKey = randomBytes(KEY_BYTES);
  const bound = boundTo(key.id, place);
  const payload = Buffer.concat([sealWith(key.bytes, bound, dataKey), sealWith(dataKey, bound, plaintext)]);
  return `${startOf(key.id)}${payload.toString('base64url')}`;
}

/** What every value of a key begins with. */
export function startOf(keyId: string): string {
  return `${VERSION}.${keyId}.`;
}

/** The id of the key that a value was encrypted with; undefined for what is not an encrypted value. */
export function keyIdOf(value: string): string | undefined {
  return FORM.exec(value)?.[1];
}

export function decryptValue(find: (id: string) => WrappingKey | undefined, place: ValuePlace, value: unknown): Buffer {
  const where = `"${place.column}" of "${place.table}"`;
  const [, id, encoded = ''] = (typeof value === 'string' ? FORM.exec(value) : null) ?? [];
  if (id === undefined) throw new EncryptedValueUnreadable(`${where} has a value that is not encrypted. Was it written without the model?`);
  const key = find(id);
  if (key === undefined) throw new EncryptedValueUnreadable(`${where} has a value of the key "${id}", which DATA_KEYS does not have.`);
  const payload = Buffer.from(encoded, 'base64url');
  const bound = boundTo(id, place);
  try {
    return openWith(openWith(key.bytes, bound, payload.subarray(0, WRAPPED_BYTES)), bound, payload.subarray(WRAPPED_BYTES));
  } catch (cause) {
    const reason = `${where} has a value that was altered, or that belongs to another row, column or table`;
    throw new EncryptedValueUnreadable(`${reason}; after a rename, give the old name: .encrypted({ id }).`, { cause });
  }
}

/** JSON, so that no two places have the same bytes. */
function boundTo(keyId: string, { table, column, key }: ValuePlace): Buffer {
  return Buffer.from(JSON.stringify([VERSION, keyId, table, column, ...key]));
}

function sealWith(key: Uint8Array, bound: Uint8Array, plaintext: Uint8Array): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce);
  cipher.setAAD(bound);
  return Buffer.concat([nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

function openWith(key: Uint8Array, bound: Uint8Array, sealed: Uint8Array): Buffer {
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(bound);
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
}
