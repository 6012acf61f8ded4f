import { coreErrors } from '../../errors/core-errors.ts';
import type { KitError } from '../../errors/kit-error.ts';
import { clientKey } from '../../throttle/client-key.ts';
import { admit, gcra } from '../../throttle/gcra.ts';
import type { Rate } from '../../throttle/rate.ts';

/** Addresses remembered at a time; an attacker with more than this has better things to do than guess 256 bits. */
const ADDRESSES_MAX = 10_000;

/**
 * Counts bad keys per client address, in this process and without the database: the point is to keep guessers away from it. Only
 * failures count, so an address behind which many good clients work is not slowed down by them.
 */
export class FailedAttempts {
  readonly #rate: Rate;
  readonly #tats = new Map<string, number>();

  constructor(rate: Rate) {
    this.#rate = rate;
  }

  /** The 429 for an address that failed too often just now, or null when it may try. */
  refusal(address: string, now: Date): KitError | null {
    const tat = this.#tats.get(clientKey(address));
    if (tat === undefined) return null;
    const cell = gcra(this.#rate, now);
    if (admit(tat, cell) !== null) return null;
    const seconds = Math.max(1, Math.ceil((tat + cell.incrementUs - cell.windowUs - cell.nowUs) / 1_000_000));
    return coreErrors.throttled({
      detail: `Too many invalid API keys from this address. Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`,
      extensions: { policy: 'api_key_failures' },
      headers: { 'retry-after': String(seconds) },
    });
  }

  record(address: string, now: Date): void {
    const key = clientKey(address);
    const cell = gcra(this.#rate, now);
    const next = admit(this.#tats.get(key), cell);
    if (next === null) return;
    if (this.#tats.size >= ADDRESSES_MAX && !this.#tats.has(key)) this.#makeRoom(cell.nowUs);
    this.#tats.set(key, next);
  }

  #makeRoom(nowUs: number): void {
    for (const [key, tat] of this.#tats) if (tat <= nowUs) this.#tats.delete(key);
    for (const key of this.#tats.keys()) {
      if (this.#tats.size < ADDRESSES_MAX) return;
      this.#tats.delete(key);
    }
  }
}
