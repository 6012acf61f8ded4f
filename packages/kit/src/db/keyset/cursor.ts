import { createCipheriv, createDecipheriv, createSecretKey, hash, hkdfSync, type KeyObject } from 'node:crypto';
import { BoundedMap } from '../bounded-map.ts';
import type { KeysetPosition } from './keyset.ts';
import { requireArguments } from '../../options/read-options.ts';
import { aList } from '../../options/value-rule.ts';

/** What a cursor carries. */
export interface CursorContent {
  readonly position: KeysetPosition;
  /** Towards the start of the list. */
  readonly backwards: boolean;
  /** The count of the first page, so that later pages need not count; null when unknown. */
  readonly count: number | null;
}

/**
 * Characters. Three texts of 200 ASCII characters and a key need 1,000; what other scripts and escapes need is up to six bytes for each
 * character, and a row with such a text must not break the list it is in.
 */
export const CURSOR_LENGTH_MAX = 5_000;
export const CURSOR_KEY_BYTES = 32;

const VERSION = 1;
const KEY_ID_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + KEY_ID_BYTES;
/** Cursors that are remembered: some 250 bytes each, and never more than 5,000. */
const RECENT_MAX = 500;

interface Key {
  readonly id: Buffer;
  /** Version and key id: how every cursor of this key begins. */
  readonly head: Buffer;
  /** Made once: Node prepares a key that is given as bytes again for every cipher (22 µs instead of 7). */
  readonly encryption: KeyObject;
  /** In base64url. */
  readonly nonce: string;
}

/**
 * Writes and reads cursors: opaque, and good only for what they were made for. AES-256-GCM over the content, with everything the caller
 * binds it to (user, tenant, operation, filters, ordering) as associated data. The nonce is made of the content: equal pages have equal
 * cursors, so that a list's ETag stays the same. The first key writes, all read.
 */
export class Cursors {
  readonly #keys: readonly [Key, ...Key[]];
  /** What was written last is what is read next: who goes through a list asks for the page that the one before it named. */
  readonly #recent = new BoundedMap<string, { readonly digest: string; readonly content: CursorContent }>(RECENT_MAX);

  constructor(keys: readonly Uint8Array[]) {
    requireArguments('new Cursors()', { keys }, { keys: aList });
    const [first, ...rest] = keys.map(keyOf);
    if (first === undefined) throw new TypeError('Cursors need at least one key.');
    this.#keys = [first, ...rest];
  }

  /** `bound`: reading needs the same text. */
  write(given: CursorContent, bound: string): string {
    const [key] = this.#keys;
    const { head } = key;
    const content = JSON.stringify([given.position, given.backwards ? 1 : 0, given.count]);
    const digest = digestOf(bound);
    const nonce = nonceOf(key, digest, content);
    const cipher = createCipheriv('aes-256-gcm', key.encryption, nonce).setAAD(associatedData(head, digest));
    const cursor = Buffer.concat([head, nonce, cipher.update(content), cipher.final(), cipher.getAuthTag()]).toString('base64url');
    if (cursor.length > CURSOR_LENGTH_MAX)
      throw new RangeError(`A cursor would have ${cursor.length} characters, more than ${CURSOR_LENGTH_MAX}: order by shorter columns.`);
    this.#recent.set(cursor, { digest, content: given });
    return cursor;
  }

  /** Undefined for whatever these keys did not write for `bound`. */
  read(cursor: string, bound: string): CursorContent | undefined {
    const recent = this.#recent.get(cursor);
    return recent !== undefined && recent.digest === digestOf(bound) ? recent.content : this.#open(cursor, bound);
  }

  #open(cursor: string, bound: string): CursorContent | undefined {
    if (cursor.length > CURSOR_LENGTH_MAX || !/^[\w-]+$/.test(cursor)) return undefined;
    const bytes = Buffer.from(cursor, 'base64url');
    // One spelling only: the last character may have bits that do not count.
    if (bytes.length <= HEAD_BYTES + NONCE_BYTES + TAG_BYTES || bytes.toString('base64url') !== cursor) return undefined;
    const head = bytes.subarray(0, HEAD_BYTES);
    if (head[0] !== VERSION) return undefined;
    const key = this.#keys.find(({ id }) => id.equals(head.subarray(1)));
    if (key === undefined) return undefined;
    try {
      const decipher = createDecipheriv('aes-256-gcm', key.encryption, bytes.subarray(HEAD_BYTES, HEAD_BYTES + NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAAD(associatedData(head, digestOf(bound))).setAuthTag(bytes.subarray(-TAG_BYTES));
      const content = Buffer.concat([decipher.update(bytes.subarray(HEAD_BYTES + NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
      const [position, backwards, count] = JSON.parse(content.toString('utf8')) as [KeysetPosition, 0 | 1, number | null];
      return { position, backwards: backwards === 1, count };
    } catch {
      return undefined;
    }
  }
}

function keyOf(secret: Uint8Array): Key {
  if (secret.length !== CURSOR_KEY_BYTES) throw new TypeError(`A cursor key has ${CURSOR_KEY_BYTES} bytes, not ${secret.length}.`);
  const derive = (purpose: string): Buffer => Buffer.from(hkdfSync('sha256', secret, '', `kit cursor ${purpose}`, CURSOR_KEY_BYTES));
  const id = derive('id').subarray(0, KEY_ID_BYTES);
  const head = Buffer.concat([Buffer.from([VERSION]), id]);
  return { id, head, encryption: createSecretKey(derive('encryption')), nonce: derive('nonce').toString('base64url') };
}

let last: { readonly bound: string; readonly digest: string } | undefined;

/** As text: making a buffer of a hash costs more than the hash. The cursors of a page, and the one it was asked by, are bound to the same. */
function digestOf(bound: string): string {
  if (last?.bound !== bound) last = { bound, digest: hash('sha256', bound, 'base64url') };
  return last.digest;
}

function associatedData(head: Buffer, digest: string): Buffer {
  return Buffer.concat([head, Buffer.from(digest, 'latin1')]);
}

/**
 * SHA-256 over the key and what is encrypted, cut to 96 of its 256 bits: without the key it cannot be told from a random nonce, and what is
 * cut off is what an extension of the text would need. One call of one function: an HMAC costs three times as much.
 */
function nonceOf({ nonce }: Key, digest: string, content: string): Buffer {
  return Buffer.from(hash('sha256', `${nonce}${digest}${content}`, 'base64url'), 'base64url').subarray(0, NONCE_BYTES);
}
