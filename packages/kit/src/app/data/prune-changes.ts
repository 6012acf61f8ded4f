import type { Database } from '../../db/engine/db.ts';
import { Retention } from '../../work/retention.ts';
import type { Log } from '../../http/log.ts';

/** Clients of live lists may continue for a day after their last batch; an hour more is for clocks that differ. */
export const CHANGES_KEPT_MS = 25 * 3_600_000;

/** Rows that one statement removes. */
const BATCH = 500;

/** The oldest changes first. The last one stays: on SQLite the next position follows it. */
const REMOVE =
  `delete from kit_changes where position in (select position from kit_changes order by position limit ${BATCH}) ` +
  'and at < $1 and position < (select max(position) from kit_changes)';

/** Removes one batch of changes that no client can continue from. Returns how many. */
export async function pruneChanges(db: Database): Promise<number> {
  const { count } = await db.execute(REMOVE, [new Date(db.clock.now().getTime() - CHANGES_KEPT_MS)]);
  return count;
}

/** Removes old changes in the background, until the returned function is called. */
export function pruneChangesRegularly(db: Database, log: Log): () => Promise<void> {
  const retention = new Retention({
    prune: () => pruneChanges(db),
    failed: (error) => log.warn({ err: error }, 'old changes of live lists could not be removed'),
  });
  retention.start();
  return () => retention.stop();
}
