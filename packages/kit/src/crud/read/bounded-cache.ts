/** Keeps what was used last, up to `max` entries. A hit costs a delete and a set: the order of a Map is the order of use. */
export class BoundedCache<V> {
  readonly #entries = new Map<string, V>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#entries.size;
  }

  getOrMake(key: string, make: () => V): V {
    const known = this.#entries.get(key);
    if (known !== undefined) {
      if (this.#entries.size > this.#max / 2) {
        this.#entries.delete(key);
        this.#entries.set(key, known);
      }
      return known;
    }
    const made = make();
    if (this.#entries.size >= this.#max) this.#entries.delete(this.#entries.keys().next().value as string);
    this.#entries.set(key, made);
    return made;
  }
}
