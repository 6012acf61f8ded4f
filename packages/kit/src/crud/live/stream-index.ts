import type { Item } from '../declare/item.ts';
import type { Policy } from '../policy/policy.ts';
import type { LiveStream } from './live-stream.ts';
import { TimeIndex } from './time-index.ts';

/** The streams of one table, found by a value that every row of their list has: a change touches only streams that it may concern. */
export class StreamIndex {
  readonly policy: Policy;
  readonly #all = new Set<LiveStream>();
  /** By column and value. */
  readonly #bound = new Map<string, Map<string, Set<LiveStream>>>();
  readonly #unbound = new Set<LiveStream>();
  readonly times: TimeIndex;

  constructor(policy: Policy) {
    this.policy = policy;
    this.times = new TimeIndex(policy);
  }

  get size(): number {
    return this.#all.size;
  }

  add(stream: LiveStream): void {
    this.#all.add(stream);
    this.times.add(stream.times);
    this.#placeOf(stream).add(stream);
  }

  delete(stream: LiveStream): void {
    if (!this.#all.delete(stream)) return;
    this.times.delete(stream.times);
    const { bound } = stream;
    if (bound === undefined) {
      this.#unbound.delete(stream);
      return;
    }
    const { column } = bound;
    const value = textOf(bound.value);
    const byValue = this.#bound.get(column);
    const streams = byValue?.get(value);
    streams?.delete(stream);
    if (streams?.size === 0) byValue?.delete(value);
    if (byValue?.size === 0) this.#bound.delete(column);
  }

  #placeOf(stream: LiveStream): Set<LiveStream> {
    const { bound } = stream;
    if (bound === undefined) return this.#unbound;
    const value = textOf(bound.value);
    const byValue = this.#bound.get(bound.column) ?? new Map<string, Set<LiveStream>>();
    this.#bound.set(bound.column, byValue);
    const streams = byValue.get(value) ?? new Set<LiveStream>();
    byValue.set(value, streams);
    return streams;
  }

  all(): Iterable<LiveStream> {
    return this.#all;
  }

  /** Streams whose list may have the row as it was, or as it is. Null: it was not, or is not, there. */
  concerned(prior: Item | null, row: Item | null): ReadonlySet<LiveStream> {
    const found = new Set(this.#unbound);
    for (const [column, byValue] of this.#bound)
      for (const each of [prior, row]) {
        if (each === null) continue;
        for (const stream of byValue.get(textOf(each[column])) ?? []) found.add(stream);
      }
    return found;
  }
}

function textOf(value: unknown): string {
  return value instanceof Date ? value.toISOString() : String(value);
}
