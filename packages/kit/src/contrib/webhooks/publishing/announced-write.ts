import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { SqlExecutor } from '../../../db/engine/foreign/sql-executor.ts';
import { announceTableWrite, isAnnounced } from '../../../db/rows/table-writes.ts';

type Table = 'webhook_deliveries' | 'webhook_endpoints';

/**
 * A write without the resource of its table, as those of workers: cached responses that read the table are dropped when it commits, by the same
 * transaction. Where none is cached, the statement runs alone.
 */
export async function announcedWrite<R>(db: Db, table: Table, write: (tx: Db) => Promise<R>): Promise<R> {
  if (!isAnnounced(table)) return write(db);
  return db.transaction(async (tx) => {
    const written = await write(tx);
    await announceTableWrite(tx, table);
    return written;
  }, CONFLICT_RETRIES);
}

/** As {@link announcedWrite}, of deliveries that a publisher has written: after the commit, because PostgreSQL lets transactions that notify commit one at a time. */
export function announceAfterCommit(tx: SqlExecutor): void {
  const { database } = tx;
  if (database === undefined || !isAnnounced('webhook_deliveries')) return;
  try {
    tx.afterCommit?.(() => announceTableWrite(database, 'webhook_deliveries'));
  } catch {
    // The transaction has ended meanwhile: cached responses show the delivery when their age is over.
  }
}
