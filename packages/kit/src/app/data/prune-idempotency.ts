import type { Database } from '../../db/engine/db.ts';
import { pruneRecords } from '../../http/idempotency/record-store.ts';
import type { Log } from '../../http/log.ts';

/** Records are kept for a day: a few minutes more do no harm. */
const INTERVAL_MS = 10 * 60_000;

/** Removes expired idempotency records from time to time. Returns the function that stops it and waits for what is under way. */
export function pruneIdempotencyRegularly(db: Database, log: Log, intervalMs = INTERVAL_MS): () => Promise<void> {
  let running: Promise<unknown> = Promise.resolve();
  const timer = setInterval(() => {
    running = pruneRecords(db).catch((error: unknown) => log.warn({ err: error }, 'expired idempotency records could not be removed'));
  }, intervalMs).unref();
  return async () => {
    clearInterval(timer);
    await running;
  };
}
