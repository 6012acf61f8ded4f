import { BoundedMap } from '../../../db/values/bounded-map.ts';

/** Keys remembered at a time. */
const KEYS_MAX = 10_000;

/**
 * Digests of keys that worked in this process. Only the holder of a key can send a secret with its digest, so a key that is here may ask the
 * database also where its address has used up its failures: other clients of the address cannot shut it out.
 */
export class AcceptedKeys {
  readonly #digests = new BoundedMap<string, true>(KEYS_MAX, 'forget the oldest');

  has(digest: string): boolean {
    return this.#digests.has(digest);
  }

  add(digest: string): void {
    this.#digests.set(digest, true);
  }

  delete(digest: string): void {
    this.#digests.delete(digest);
  }
}
