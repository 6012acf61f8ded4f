import { Pool, type Dispatcher } from 'undici';

/**
 * Origins with kept connections at a time. A worker with 100,000 endpoints would otherwise hold a socket to every receiver of the last
 * minute, and a process has often no more than 1,024 descriptors.
 */
const ORIGINS_MAX = 500;

type Request = Dispatcher.DispatchOptions & { readonly origin: string };

/** One pool of connections per origin; beyond the limit the one that was not used for longest is closed. */
export class OriginPools {
  readonly #options: Pool.Options;
  readonly #originsMax: number;
  /** The least recently used first. */
  readonly #pools = new Map<string, Pool>();

  constructor(options: Pool.Options, originsMax = ORIGINS_MAX) {
    this.#options = options;
    this.#originsMax = originsMax;
  }

  get size(): number {
    return this.#pools.size;
  }

  dispatch(request: Request, handler: Dispatcher.DispatchHandler): void {
    this.#poolOf(request.origin).dispatch(request, handler);
  }

  async close(): Promise<void> {
    const pools = [...this.#pools.values()];
    this.#pools.clear();
    await Promise.all(pools.map((pool) => pool.destroy()));
  }

  #poolOf(origin: string): Pool {
    const pool = this.#pools.get(origin) ?? this.#open(origin);
    this.#pools.delete(origin);
    this.#pools.set(origin, pool);
    return pool;
  }

  #open(origin: string): Pool {
    if (this.#pools.size >= this.#originsMax) this.#closeLeastUsed();
    const pool = new Pool(origin, this.#options);
    // Nobody is connected any more and nobody waits: an origin that is never asked again leaves nothing behind.
    const forget = (): void => {
      if (pool.stats.connected === 0 && isIdle(pool)) this.#close(origin, pool);
    };
    return pool.on('disconnect', forget).on('connectionError', forget);
  }

  /** While all of them are in use there are more: the worker's concurrency bounds those. */
  #closeLeastUsed(): void {
    for (const [origin, pool] of this.#pools) if (isIdle(pool)) return this.#close(origin, pool);
  }

  #close(origin: string, pool: Pool): void {
    if (this.#pools.get(origin) !== pool) return;
    this.#pools.delete(origin);
    void pool.close().catch(() => undefined);
  }
}

function isIdle(pool: Pool): boolean {
  return pool.stats.size === 0;
}
