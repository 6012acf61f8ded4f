import { createHash } from 'node:crypto';

/** Named statements live on the server until the connection closes, so their number is bounded. */
const NAMES_MAX = 1000;
const TEXTS_MAX = 5000;

/**
 * Which statements are sent under a name (and planned once per connection; 8.6k → 36k lookups/s). A text earns its
 * name the second time it is seen: lists of varying length would fill the server with statements used once.
 */
export class StatementNames {
  #seen = new Set<string>();
  #names = new Map<string, string>();
  #generation = 0;

  nameOf(text: string): string | undefined {
    const known = this.#names.get(text);
    if (known !== undefined) return known;
    if (!this.#seen.has(text)) {
      if (this.#seen.size >= TEXTS_MAX) this.#seen.clear();
      this.#seen.add(text);
      return undefined;
    }
    if (this.#names.size >= NAMES_MAX) return undefined;
    const name = `k${this.#generation}_${createHash('sha256').update(text).digest('base64url').slice(0, 22)}`;
    this.#names.set(text, name);
    return name;
  }

  /** The tables have changed: a plan made before may not return its new columns, so names start over. */
  startOver(): void {
    this.#generation += 1;
    this.#names = new Map();
    this.#seen = new Set();
  }
}
