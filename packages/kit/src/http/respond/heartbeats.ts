import { AsyncLocalStorage } from 'node:async_hooks';

/** A stream that is told when it is time for a heartbeat. */
export interface Beating {
  heartbeat(): void;
}

/** Parts that the streams are reached in, so that ten thousand of them are not written to at the same time. */
const PARTS = 16;

/** The timer is that of all streams: not part of the request that came first. */
const outsideOfRequests = AsyncLocalStorage.snapshot();

/** The heartbeats of all open streams with one interval: one timer, instead of one for each stream. */
class Heartbeats {
  readonly #parts = Array.from({ length: PARTS }, () => new Set<Beating>());
  readonly #ms: number;
  #size = 0;
  #added = 0;
  #turn = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(ms: number) {
    this.#ms = ms;
  }

  add(stream: Beating): () => void {
    const part = this.#parts[this.#added++ % PARTS] as Set<Beating>;
    part.add(stream);
    this.#size += 1;
    this.#timer ??= outsideOfRequests(() => setInterval(() => this.#beat(), this.#ms / PARTS).unref());
    return () => {
      if (!part.delete(stream)) return;
      this.#size -= 1;
      if (this.#size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  #beat(): void {
    this.#turn = (this.#turn + 1) % PARTS;
    for (const stream of this.#parts[this.#turn] as Set<Beating>) stream.heartbeat();
  }
}

const byInterval = new Map<number, Heartbeats>();

/** Gives the stream a heartbeat in every interval until the returned function is called. */
export function beatRegularly(ms: number, stream: Beating): () => void {
  const known = byInterval.get(ms) ?? new Heartbeats(ms);
  byInterval.set(ms, known);
  return known.add(stream);
}
