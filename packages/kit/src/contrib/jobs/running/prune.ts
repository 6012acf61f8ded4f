import { heldSubjects } from '../../../app/data/legal-holds.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Database } from '../../../db/engine/db.ts';
import { Retention } from '../../../work/retention.ts';
import type { Jobs } from '../rows/jobs.ts';
import { pruneFinished } from '../rows/store.ts';
import { requireArguments } from '../../../options/read-options.ts';
import { database, aDate } from '../../../options/value-rule.ts';

/** Jobs of one transaction: short enough not to hold up workers. */
const BATCH = 500;
const DAY_MS = 86_400_000;

/** Removes at most `limit` jobs that finished before a time, with their attempts and steps. */
export async function pruneJobs(db: Database, before: Date, limit: number): Promise<number> {
  requireArguments('pruneJobs()', { db, before }, { db: database, before: aDate });
  const holds = await heldSubjects(db);
  let removed = 0;
  while (removed < limit) {
    const batch = await db.transaction((tx) => pruneFinished(tx, before, Math.min(BATCH, limit - removed), holds), CONFLICT_RETRIES);
    if (batch === 0) break;
    removed += batch;
  }
  return removed;
}

/** Prunes by itself what is older than `jobs({ retentionDays })`; null: nothing is. */
export function retentionOf({ database: db, settings: { retentionDays: days }, clock, log }: Jobs, timing = {}): Retention | null {
  if (days === null) return null;
  return new Retention(
    {
      prune: () => pruneJobs(db, new Date(clock.now().getTime() - days * DAY_MS), BATCH),
      failed: (error, retryInMs) => log.warn({ err: error, retry_in_ms: retryInMs }, 'could not remove old jobs'),
    },
    timing,
  );
}
