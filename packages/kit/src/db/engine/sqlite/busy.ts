import { setTimeout as delay } from 'node:timers/promises';
import { dbErrors } from '../../errors.ts';
import { resultCode } from './result-code.ts';

const SQLITE_BUSY = 5;
/** Most waits are for another process's short transaction; the cap keeps a long one from being polled too hard. */
const WAIT_MS_MIN = 1;
const WAIT_MS_MAX = 25;

export function isBusy(error: unknown): boolean {
  return resultCode(error) === SQLITE_BUSY;
}

/**
 * Runs `attempt` until it is not refused as busy. Another process may write the same file; waiting must not block this
 * process's event loop, so SQLite answers at once and the pause (with jitter, against lockstep) happens here.
 */
export async function retryWhileBusy<R>(attempt: () => R, deadlineMs: number): Promise<R> {
  const end = performance.now() + deadlineMs;
  let wait = WAIT_MS_MIN;
  for (;;) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (performance.now() >= end) throw dbErrors.database_busy({ cause: error, message: `SQLite stayed locked for ${deadlineMs} ms` });
    }
    await delay(wait * (0.5 + Math.random()));
    wait = Math.min(wait * 2, WAIT_MS_MAX);
  }
}
