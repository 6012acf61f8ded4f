import { heldSubjects } from '../../../app/data/legal-holds.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Database } from '../../../db/engine/db.ts';
import { Retention } from '../../../work/retention.ts';
import type { Webhooks } from '../webhooks.ts';
import { FIRST_ID, pruneEvents, pruneOrphans, prunePeriods } from './maintenance-store.ts';

/** Rows of one transaction: short enough not to hold up publishers and workers. */
export const BATCH = 500;
const DAY_MS = 86_400_000;

/** Removes at most `limit` finished events from before a time; those of people and tenants under a legal hold stay. */
export async function prune(db: Database, before: Date, limit: number): Promise<number> {
  const holds = await heldSubjects(db);
  let [removed, after]: [number, string | null] = [0, FIRST_ID];
  while (after !== null && removed < limit) {
    const from: string = after;
    const batch = await db.transaction((tx) => pruneEvents(tx, before, Math.min(BATCH, limit - removed), from, holds), CONFLICT_RETRIES);
    removed += batch.removed;
    after = batch.last;
  }
  await prunePeriods(db, before, BATCH, holds);
  // Where finished events are left, their deliveries would all be looked at.
  if (after === null) await pruneOrphans(db, before, BATCH);
  return removed;
}

/** Prunes by itself what is older than `webhooks({ retentionDays })`; null: nothing is. */
export function retentionOf({ database, settings: { retentionDays: days }, clock, log }: Webhooks, timing = {}): Retention | null {
  if (days === null) return null;
  return new Retention(
    {
      prune: () => prune(database, new Date(clock.now().getTime() - days * DAY_MS), BATCH),
      failed: (error, retryInMs) => log.warn({ err: error, retry_in_ms: retryInMs }, 'could not remove old webhook events'),
    },
    timing,
  );
}
