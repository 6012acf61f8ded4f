import type { Db } from '../../db/engine/db.ts';
import { endsOfErasures } from '../../db/subjects/erasure-state.ts';
import type { SubjectKind } from '../../db/subjects/subject.ts';
import { appsOfDatabase } from './apps-of-database.ts';

/** Clocks of two processes may differ by less. */
const CLOCK_DIFFERENCE_MS = 60_000;

/** Whether something that happened at a time was of somebody who is being erased, or was erased since. */
export type IsErased = (kind: SubjectKind, id: string, at: Date) => boolean;

/**
 * Who of these people and tenants was erased: for rows that waited meanwhile, in memory, and must not come after the erasure. To be asked in the transaction that
 * writes them, once it has a lock on their tables: an erasure waits for those who write there when it begins.
 */
export async function erasedSubjects(tx: Db, ids: Readonly<Record<SubjectKind, readonly string[]>>): Promise<IsErased> {
  const database = appsOfDatabase(tx.database)[0]?.db ?? tx.database;
  const own = database === tx.database ? tx : database;
  const ends = { person: await endsOfErasures(own, 'person', ids.person), tenant: await endsOfErasures(own, 'tenant', ids.tenant) };
  return (kind, id, at) => {
    const end = ends[kind].get(id);
    return end !== undefined && (end === null || at.getTime() < end.getTime() + CLOCK_DIFFERENCE_MS);
  };
}
