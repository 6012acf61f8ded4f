import { moduleState } from '../../../app/assemble/module-state.ts';
import type { Db } from '../../../db/engine/db.ts';
import { takeRequest, type QuotaCount, type QuotaRow, type Taken } from './quota-store.ts';

/** Where requests are counted. Of N parallel requests against a quota of L exactly L are admitted, whichever process they come from. */
export interface QuotaCounter {
  /** Counts one request in each of them, or in none. */
  take(counts: readonly QuotaCount[]): Promise<Taken>;
  /** The rows with what is counted but not in them yet. */
  current(rows: readonly QuotaRow[]): Promise<readonly QuotaRow[]>;
  /** Writes what is counted but not in the rows yet. Rejects where that cannot be found out now. */
  settle(ids: readonly string[]): Promise<void>;
  stop(): Promise<void>;
}

/** Counts in the rows themselves, with each request. */
export function databaseCounter(db: Db): QuotaCounter {
  return {
    take: (counts) => takeRequest(db, counts),
    current: (rows) => Promise.resolve(rows),
    settle: () => Promise.resolve(),
    stop: () => Promise.resolve(),
  };
}

/** The counters of the open databases of apps with this module. */
export const quotaCounters = moduleState<QuotaCounter>({ name: 'Quotas', setUp: 'add requests() to the modules of createApp' });
