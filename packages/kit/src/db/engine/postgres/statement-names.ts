import { BoundedMap } from '../../values/bounded-map.ts';

/** Names in use at a time. Named statements live on the server until the connection closes, so their number is bounded. */
const NAMES_MAX = 1000;
const TEXTS_MAX = 5000;
/** Statements that a connection may hold beyond the names in use before the old ones are removed: one statement for many. */
const STALE_MAX = 250;

/**
 * Which statements are sent under a name (and planned once per connection; 8.6k → 36k lookups/s). A text earns its
 * name the second time it is seen: lists of varying length would fill the server with statements used once. Beyond the maximum, the
 * text that was used longest ago loses its name, so that a caller that sends new texts all the time cannot take the names of all others.
 */
export class StatementNames {
  readonly #max: number;
  readonly #seen = new BoundedMap<string, true>(TEXTS_MAX);
  /** In the order of use once there are many. */
  #names = new Map<string, string>();
  #live = new Set<string>();
  #count = 0;

  constructor(max: number = NAMES_MAX) {
    this.#max = max;
  }

  nameOf(text: string): string | undefined {
    const known = this.#names.get(text);
    if (known !== undefined) {
      if (this.#names.size > this.#max / 2) {
        this.#names.delete(text);
        this.#names.set(text, known);
      }
      return known;
    }
    if (!this.#seen.has(text)) {
      this.#seen.set(text, true);
      return undefined;
    }
    if (this.#names.size >= this.#max) this.#removeOldest();
    // Never the name of another text, also not of one that lost it: a connection may still hold that statement.
    const name = `k${(this.#count += 1)}`;
    this.#names.set(text, name);
    this.#live.add(name);
    return name;
  }

  #removeOldest(): void {
    const [oldest] = this.#names;
    if (oldest === undefined) return;
    this.#names.delete(oldest[0]);
    this.#live.delete(oldest[1]);
    this.#seen.delete(oldest[0]);
  }

  /**
   * Whether a connection should be looked at that was last looked at when so many names had been given. Never before there are more names
   * than can be in use.
   */
  isWorthLooking(lastGiven: number): boolean {
    return this.#count > this.#max + STALE_MAX && this.#count - lastGiven >= STALE_MAX;
  }

  /** How many names were ever given. */
  get given(): number {
    return this.#count;
  }

  /** The statements that a connection holds and that will not be used again; none until there are enough to be worth a round trip. */
  staleOf(held: readonly string[]): string[] {
    if (held.length <= this.#max + STALE_MAX) return [];
    return held.filter((name) => !this.#live.has(name));
  }

  /** The tables have changed: a plan made before may not return its new columns, so names start over. */
  startOver(): void {
    this.#names = new Map();
    this.#live = new Set();
    this.#seen.clear();
  }
}
