import type { ApiKey } from '../key/api-key.ts';
import type { VerifiableKey } from '../rows/store.ts';
import { BoundedMap } from '../../../db/values/bounded-map.ts';

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
  readonly #entries: BoundedMap<string, Entry>;
  #isOpen = false;
  /** Counts invalidations: a read that was under way during one may be older than it and must not be kept. */
  #epoch = 0;

  constructor({ maxAgeMs, entriesMax }: { readonly maxAgeMs: number; readonly entriesMax: number }) {
    this.#maxAgeMs = maxAgeMs;
    this.#entries = new BoundedMap(entriesMax, 'forget the oldest');
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
    this.#entries.set(key.row.prefix, { key: shareable(key), loadedMs: now.getTime() });
  }

  dropKey(prefix: string): void {
    this.#epoch += 1;
    this.#entries.delete(prefix);
  }

  dropOwner(ownerId: string): void {
    this.#epoch += 1;
    for (const [prefix, { key }] of this.#entries) if (key.row.owner_id === ownerId) this.#entries.delete(prefix);
  }

  clear(): void {
    this.#epoch += 1;
    this.#entries.clear();
  }
}

/** Every hit hands out the same objects: none may be changed by who gets them, and what is judged is not even handed out. */
function shareable({ row, owner, ...digests }: VerifiableKey): VerifiableKey {
  const own = {
    ...row,
    created_at: copyOf(row.created_at),
    last_used_at: copyOf(row.last_used_at),
    expires_at: copyOf(row.expires_at),
    revoked_at: copyOf(row.revoked_at),
    previous_expires_at: copyOf(row.previous_expires_at),
    previous_last_used_at: copyOf(row.previous_last_used_at),
  };
  return { ...digests, row: own, apiKey: Object.freeze(withNewDates(own)), owner: Object.freeze({ ...owner }) };
}

/** A Date cannot be frozen, and code that sets one back by a week, to warn before the expiry, would move it for all: each read makes a new one. */
function withNewDates(row: ApiKey): ApiKey {
  return {
    ...row,
    scopes: Object.freeze([...row.scopes]),
    get created_at() {
      return copyOf(row.created_at);
    },
    get last_used_at() {
      return copyOf(row.last_used_at);
    },
    get expires_at() {
      return copyOf(row.expires_at);
    },
    get revoked_at() {
      return copyOf(row.revoked_at);
    },
    get previous_expires_at() {
      return copyOf(row.previous_expires_at);
    },
    get previous_last_used_at() {
      return copyOf(row.previous_last_used_at);
    },
  };
}

function copyOf<D extends Date | null>(date: D): D {
  return (date === null ? null : new Date(date)) as D;
}
