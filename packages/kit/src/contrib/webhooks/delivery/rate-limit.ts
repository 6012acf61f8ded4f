// The rate limit of an endpoint, kept in its row: it holds for all workers together.
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { parseRate, type Rate } from '../../../throttle/rate.ts';
import { isLockTimeout, limitLockWait } from '../../../work/lock-patience.ts';

export interface Granted {
  readonly count: number;
  /** When there is room for the next request. */
  readonly nextAt: Date;
}

/** A row that another transaction has locked is asked again after this long. */
const LOCKED_MS = 250;

/**
 * How many of `wanted` requests may be sent now, and the state to store. A tenth of the budget may be used at once, the rest is spread evenly: in no
 * period are there more than the rate says.
 */
export function grant(rate: Rate, state: Date | null, now: Date, wanted: number): Granted & { readonly state: Date } {
  const burst = Math.ceil(rate.count / 10);
  const intervalMs = rate.periodMs / (rate.count - burst + 1);
  // Relative to now: fractions of a millisecond are lost beside the milliseconds since 1970.
  const lead = Math.max(0, (state?.getTime() ?? 0) - now.getTime());
  const count = Math.max(0, Math.min(wanted, Math.floor(burst - lead / intervalMs + 1e-6)));
  const after = Math.ceil(lead + count * intervalMs);
  const nextMs = Math.max(0, Math.ceil(after - (burst - 1) * intervalMs));
  return { count, state: new Date(now.getTime() + after), nextAt: new Date(now.getTime() + nextMs) };
}

/** Takes requests out of the budget of an endpoint, which all workers share. */
export async function takeFromBudget(db: Db, endpointId: string, rateText: string, wanted: number, now: Date): Promise<Granted> {
  const rate = parseRate(rateText);
  try {
    return await db.transaction(async (tx) => {
      await limitLockWait(tx);
      const lock = tx.dialect === 'postgres' ? ' for no key update' : '';
      const [row] = await tx.query<{ rate_next_at: Date | null }>(`select rate_next_at from webhook_endpoints where id = $1${lock}`, [
        endpointId,
      ]);
      const granted = grant(rate, row?.rate_next_at ?? null, now, wanted);
      if (granted.count > 0) await tx.query('update webhook_endpoints set rate_next_at = $2 where id = $1', [endpointId, granted.state]);
      return granted;
    }, CONFLICT_RETRIES);
  } catch (error) {
    if (!isLockTimeout(error)) throw error;
    return { count: 0, nextAt: new Date(now.getTime() + LOCKED_MS) };
  }
}
