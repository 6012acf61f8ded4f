import type * as Undici from 'undici';
import type { Client, Dispatcher } from 'undici';
import { onDemand } from '../../../options/on-demand.ts';

/** 224 modules, which an API process that delivers nothing starts without. */
const undici = onDemand<typeof Undici>('undici');

/**
 * Origins with kept connections at a time. A worker with 100,000 endpoints would otherwise hold a socket to every receiver of the last
 * minute, and a process has often no more than 1,024 descriptors.
 */
const ORIGINS_MAX = 500;

export interface OriginPoolsOptions extends Client.Options {
  /** A connection is not used for another request beyond this age. */
  readonly connectionAgeMaxMs?: number;
  readonly originsMax?: number;
}

/** A connection in use by one request, until it is released. */
export interface HeldConnection {
  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void;
  /** When the client has called the handler for the last time, or refused the request. Only after a whole answer is it kept for the next. */
  release(outcome: 'answered' | 'failed'): void;
}

/**
 * Connections by origin, each for one request at a time; beyond the limit the origin that was not used for longest is closed. undici's own pool
 * looks at every connection of an origin, twice, to find a free one: at 100 requests under way that was a tenth of the cost of a request.
 */
export class OriginPools {
  readonly #options: Client.Options;
  readonly #connectionAgeMaxMs: number;
  readonly #originsMax: number;
  /** The least recently used first. */
  readonly #pools = new Map<string, OriginPool>();
  #latest: OriginPool | undefined;

  constructor({ connectionAgeMaxMs = Infinity, originsMax = ORIGINS_MAX, ...options }: OriginPoolsOptions = {}) {
    this.#options = options;
    this.#connectionAgeMaxMs = connectionAgeMaxMs;
    this.#originsMax = originsMax;
  }

  get size(): number {
    return this.#pools.size;
  }

  /** The connection that became free last, or a new one. */
  hold(origin: string): HeldConnection {
    return this.#poolOf(origin).hold();
  }

  async close(): Promise<void> {
    const pools = [...this.#pools.values()];
    this.#pools.clear();
    this.#latest = undefined;
    await Promise.all(pools.map((pool) => pool.destroy()));
  }

  #poolOf(origin: string): OriginPool {
    if (this.#latest?.origin === origin) return this.#latest;
    let pool = this.#pools.get(origin);
    if (pool === undefined) {
      if (this.#pools.size >= this.#originsMax) this.#closeLeastUsed();
      pool = new OriginPool(origin, this.#options, this.#connectionAgeMaxMs, (emptied) => this.#forget(emptied));
    } else {
      this.#pools.delete(origin);
    }
    this.#pools.set(origin, pool);
    return (this.#latest = pool);
  }

  /** While all of them are in use there are more: the worker's concurrency bounds those. */
  #closeLeastUsed(): void {
    for (const pool of this.#pools.values()) {
      if (!pool.isIdle) continue;
      pool.close();
      return;
    }
  }

  /** No connection is open and no request waits: an origin that is never asked again leaves nothing behind. */
  #forget(pool: OriginPool): void {
    if (this.#pools.get(pool.origin) === pool) this.#pools.delete(pool.origin);
    if (this.#latest === pool) this.#latest = undefined;
  }
}

/** The connections to one origin. */
class OriginPool {
  readonly origin: string;
  readonly #options: Client.Options;
  readonly #connectionAgeMaxMs: number;
  readonly #onEmpty: (pool: OriginPool) => void;
  readonly #all = new Set<Connection>();
  /** The one that became free last is the last: what is not needed grows old and is closed by its keep-alive. */
  readonly #free: Connection[] = [];

  constructor(origin: string, options: Client.Options, connectionAgeMaxMs: number, onEmpty: (pool: OriginPool) => void) {
    this.origin = origin;
    this.#options = options;
    this.#connectionAgeMaxMs = connectionAgeMaxMs;
    this.#onEmpty = onEmpty;
  }

  get isIdle(): boolean {
    return this.#all.size === this.#free.length;
  }

  hold(): HeldConnection {
    const oldest = performance.now() - this.#connectionAgeMaxMs;
    for (let free = this.#free.pop(); free !== undefined; free = this.#free.pop()) {
      if (free.openedAt >= oldest) return free.held();
      this.#discard(free);
    }
    const opened = new Connection(new (undici().Client)(this.origin, this.#options), this);
    this.#all.add(opened);
    return opened.held();
  }

  /** Back from its request. */
  takeBack(connection: Connection, isUsable: boolean): void {
    if (isUsable) this.#free.push(connection);
    else this.#discard(connection);
  }

  /** It is not connected any more. One that is in use is discarded when it comes back. */
  lose(connection: Connection): void {
    const index = this.#free.indexOf(connection);
    if (index === -1) return;
    this.#free.splice(index, 1);
    this.#discard(connection);
  }

  close(): void {
    for (const connection of this.#free.splice(0)) this.#discard(connection);
  }

  async destroy(): Promise<void> {
    const all = [...this.#all];
    this.#all.clear();
    this.#free.length = 0;
    await Promise.all(all.map((connection) => connection.destroy()));
  }

  #discard(connection: Connection): void {
    if (!this.#all.delete(connection)) return;
    connection.close();
    if (this.#all.size === 0) this.#onEmpty(this);
  }
}

class Connection implements HeldConnection {
  /** On the clock that only goes forward: a corrected time of day must not keep an address that was vetted long ago. */
  readonly openedAt = performance.now();
  readonly #client: Client;
  readonly #pool: OriginPool;
  #isLost = false;
  #isHeld = false;

  constructor(client: Client, pool: OriginPool) {
    this.#client = client;
    this.#pool = pool;
    const lose = (): void => {
      this.#isLost = true;
      pool.lose(this);
    };
    client.on('disconnect', lose).on('connectionError', lose);
  }

  held(): this {
    this.#isHeld = true;
    return this;
  }

  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#client.dispatch(request, handler);
  }

  release(outcome: 'answered' | 'failed'): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#pool.takeBack(this, outcome === 'answered' && !this.#isLost);
  }

  close(): void {
    void this.#client.close().catch(() => undefined);
  }

  async destroy(): Promise<void> {
    await this.#client.destroy();
  }
}
