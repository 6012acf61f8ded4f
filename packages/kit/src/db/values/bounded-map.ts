/**
 * The cache of a bounded size that everything here uses. When it is full it starts over, because the values are cheap to make again and an order of
 * eviction would cost more with every read than the rare new start; or, where a caller could then push out what others use, the oldest goes.
 */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #max: number;
  readonly #whenFull: 'start over' | 'forget the oldest';

  constructor(max: number, whenFull: 'start over' | 'forget the oldest' = 'start over') {
    super();
    this.#max = max;
    this.#whenFull = whenFull;
  }

  getOrMake(key: K, make: () => V): V {
    let value = this.get(key);
    if (value === undefined) this.set(key, (value = make()));
    return value;
  }

  /** The value, which is the newest now. To keep the order costs nothing before the map is half full. */
  use(key: K): V | undefined {
    const value = this.get(key);
    if (value !== undefined && this.size > this.#max / 2) this.renew(key, value);
    return value;
  }

  /** Sets the value as the newest. */
  renew(key: K, value: V): void {
    this.delete(key);
    this.set(key, value);
  }

  override set(key: K, value: V): this {
    if (this.size >= this.#max && !this.has(key)) {
      if (this.#whenFull === 'start over') this.clear();
      else this.#forgetOldest();
    }
    return super.set(key, value);
  }

  /** The order of a Map is the order in which its keys were set. */
  #forgetOldest(): void {
    const oldest = this.keys().next();
    if (oldest.done !== true) this.delete(oldest.value);
  }
}
