import { sealEntries } from '../src/contrib/audit/chain/seal.ts';
import type { StoredEntry } from '../src/contrib/audit/chain/store.ts';
import type { Db } from '../src/db/engine/db.ts';

/** Everything recorded so far, oldest first; what is not sealed yet is sealed now. */
export async function auditLog(db: Db, filter: Partial<Pick<StoredEntry, 'action' | 'target_id'>> = {}): Promise<StoredEntry[]> {
  await sealEntries(db, { wait: true });
  const entries = await db.query<StoredEntry>('select * from audit_entries order by seq');
  const { action, target_id } = filter;
  return entries.filter(
    (entry) => (action === undefined || entry.action === action) && (target_id === undefined || entry.target_id === target_id),
  );
}
