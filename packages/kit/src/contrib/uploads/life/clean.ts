import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { readOptions } from '../../../options/read-options.ts';
import { wholeNumber } from '../../../options/value-rule.ts';
import { isLockTimeout, limitLockWait } from '../../../work/lock-patience.ts';
import { uploadsOf } from '../rows/in-use.ts';
import { installationPrefix } from '../declare/object-key.ts';
import { recordChange } from '../rows/record-change.ts';
import { objectsOf } from './reject.ts';
import { removeObjects, scheduleRemovals } from './remove-objects.ts';
import { scanUploads } from './scan.ts';
import { addRemovals, changeState, knownKeys, overdueUploads } from '../rows/store.ts';

export interface CleanReport {
  readonly expired: number;
  readonly scanned: number;
  readonly removed: number;
  /** What the store or the scanner failed at: left for the next run. */
  readonly failed: number;
}

/** Everything that is due: scans, removals, and uploads that were not completed in time. At most `limit` of each. */
export async function processUploads(
  db: Db,
  options: {
    /** Most uploads of each kind. Default: 1000. */
    readonly limit?: number;
  } = {},
): Promise<CleanReport> {
  const { limit = 1000 } = readOptions('processUploads()', options, { limit: wholeNumber(1) });
  const expired = await expireUploads(db, limit);
  const scans = await scanUploads(db, limit);
  const removals = await removeObjects(db, { limit });
  return { expired, scanned: scans.clean + scans.rejected, removed: removals.removed, failed: removals.failed + scans.failed };
}

async function expireUploads(db: Db, limit: number): Promise<number> {
  const { clock } = uploadsOf(db);
  const now = clock.now();
  let expired = 0;
  for (const upload of await overdueUploads(db, now, limit)) {
    // A request that completed or prolonged it meanwhile wins: it is not pending any more, or not overdue.
    const late = { sql: 'complete_by < ?1', values: [now] };
    const expire = db.transaction(async (tx) => {
      await limitLockWait(tx);
      const after = await changeState(tx, upload.id, 'pending', { state: 'expired' }, late);
      if (after === null) return false;
      await scheduleRemovals(tx, objectsOf(tx, upload));
      await recordChange(tx, 'expired', { before: upload, after });
      return true;
    }, CONFLICT_RETRIES);
    // One that another transaction has locked is left for the next run.
    const done = await expire.catch((error: unknown) => {
      if (!isLockTimeout(error)) throw error;
      return false;
    });
    if (done) expired += 1;
  }
  return expired;
}

export interface Orphan {
  readonly key: string;
  readonly multipartId: string | null;
  readonly size: number;
  readonly modifiedAt: Date;
}

const DAY_MS = 86_400_000;
/** Keys compared with the rows at a time. */
const BATCH = 100;

/** Objects and multipart uploads of this installation that no row means, and that are too old for one that is still to come. */
export async function findOrphans(db: Db, limit: number): Promise<readonly Orphan[]> {
  const { store, place, clock, longestLifeSeconds } = uploadsOf(db);
  const prefix = installationPrefix(place);
  const before = clock.now().getTime() - longestLifeSeconds() * 1000 - DAY_MS;
  const orphans: Orphan[] = [];
  let batch: Orphan[] = [];
  const compare = async () => {
    const known = await knownKeys(
      db,
      batch.map(({ key }) => key),
    );
    orphans.push(...batch.filter(({ key }) => !known.has(key)));
    batch = [];
  };
  for await (const found of candidates()) {
    if (!found.key.startsWith(prefix) || found.modifiedAt.getTime() >= before) continue;
    batch.push(found);
    if (batch.length >= BATCH) await compare();
    if (orphans.length >= limit) return orphans.slice(0, limit);
  }
  await compare();
  return orphans.slice(0, limit);

  async function* candidates(): AsyncGenerator<Orphan> {
    for await (const { key, size, modifiedAt } of store.list(prefix)) yield { key, multipartId: null, size, modifiedAt };
    for await (const { key, multipartId, startedAt } of store.listMultiparts(prefix))
      yield { key, multipartId, size: 0, modifiedAt: startedAt };
  }
}

/** Has orphans removed, each looked up once more just before. */
export async function removeOrphans(db: Db, orphans: readonly Orphan[]): Promise<{ readonly removed: number; readonly failed: number }> {
  const { clock } = uploadsOf(db);
  const ids: string[] = [];
  for (const { key, multipartId } of orphans) {
    if ((await knownKeys(db, [key])).has(key)) continue;
    ids.push(...(await addRemovals(db, clock.now(), [{ key, multipartId }])));
  }
  let removed = 0;
  let failed = 0;
  for (let start = 0; start < ids.length; start += BATCH) {
    const report = await removeObjects(db, { ids: ids.slice(start, start + BATCH) });
    removed += report.removed;
    failed += report.failed;
  }
  return { removed, failed };
}
