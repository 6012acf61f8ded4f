import type { MadeResponse } from '../http/exchange/middleware.ts';

interface Entry {
  readonly response: MadeResponse;
  readonly tags: readonly string[];
  readonly until: number;
}

interface Flight {
  readonly startedAt: number;
  readonly response: Promise<MadeResponse | undefined>;
}

/** Tags that were invalidated and are remembered for fills under way; more than that and everything counts as invalidated. */
const TAGS_MAX = 10_000;

/** Responses in memory, by key: bounded, dropped by tag, made by one request at a time. */
export class ResponseStore {
  readonly #entriesMax: number;
  readonly #bytesMax: number;
  /** The least recently used first. */
  readonly #entries = new Map<string, Entry>();
  readonly #keysByTag = new Map<string, Set<string>>();
  readonly #flights = new Map<string, Flight>();
  /** Counts invalidations; what a fill read before the last one of its tags may be stale. */
  #now = 0;
  #clearedAt = 0;
  readonly #invalidatedAt = new Map<string, number>();
  #bytes = 0;

  constructor(entriesMax: number, bytesMax: number) {
    this.#entriesMax = entriesMax;
    this.#bytesMax = bytesMax;
  }

  get size(): { readonly entries: number; readonly bytes: number } {
    return { entries: this.#entries.size, bytes: this.#bytes };
  }

  find(key: string, now: number): MadeResponse | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry.until <= now) {
      this.#drop(key, entry);
      return undefined;
    }
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.response;
  }

  /**
   * Makes a response and keeps it, unless it may not be kept or something it is made of changed meanwhile. Requests for the same key wait for
   * the first one, but not for one that began before the last write: they would not see it. What may not be kept is not shared.
   */
  async fill(
    key: string,
    tags: readonly string[],
    until: number,
    make: () => Promise<MadeResponse | undefined>,
    mayBeKept: (response: MadeResponse) => boolean,
  ): Promise<MadeResponse | undefined> {
    const under = this.#flights.get(key);
    if (under !== undefined && this.#isCurrent(under.startedAt, tags)) {
      const shared = await under.response;
      if (shared !== undefined) return shared;
      return make();
    }
    const startedAt = this.#now;
    const { promise, resolve } = Promise.withResolvers<MadeResponse | undefined>();
    const flight: Flight = { startedAt, response: promise };
    this.#flights.set(key, flight);
    let shared: MadeResponse | undefined;
    try {
      const response = await make();
      if (response !== undefined && mayBeKept(response)) {
        shared = response;
        if (this.#isCurrent(startedAt, tags)) this.#keep(key, { response, tags, until });
      }
      return response;
    } finally {
      if (this.#flights.get(key) === flight) this.#flights.delete(key);
      resolve(shared);
    }
  }

  invalidate(tags: readonly string[]): void {
    this.#now += 1;
    for (const tag of tags) {
      if (this.#invalidatedAt.size >= TAGS_MAX && !this.#invalidatedAt.has(tag)) {
        this.#invalidatedAt.clear();
        this.#clearedAt = this.#now;
      }
      this.#invalidatedAt.set(tag, this.#now);
      for (const key of this.#keysByTag.get(tag) ?? []) {
        const entry = this.#entries.get(key);
        if (entry !== undefined) this.#drop(key, entry);
      }
    }
  }

  clear(): void {
    this.#now += 1;
    this.#clearedAt = this.#now;
    this.#entries.clear();
    this.#keysByTag.clear();
    this.#bytes = 0;
  }

  #isCurrent(startedAt: number, tags: readonly string[]): boolean {
    return this.#clearedAt <= startedAt && tags.every((tag) => (this.#invalidatedAt.get(tag) ?? 0) <= startedAt);
  }

  #keep(key: string, entry: Entry): void {
    const { length } = entry.response.body;
    if (length > this.#bytesMax / 10) return;
    const known = this.#entries.get(key);
    if (known !== undefined) this.#drop(key, known);
    this.#entries.set(key, entry);
    this.#bytes += length;
    for (const tag of entry.tags) {
      const keys = this.#keysByTag.get(tag);
      if (keys === undefined) this.#keysByTag.set(tag, new Set([key]));
      else keys.add(key);
    }
    for (const [oldest, each] of this.#entries) {
      if (this.#entries.size <= this.#entriesMax && this.#bytes <= this.#bytesMax) break;
      this.#drop(oldest, each);
    }
  }

  #drop(key: string, { tags, response }: Entry): void {
    this.#entries.delete(key);
    this.#bytes -= response.body.length;
    for (const tag of tags) {
      const keys = this.#keysByTag.get(tag);
      keys?.delete(key);
      if (keys?.size === 0) this.#keysByTag.delete(tag);
    }
  }
}
