import type { Readable } from 'node:stream';

/** Streams that cut a slow client themselves. */
export const pacedStreams = new WeakSet<Readable>();

export interface ClientPaceOptions {
  /** Whether the client takes a response or sends a body. */
  readonly verb: 'took' | 'sent';
  /** A client that takes or sends nothing for this long is too slow. The average is taken over as much time of waiting, too. */
  readonly idleMs: number;
  readonly bytesPerSecond: number;
  /** Called once. */
  readonly onSlow: (why: string) => void;
}

/** How often a client is looked at within `idleMs`. */
const LOOKS = 10;
const LOOK_MS_MIN = 10;

/**
 * How fast a client takes a response or sends a body, while the server waits for it: the time in which the database works does not count, and
 * neither does time in which this process was blocked. Too slow is a client that takes nothing for `idleMs`, or less than the average that it
 * owes for `idleMs` of waiting. Buffers of the network take bytes for it, so a client is seen in steps, and the first of them says little.
 */
export class ClientPace {
  readonly #options: ClientPaceOptions;
  readonly #lookMs: number;
  readonly #timer: NodeJS.Timeout;
  #lookedAt = performance.now();
  #waitingSince: number | undefined;
  #waitedMs = 0;
  #movedBytes = 0;

  constructor(options: ClientPaceOptions) {
    this.#options = options;
    this.#lookMs = Math.max(LOOK_MS_MIN, options.idleMs / LOOKS);
    this.#timer = setInterval(() => this.#look(), this.#lookMs).unref();
  }

  /** From here on the client is waited for. */
  wait(): void {
    this.#waitingSince ??= performance.now();
  }

  /** The client took or sent so many bytes, and is not waited for. */
  moved(bytes: number): void {
    if (this.#waitingSince !== undefined) this.#waitedMs += performance.now() - this.#waitingSince;
    this.#waitingSince = undefined;
    this.#movedBytes += bytes;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const now = performance.now();
    const lateMs = now - this.#lookedAt - this.#lookMs;
    this.#lookedAt = now;
    if (this.#waitingSince === undefined) return;
    // Timers run before sockets are read: bytes that arrived while the process was blocked are not seen yet.
    if (lateMs > this.#lookMs) this.#waitingSince = Math.min(now, this.#waitingSince + lateMs);
    const { idleMs, bytesPerSecond, verb } = this.#options;
    const idle = now - this.#waitingSince;
    if (idle >= idleMs) return this.#slow(`the client ${verb} nothing for ${idleMs} ms`);
    if (this.#waitedMs + idle < idleMs) return;
    if (this.#movedBytes < (idleMs / 1000) * bytesPerSecond)
      return this.#slow(`the client ${verb} less than ${bytesPerSecond} bytes per second over ${idleMs} ms`);
    this.#waitedMs = -idle;
    this.#movedBytes = 0;
  }

  #slow(why: string): void {
    this.stop();
    this.#options.onSlow(why);
  }
}
