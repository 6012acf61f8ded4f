import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../engine/db.ts';

/** A transaction that writes for longer is stuck, or a back-fill without batches: the erasure is tried again later. */
const PATIENCE_MS = 60_000;
const AGAIN_MS = 20;

const WRITERS = `select distinct l.virtualtransaction as id from pg_locks l
  where l.locktype = 'relation' and l.granted and l.pid is distinct from pg_backend_pid()
    and l.database = (select oid from pg_database where datname = current_database())
    and l.relation in (select to_regclass(quote_ident(each)) from unnest(cast($1 as text[])) as named(each))
    and l.mode in ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')`;

/**
 * Returns when every transaction has ended that was writing to these tables: none of their rows comes to light later. Those that begin meanwhile see what was
 * committed before the call. SQLite has one writer at a time.
 */
export async function awaitWriters(database: Database, tables: readonly string[]): Promise<void> {
  if (database.dialect === 'sqlite' || tables.length === 0) return;
  const ids = async () => (await database.query<{ id: string }>(WRITERS, [tables])).map(({ id }) => id);
  const startedAt = performance.now();
  for (let before = await ids(); before.length > 0;) {
    if (performance.now() - startedAt > PATIENCE_MS)
      throw new Error(`A transaction has been writing to ${tables.length === 1 ? tables[0] : 'the tables'} for more than a minute.`);
    await sleep(AGAIN_MS);
    const now = new Set(await ids());
    before = before.filter((id) => now.has(id));
  }
}
