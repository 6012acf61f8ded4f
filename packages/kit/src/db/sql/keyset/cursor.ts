import { createCipheriv, createDecipheriv, createSecretKey, hash, hkdfSync, type KeyObject } from 'node:crypto';
import type { KeysetPosition, KeysetStart, PageNeighbors } from './keyset.ts';
import { requireArguments } from '../../../options/read-options.ts';
import { aList } from '../../../options/value-rule.ts';

/** What a cursor carries. */
export interface CursorContent extends KeysetStart {
  /** The count of the first page, so that later pages need not count; null when unknown. */
  readonly count: number | null;
}

/** The rows at both ends of a page that has one before it and one after it. */
interface PageEnds {
  readonly first: KeysetPosition;
  readonly last: KeysetPosition;
  readonly count: number | null;
}

/**
 * Characters. Three texts of 200 ASCII characters and a key need 1,000; what other scripts and escapes need is up to six bytes for each
 * character, and a row with such a text must not break the list it is in.
 */
export const CURSOR_LENGTH_MAX = 5_000;
export const CURSOR_KEY_BYTES = 32;

/** Of a single position, in its content: forwards, backwards, and both with the row at the position. */
type Direction = 0 | 1 | 2 | 3;
/** One position and its direction, bound to the digest of a text. */
const SINGLE = 1;
/** Both ends of a page, bound to the text itself; which end is meant follows the encrypted part. */
const PAIR = 2;
/** They differ in more than one character: changing one never makes the other cursor of the page. */
const NEXT = '.next';
const PREVIOUS = '.prev';
/** Characters of JSON. A pair of ASCII texts stays below 1,000 characters; longer ends are encrypted one by one. */
const PAIR_CONTENT_MAX = 700;
const KEY_ID_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + KEY_ID_BYTES;

type Version = typeof SINGLE | typeof PAIR;

interface Key {
  /** By version: version and key id, how every cursor of this key begins. */
  readonly heads: Readonly<Record<Version, Buffer>>;
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

  constructor(keys: readonly Uint8Array[]) {
    requireArguments('new Cursors()', { keys }, { keys: aList });
    const [first, ...rest] = keys.map(keyOf);
    if (first === undefined) throw new TypeError('Cursors need at least one key.');
    this.#keys = [first, ...rest];
  }

  /** `bound`: reading needs the same text. */
  write(given: CursorContent, bound: string): string {
    const content = JSON.stringify([given.position, directionOf(given), given.count]);
    return this.#seal(SINGLE, content, bound);
  }

  /** The cursors to the pages around a page; null where there is none. */
  writeAround(
    { previous, next }: PageNeighbors,
    count: number | null,
    bound: string,
  ): { readonly previous: string | null; readonly next: string | null } {
    // The neighbor of an empty page is its only one: of a pair, neither includes the row at its position.
    const pair = previous === undefined || next === undefined ? undefined : JSON.stringify([previous.position, next.position, count]);
    if (pair !== undefined && pair.length <= PAIR_CONTENT_MAX) {
      // One encryption for both: it is most of what a cursor costs.
      const sealed = this.#seal(PAIR, pair, bound);
      return { previous: `${sealed}${PREVIOUS}`, next: `${sealed}${NEXT}` };
    }
    const write = (start: KeysetStart | undefined) => (start === undefined ? null : this.write({ ...start, count }, bound));
    return { previous: write(previous), next: write(next) };
  }

  #seal(version: Version, content: string, bound: string): string {
    const [key] = this.#keys;
    const head = key.heads[version];
    // The length keeps the two texts apart.
    const nonce = nonceOf(key, `${version} ${bound.length} ${bound}${content}`);
    const cipher = createCipheriv('aes-256-gcm', key.encryption, nonce).setAAD(associatedData(version, head, bound));
    const sealed = Buffer.concat([head, nonce, cipher.update(content), cipher.final(), cipher.getAuthTag()]).toString('base64url');
    if (sealed.length > CURSOR_LENGTH_MAX)
      throw new RangeError(`A cursor would have ${sealed.length} characters, more than ${CURSOR_LENGTH_MAX}: order by shorter columns.`);
    return sealed;
  }

  /** Undefined for whatever these keys did not write for `bound`. */
  read(cursor: string, bound: string): CursorContent | undefined {
    if (cursor.length > CURSOR_LENGTH_MAX) return undefined;
    const isNext = cursor.endsWith(NEXT);
    if (!isNext && !cursor.endsWith(PREVIOUS)) return this.#readSingle(cursor, bound);
    const ends = this.#readEnds(cursor.slice(0, -NEXT.length), bound);
    return ends === undefined ? undefined : { position: isNext ? ends.last : ends.first, backwards: !isNext, count: ends.count };
  }

  #readSingle(cursor: string, bound: string): CursorContent | undefined {
    const json = this.#open(SINGLE, cursor, bound);
    if (json === undefined) return undefined;
    const [position, direction, count] = JSON.parse(json) as [KeysetPosition, Direction, number | null];
    return { position, backwards: direction === 1 || direction === 3, ...(direction >= 2 ? { inclusive: true } : {}), count };
  }

  #readEnds(sealed: string, bound: string): PageEnds | undefined {
    const json = this.#open(PAIR, sealed, bound);
    if (json === undefined) return undefined;
    const [first, last, count] = JSON.parse(json) as [KeysetPosition, KeysetPosition, number | null];
    return { first, last, count };
  }

  /** The JSON of the encrypted content. */
  #open(version: Version, sealed: string, bound: string): string | undefined {
    if (!/^[\w-]+$/.test(sealed)) return undefined;
    const bytes = Buffer.from(sealed, 'base64url');
    // One spelling only: the last character may have bits that do not count.
    if (bytes.length <= HEAD_BYTES + NONCE_BYTES + TAG_BYTES || bytes.toString('base64url') !== sealed) return undefined;
    const head = bytes.subarray(0, HEAD_BYTES);
    const key = this.#keys.find(({ heads }) => heads[version].equals(head));
    if (key === undefined) return undefined;
    try {
      const decipher = createDecipheriv('aes-256-gcm', key.encryption, bytes.subarray(HEAD_BYTES, HEAD_BYTES + NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAAD(associatedData(version, head, bound)).setAuthTag(bytes.subarray(-TAG_BYTES));
      return Buffer.concat([decipher.update(bytes.subarray(HEAD_BYTES + NONCE_BYTES, -TAG_BYTES)), decipher.final()]).toString('utf8');
    } catch {
      return undefined;
    }
  }
}

function directionOf({ backwards, inclusive = false }: KeysetStart): Direction {
  return inclusive ? (backwards ? 3 : 2) : backwards ? 1 : 0;
}

function keyOf(secret: Uint8Array): Key {
  if (secret.length !== CURSOR_KEY_BYTES) throw new TypeError(`A cursor key has ${CURSOR_KEY_BYTES} bytes, not ${secret.length}.`);
  const derive = (purpose: string): Buffer => Buffer.from(hkdfSync('sha256', secret, '', `kit cursor ${purpose}`, CURSOR_KEY_BYTES));
  const id = derive('id').subarray(0, KEY_ID_BYTES);
  const headOf = (version: Version): Buffer => Buffer.concat([Buffer.from([version]), id]);
  const heads = { [SINGLE]: headOf(SINGLE), [PAIR]: headOf(PAIR) };
  return { heads, encryption: createSecretKey(derive('encryption')), nonce: derive('nonce').toString('base64url') };
}

function associatedData(version: Version, head: Buffer, bound: string): Buffer {
  return Buffer.concat([head, Buffer.from(version === PAIR ? bound : hash('sha256', bound, 'base64url'))]);
}

/**
 * SHA-256 over the key and what is encrypted, cut to 96 of its 256 bits: without the key it cannot be told from a random nonce, and what is
 * cut off is what an extension of the text would need. One call of one function: an HMAC costs three times as much.
 */
function nonceOf({ nonce }: Key, text: string): Buffer {
  return Buffer.from(hash('sha256', `${nonce}${text}`, 'base64url'), 'base64url').subarray(0, NONCE_BYTES);
}
