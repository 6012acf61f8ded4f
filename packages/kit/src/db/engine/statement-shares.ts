import { dbErrors } from '../errors.ts';
import { type LongStatement, type OwnerKind, ownerKind } from './long-statement.ts';

export interface ShareOptions {
  /** Connections or readers that run statements that may be long. */
  readonly connections: number;
  /** How much of them one caller may use. */
  readonly percent: number;
  /** Statements of one caller that may wait for its share. */
  readonly waitingMax: number;
  /** How long one waits at most. */
  readonly waitMsMax: number;
  /** Connections that streamed queries have now. They have limits of their own. */
  readonly streams: () => number;
}

/** A caller's statements: those under way, and those that wait for one of them to end. */
interface Owner {
  running: number;
  readonly waiting: (() => void)[];
}

/**
 * Statements that may be long are admitted before they are sent. One caller gets a part of the connections and waits for itself beyond it, so
 * that others are served meanwhile; all callers together leave one connection for everything else. Callers that wait for a connection get
 * one in turns.
 */
export class StatementShares {
  readonly #ownerMax: number;
  readonly #totalMax: number;
  readonly #options: ShareOptions;
  /** In the order in which they are served next. */
  readonly #owners = new Map<string, Owner>();
  #running = 0;

  constructor(options: ShareOptions) {
    const { connections, percent } = options;
    this.#totalMax = Math.max(1, connections - 1);
    this.#ownerMax = Math.min(this.#totalMax, Math.max(1, Math.floor((connections * percent) / 100)));
    this.#options = options;
  }

  get running(): number {
    return this.#running;
  }

  /** How many statements wait, by the kind of caller. */
  get waiting(): Readonly<Partial<Record<OwnerKind, number>>> {
    const counts: Partial<Record<OwnerKind, number>> = {};
    for (const [name, { waiting }] of this.#owners) {
      const kind = ownerKind(name);
      counts[kind] = (counts[kind] ?? 0) + waiting.length;
    }
    return counts;
  }

  /** Callers that have a statement under way or waiting; for tests of what is left behind. */
  get ownerCount(): number {
    return this.#owners.size;
  }

  /** Runs `work` when the caller may. Rejects with 503 `too_busy` when too many of its statements wait, or one waits too long. */
  async during<R>(long: LongStatement, work: (long: LongStatement) => Promise<R>): Promise<R> {
    long.signal?.throwIfAborted();
    const name = long.owner ?? '';
    const begin = performance.now();
    const isAtOnce = this.#enterNow(name);
    if (!isAtOnce) await this.#turnOf(name, long);
    try {
      // The wait is part of the request's time.
      const deadlineMs = isAtOnce ? long.deadlineMs : Math.max(1, long.deadlineMs - (performance.now() - begin));
      return await work({ ...long, deadlineMs, isOneOfSeveral: this.#running > 1 });
    } finally {
      this.#leave(name);
    }
  }

  #enterNow(name: string): boolean {
    const owner = this.#owners.get(name);
    if (this.#isFull || (owner !== undefined && (owner.running >= this.#ownerMax || owner.waiting.length > 0))) return false;
    if (owner === undefined) this.#owners.set(name, { running: 1, waiting: [] });
    else owner.running += 1;
    this.#running += 1;
    return true;
  }

  async #turnOf(name: string, { signal, deadlineMs }: LongStatement): Promise<void> {
    const owner = this.#owners.get(name) ?? { running: 0, waiting: [] };
    if (owner.waiting.length >= this.#options.waitingMax) throw tooBusy(`${owner.waiting.length} statements of this caller wait`);
    this.#owners.set(name, owner);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    owner.waiting.push(resolve);
    const giveUp = (reason: unknown): void => {
      const place = owner.waiting.indexOf(resolve);
      if (place === -1) return; // its turn came first
      owner.waiting.splice(place, 1);
      this.#forgetIdle(name, owner);
      reject(reason);
    };
    const waitMs = Math.min(this.#options.waitMsMax, deadlineMs);
    const timer = setTimeout(() => giveUp(tooBusy(`it waited ${Math.round(waitMs)} ms for other statements of this caller`)), waitMs);
    const abort = (): void => giveUp(signal?.reason);
    signal?.addEventListener('abort', abort, { once: true });
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    }
  }

  #leave(name: string): void {
    const owner = this.#owners.get(name) as Owner;
    owner.running -= 1;
    this.#running -= 1;
    this.#forgetIdle(name, owner);
    this.serveNext();
  }

  get #isFull(): boolean {
    return this.#running > 0 && this.#running + this.#options.streams() >= this.#totalMax;
  }

  /** Also called when a streamed query gave its connection back. */
  serveNext(): void {
    for (const [name, owner] of this.#owners) {
      if (this.#isFull) return;
      const next = owner.running < this.#ownerMax ? owner.waiting.shift() : undefined;
      if (next === undefined) continue;
      owner.running += 1;
      this.#running += 1;
      // Behind the others, for its next turn.
      this.#owners.delete(name);
      this.#owners.set(name, owner);
      next();
      this.serveNext();
      return;
    }
  }

  #forgetIdle(name: string, owner: Owner): void {
    if (owner.running === 0 && owner.waiting.length === 0) this.#owners.delete(name);
  }
}

function tooBusy(message: string): Error {
  return dbErrors.too_busy({ message });
}
