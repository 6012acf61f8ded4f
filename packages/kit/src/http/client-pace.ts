import type { Readable } from 'node:stream';

/** Streams that cut a slow client themselves. */
export const pacedStreams = new WeakSet<Readable>();

export interface ClientPaceOptions {
  /** A client that takes nothing for this long is too slow. The average is taken over as much time of waiting, too. */
  readonly idleMs: number;
  readonly bytesPerSecond: number;
  /** Called once. */
  readonly onSlow: (why: string) => void;
}

/**
 * How fast a client takes a response, while the server waits for it: the time in which the database works does not count. Too slow is a
 * client that takes nothing for `idleMs`, or less than the average that it owes for `idleMs` of waiting. Buffers of the network take bytes
 * for it, so a client is seen in steps, and the first of them says little.
 */
export class ClientPace {
  readonly #options: ClientPaceOptions;
  readonly #timer: NodeJS.Timeout;
  #waitingSince: number | undefined;
  #waitedMs = 0;
  #takenBytes = 0;

  constructor(options: ClientPaceOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#check(), Math.max(10, options.idleMs / 10)).unref();
  }

  /** Bytes were handed over; from here on the client is waited for. */
  wait(): void {
    this.#waitingSince ??= performance.now();
  }

  took(bytes: number): void {
    if (this.#waitingSince !== undefined) this.#waitedMs += performance.now() - this.#waitingSince;
    this.#waitingSince = undefined;
    this.#takenBytes += bytes;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #check(): void {
    if (this.#waitingSince === undefined) return;
    const { idleMs, bytesPerSecond } = this.#options;
    const now = performance.now();
    const idle = now - this.#waitingSince;
    if (idle >= idleMs) return this.#slow(`the client took nothing for ${idleMs} ms`);
    if (this.#waitedMs + idle < idleMs) return;
    if (this.#takenBytes < (idleMs / 1000) * bytesPerSecond)
      return this.#slow(`the client took less than ${bytesPerSecond} bytes per second over ${idleMs} ms`);
    this.#waitedMs = -idle;
    this.#takenBytes = 0;
  }

  #slow(why: string): void {
    this.stop();
    this.#options.onSlow(why);
  }
}
