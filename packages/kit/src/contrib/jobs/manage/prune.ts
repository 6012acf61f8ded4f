import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Database } from '../../../db/engine/db.ts';
import { pruneFinished } from '../rows/store.ts';
import { requireArguments } from '../../../options/read-options.ts';
import { database, aDate } from '../../../options/value-rule.ts';

/** Jobs of one transaction: short enough not to hold up workers. */
const BATCH = 500;

/** Removes at most `limit` jobs that finished before a time, with their attempts and steps. */
export async function pruneJobs(db: Database, before: Date, limit: number): Promise<number> {
  requireArguments('pruneJobs()', { db, before }, { db: database, before: aDate });
  let removed = 0;
  while (removed < limit) {
    const batch = await db.transaction((tx) => pruneFinished(tx, before, Math.min(BATCH, limit - removed)), CONFLICT_RETRIES);
    if (batch === 0) break;
    removed += batch;
  }
  return removed;
}
