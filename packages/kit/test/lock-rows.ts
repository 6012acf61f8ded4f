import type { Database } from '../src/db/index.ts';

/** Locks rows of a PostgreSQL table in a transaction of its own, until the returned function is called. */
export async function lockRows(db: Database, table: string, ids: readonly string[], key = 'id'): Promise<() => Promise<void>> {
  const [isLocked, isFree] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const holder = db.transaction(async (tx) => {
    await tx.query(`select 1 from ${table} where cast(${key} as text) = any(cast($1 as text[])) for update`, [ids]);
    isLocked.resolve();
    await isFree.promise;
  });
  await Promise.race([isLocked.promise, holder]);
  return async () => {
    isFree.resolve();
    await holder;
  };
}
