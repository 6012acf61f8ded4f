import type { Labels, LabelValues } from '../../observe/metric-registry.ts';

export const OTHER = 'other';
/** Longer values are cut: they would be sent with every scrape. */
const VALUE_LENGTH_MAX = 128;

/**
 * Keeps the number of time series finite, whatever callers send: a closed list admits its own values, an open one the first `max` it sees.
 * Everything else becomes `other`.
 */
export class BoundedLabels<L extends string> {
  readonly names: readonly L[];
  readonly #closed = new Map<L, ReadonlySet<string>>();
  readonly #open = new Map<L, { readonly max: number; readonly seen: Set<string> }>();

  constructor(labels: Readonly<Record<L, LabelValues>>) {
    this.names = Object.keys(labels) as L[];
    for (const name of this.names) {
      const values: LabelValues = labels[name];
      if ('max' in values) this.#open.set(name, { max: values.max, seen: new Set() });
      else this.#closed.set(name, new Set(values));
    }
  }

  /** How many time series there can be: one more value than declared for each label, which is `other`. */
  get seriesMax(): number {
    const sizes = this.names.map((name) => (this.#closed.get(name)?.size ?? this.#open.get(name)?.max ?? 0) + 1);
    return sizes.reduce((product, size) => product * size, 1);
  }

  /** Forgets the values of open labels that were seen. */
  reset(): void {
    for (const { seen } of this.#open.values()) seen.clear();
  }

  bound(labels: Labels<L>): Record<L, string> {
    const bounded = {} as Record<L, string>;
    for (const name of this.names) bounded[name] = this.#value(name, labels[name]);
    return bounded;
  }

  #value(name: L, given: string): string {
    const closed = this.#closed.get(name);
    if (closed !== undefined) return closed.has(given) ? given : OTHER;
    const open = this.#open.get(name);
    if (open === undefined || typeof given !== 'string') return OTHER;
    const value = given.slice(0, VALUE_LENGTH_MAX);
    if (open.seen.has(value)) return value;
    if (open.seen.size >= open.max) return OTHER;
    open.seen.add(value);
    return value;
  }
}
