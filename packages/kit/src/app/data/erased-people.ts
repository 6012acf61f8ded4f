import { findDeletedUsers } from '../../auth/people/deleted-users.ts';
import type { Db } from '../../db/engine/db.ts';
import { erasedAmong } from '../../db/subjects/erasure-state.ts';
import { appsOfDatabase } from './apps-of-database.ts';

/** Those of the ids whose data was erased: for rows that waited meanwhile, in memory, and must not come after the erasure. */
export async function erasedPeople(db: Db, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const database = appsOfDatabase(db.database)[0]?.db ?? db;
  // By key, and nearly always none: few are looked for in the erasures, which have no index for this.
  const deleted = await findDeletedUsers(database, ids);
  return deleted.size === 0 ? deleted : erasedAmong(database, 'person', [...deleted]);
}
