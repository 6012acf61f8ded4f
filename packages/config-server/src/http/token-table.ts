import { hash } from 'node:crypto';
import type { Client } from '../config/read-clients.ts';

const DIGEST_WORDS = 8;

/** A token that matched: its client, and its digest, so that a stream can be closed when the token is removed. */
export interface Credential {
  readonly name: string;
  readonly applications: ReadonlySet<string>;
  readonly operator: boolean;
  readonly digest: string;
}

/**
 * Finds the caller of a token. Tokens are compared by SHA-256 digest, the presented one against every configured one, without
 * a branch that depends on the bytes: neither a partial match nor the position of a match changes the time taken.
 */
export class TokenTable {
  readonly #words: Int32Array;
  readonly #credentials: readonly Credential[];
  /** The presented digest is copied here: a view over whole words needs aligned bytes, and hashing returns unaligned ones. */
  readonly #presented = new Uint8Array(DIGEST_WORDS * 4);
  readonly #presentedWords = new Int32Array(this.#presented.buffer);
  /** The header each connection was admitted with: hashing was a twelfth of a request, and nearly all requests repeat the header. */
  readonly #admitted = new WeakMap<object, { readonly authorization: string; readonly words: Int32Array }>();

  constructor(clients: readonly Client[]) {
    const entries = clients.flatMap((client) => client.digests.map((digest) => ({ client, digest })));
    this.#words = new Int32Array(entries.length * DIGEST_WORDS);
    for (const [index, { digest }] of entries.entries()) this.#words.set(wordsOf(digest), index * DIGEST_WORDS);
    this.#credentials = entries.map(({ client, digest }) => ({
      name: client.name,
      applications: client.applications,
      operator: client.operator ?? false,
      digest: digest.toString('hex'),
    }));
  }

  /** The credential of an Authorization header value, or undefined. */
  find(authorization: string | undefined, connection: object): Credential | undefined {
    if (authorization === undefined) return undefined;
    const admitted = this.#admitted.get(connection);
    if (admitted !== undefined && isSame(admitted.authorization, authorization)) return this.#credentials[this.#position(admitted.words)];
    const presented = bearerToken(authorization);
    if (presented === undefined) return undefined;
    // Header text is Latin-1: this gives back the bytes that were sent, which are the token's UTF-8 bytes.
    this.#presented.set(hash('sha256', Buffer.from(presented, 'latin1'), 'buffer'));
    const credential = this.#credentials[this.#position(this.#presentedWords)];
    if (credential !== undefined) this.#admitted.set(connection, { authorization, words: this.#presentedWords.slice() });
    return credential;
  }

  findDigest(digest: string): Credential | undefined {
    return this.#credentials.find((credential) => credential.digest === digest);
  }

  #position(presented: Int32Array): number {
    const words = this.#words;
    let found = -1;
    for (let entry = 0; entry < this.#credentials.length; entry++) {
      let difference = 0;
      for (let word = 0; word < DIGEST_WORDS; word++) difference |= words[entry * DIGEST_WORDS + word]! ^ presented[word]!;
      // All ones when equal, zero otherwise, by arithmetic instead of a branch.
      const equal = ((difference | -difference) >>> 31) - 1;
      found = (found & ~equal) | (entry & equal);
    }
    return found;
  }
}

/** Takes the same time for every text of the same length: behind a proxy an attacker may share the connection. */
function isSame(known: string, given: string): boolean {
  if (known.length !== given.length) return false;
  let difference = 0;
  for (let index = 0; index < known.length; index++) difference |= known.charCodeAt(index) ^ given.charCodeAt(index);
  return difference === 0;
}

function bearerToken(authorization: string): string | undefined {
  if (authorization.slice(0, 7).toLowerCase() !== 'bearer ') return undefined;
  const token = authorization.slice(7).trimStart();
  return token === '' ? undefined : token;
}

function wordsOf(digest: Buffer): Int32Array {
  return new Int32Array(Uint8Array.from(digest).buffer);
}
