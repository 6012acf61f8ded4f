import type { Db } from '../../db/engine/db.ts';
import type { Subject } from '../../db/subjects/subject.ts';

/** Removes the idempotency records of a person or tenant: they contain responses. `caller` is what `callerText` wrote. */
export async function removeRecordsOf(db: Db, { kind, id }: Subject): Promise<number> {
  const text = kind === 'person' ? `user ${id} via ` : ` of ${id}`;
  const part = kind === 'person' ? `substr(caller, 1, ${text.length})` : `substr(caller, length(caller) - ${text.length - 1})`;
  const { count } = await db.execute(`delete from kit_idempotency where ${part} = $1`, [text]);
  return count;
}
