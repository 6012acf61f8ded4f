import type { Db } from '../../../db/engine/db.ts';
import { quoteName } from '../../../db/declare/names.ts';
import { skipLocked } from '../../../work/lock-patience.ts';
import { grantsState } from '../declare/grants-state.ts';
import { GrantSql } from './grant-sql.ts';
import { deleteExpired } from './store.ts';

const BATCH = 1_000;

/** Removes grants that expired, and those of objects that are gone: rows that were deleted by other means than CRUD. Neither gives anything. */
export async function pruneGrants(db: Db): Promise<{ readonly expired: number; readonly orphaned: number }> {
  const { clock, objects } = grantsState.of(db);
  const now = clock.now();
  let expired = 0;
  for (let removed = BATCH; removed === BATCH;) expired += removed = await deleteExpired(db, now, BATCH);
  let orphaned = 0;
  const sql = new GrantSql(db.dialect, { user: null, tenant: null, now, groups: [] });
  for (const declaration of objects.values()) {
    const id = sql.keyText(declaration, `t.${quoteName(declaration.key.name)}`);
    for (let removed = BATCH; removed === BATCH;) {
      const rows = await db.query(
        `delete from grants where id in (select g.id from grants g where g.object_type = $1
           and not exists (select 1 from ${quoteName(declaration.type)} t where ${id} = g.object_id) limit ${BATCH}${skipLocked(db)}) returning id`,
        [declaration.type],
      );
      orphaned += removed = rows.length;
    }
  }
  return { expired, orphaned };
}
