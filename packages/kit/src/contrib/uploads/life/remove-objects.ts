import type { Db } from '../../../db/engine/db.ts';
import { uploadsOf } from '../rows/in-use.ts';
import {
  addRemovals,
  ANY_MULTIPART,
  claimRemovals,
  finishRemoval,
  postponeRemoval,
  type RemovableObject,
  type Removal,
} from '../rows/store.ts';
import type { UploadStore } from '../declare/upload-store.ts';

/** How long a process may take for what it claimed. */
const LEASE_MS = 60_000;
const BATCH = 100;

export interface RemovalReport {
  readonly removed: number;
  /** Left for the next run, because the store failed. */
  readonly failed: number;
}

/**
 * Has objects removed, as part of the change that makes them superfluous. Where no job does, `afterCommit` removes them immediately; called in a
 * transaction, after that one has committed: a rollback brings their rows back.
 */
export async function scheduleRemovals(
  tx: Db,
  objects: readonly RemovableObject[],
): Promise<{ readonly afterCommit: (db: Db) => Promise<void> }> {
  const { clock, jobs } = uploadsOf(tx);
  const ids = await addRemovals(tx, clock.now(), objects);
  const later = jobs();
  // What is due later has a job of its own: one that finds something not due yet would be tried again, and count as failed.
  const byTime = Map.groupBy(ids.keys(), (index) => objects[index]?.dueAt ?? null);
  if (later !== null)
    for (const [dueAt, indexes] of byTime)
      await later.remove(
        tx,
        indexes.map((index) => ids[index] as string),
        dueAt,
      );
  return {
    async afterCommit(db) {
      if (later !== null) return;
      if (db.isTransaction) db.afterCommit(() => removeObjects(db.database, { ids }));
      else await removeObjects(db, { ids });
    },
  };
}

/** Removes objects that are due: exactly these, or as many as `limit`. A store that fails leaves its row for the next run; the others go on. */
export async function removeObjects(
  db: Db,
  { ids, limit = BATCH }: { readonly ids?: readonly string[]; readonly limit?: number } = {},
): Promise<RemovalReport> {
  if (ids?.length === 0) return { removed: 0, failed: 0 };
  const { clock } = uploadsOf(db);
  let removed = 0;
  let failed = 0;
  while (removed + failed < limit) {
    const now = clock.now();
    const claimed = await claimRemovals(db, now, new Date(now.getTime() + LEASE_MS), Math.min(BATCH, limit - removed - failed), ids);
    if (claimed.length === 0) break;
    for (const removal of claimed) {
      if (await removeOne(db, removal)) removed += 1;
      else failed += 1;
    }
  }
  return { removed, failed };
}

async function removeOne(db: Db, { id, key, multipart_id, attempts }: Removal): Promise<boolean> {
  const { store, log, clock } = uploadsOf(db);
  try {
    if (multipart_id === ANY_MULTIPART) await abortAll(store, key);
    else if (multipart_id !== null) await store.abortMultipart(key, multipart_id);
    await store.remove(key);
    await finishRemoval(db, id);
    return true;
  } catch (error) {
    log.warn({ err: error, removal: id, attempts }, 'an object could not be removed from the upload store; it is tried again');
    await postponeRemoval(db, id, new Date(clock.now().getTime() + retryAfterMs(attempts)));
    return false;
  }
}

async function abortAll(store: UploadStore, key: string): Promise<void> {
  for await (const found of store.listMultiparts(key)) if (found.key === key) await store.abortMultipart(key, found.multipartId);
}

/** 10 s, 20 s, 40 s, … up to an hour. */
export function retryAfterMs(attempts: number): number {
  return Math.min(10_000 * 2 ** Math.min(attempts - 1, 10), 3_600_000);
}
