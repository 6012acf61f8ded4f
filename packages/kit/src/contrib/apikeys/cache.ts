import type { VerifiableKey } from './store.ts';

interface Entry {
  readonly key: VerifiableKey;
  readonly loadedMs: number;
}

/**
 * Rows of keys that were verified lately. Only the read is saved: digest, state, expiry and owner are judged on every hit. Entries leave
 * when their key or its owner changes (see invalidation.ts) and at the latest after `maxAgeMs`.
 */
export class KeyCache {
  readonly #maxAgeMs: number;
  readonly #entriesMax: number;
  readonly #entries = new Map<string, Entry>();
  #isOpen = false;
  /** Counts invalidations: a read that was under way during one may be older than it and must not be kept. */
  #epoch = 0;

  constructor({ maxAgeMs, entriesMax }: { readonly maxAgeMs: number; readonly entriesMax: number }) {
    this.#maxAgeMs = maxAgeMs;
    this.#entriesMax = entriesMax;
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** Notifications arrive: what is read from now on may be kept. */
  open(): void {
    this.clear();
    this.#isOpen = true;
  }

  /** Notifications may be missed: nothing is kept or served until `open`. */
  shut(): void {
    this.#isOpen = false;
    this.clear();
  }

  get(prefix: string, now: Date): VerifiableKey | undefined {
    const entry = this.#entries.get(prefix);
    if (entry === undefined) return undefined;
    const ageMs = now.getTime() - entry.loadedMs;
    // A negative age is a clock that was set back: how old the row is cannot be said.
    if (ageMs >= 0 && ageMs < this.#maxAgeMs) return entry.key;
    this.#entries.delete(prefix);
    return undefined;
  }

  /** `epoch` is the one from before the row was read. */
  put(key: VerifiableKey, now: Date, epoch: number): void {
    if (!this.#isOpen || epoch !== this.#epoch) return;
    if (this.#entries.size >= this.#entriesMax) {
      const [oldest] = this.#entries.keys();
      if (oldest !== undefined) this.#entries.delete(oldest);
    }
    // Every hit hands out the same objects: none may be changed by who gets them.
    for (const shared of [key.apiKey, key.apiKey.scopes, key.owner]) Object.freeze(shared);
    this.#entries.set(key.apiKey.prefix, { key, loadedMs: now.getTime() });
  }

  dropKey(prefix: string): void {
    this.#epoch += 1;
    this.#entries.delete(prefix);
  }

  dropOwner(ownerId: string): void {
    this.#epoch += 1;
    for (const [prefix, { key }] of this.#entries) if (key.apiKey.owner_id === ownerId) this.#entries.delete(prefix);
  }

  clear(): void {
    this.#epoch += 1;
    this.#entries.clear();
  }
}
