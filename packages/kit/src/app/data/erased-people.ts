import { findDeletedUsers } from '../../auth/people/deleted-users.ts';
import type { Db } from '../../db/engine/db.ts';
import { erasedAmong } from '../../db/subjects/erasure-state.ts';
import { appsOfDatabase } from './apps-of-database.ts';

/** Those of the ids whose data was erased, or is: for rows that waited meanwhile, in memory, and must not come after the erasure. */
export async function erasedPeople(db: Db, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const database = appsOfDatabase(db.database)[0]?.db ?? db;
  // An erasure that runs may have passed the table already.
  const erasing = await erasedAmong(database, 'person', 'running', ids);
  // By key, and nearly always none: few are looked for in the finished erasures, which have no index for this.
  const deleted = await findDeletedUsers(database, ids);
  return deleted.size === 0 ? erasing : new Set([...erasing, ...(await erasedAmong(database, 'person', 'finished', [...deleted]))]);
}
