import { admit, describe, gcra } from './gcra.ts';
import type { Rate } from './rate.ts';
import type { ThrottleDecision, ThrottleStorage } from './storage.ts';
import { readOptions } from '../options/read-options.ts';
import { wholeNumber } from '../options/value-rule.ts';
import { BoundedMap } from '../db/values/bounded-map.ts';

export interface MemoryStorageOptions {
  /** Budgets kept at once (default 100,000, about 20 MB); beyond it the one unused for longest is forgotten. */
  readonly keysMax?: number;
}

/** Budgets of this process only, lost on restart. Exact because nothing here waits between reading and writing. */
export function memoryStorage(options: MemoryStorageOptions = {}): ThrottleStorage & { readonly size: number } {
  const { keysMax = 100_000 } = readOptions('memoryStorage()', options, { keysMax: wholeNumber(1) });
  // Insertion order is order of last use, because every admitted take re-inserts its key.
  const tats = new BoundedMap<string, number>(keysMax, 'forget the oldest');
  let takesUntilSweep = 1000;

  // A TAT in the past means a whole budget: the same as no entry. One full pass per `size` takes costs each take O(1).
  const sweep = (nowUs: number): void => {
    for (const [key, tatUs] of tats) if (tatUs <= nowUs) tats.delete(key);
    takesUntilSweep = Math.max(1000, tats.size);
  };

  return {
    isLocal: true,
    get size() {
      return tats.size;
    },
    take(key: string, rate: Rate, now: Date, cost?: number): Promise<ThrottleDecision> {
      const cell = gcra(rate, now, cost);
      takesUntilSweep -= 1;
      if (takesUntilSweep <= 0) sweep(cell.nowUs);
      const tatUs = tats.get(key);
      const next = admit(tatUs, cell);
      if (next !== null) tats.renew(key, next);
      return Promise.resolve(describe(next !== null, next ?? tatUs ?? cell.nowUs, rate, cell));
    },
    giveBack(key: string, rate: Rate, now: Date, cost?: number): Promise<void> {
      const tatUs = tats.get(key);
      if (tatUs !== undefined) tats.set(key, tatUs - gcra(rate, now, cost).incrementUs);
      return Promise.resolve();
    },
  };
}
