import { hasBackfills, readStates, recordNothingToDo } from '../backfills/backfill-state.ts';
import { hasBackfillRows } from '../backfills/count-backfill-rows.ts';
import { progressOf } from '../backfills/progress.ts';
import type { Db } from '../engine/db.ts';
import { MigrationRefused } from './migration-refused.ts';
import type { PlannedMigration } from './plan.ts';

/** A migration runs when its back-fills are finished, or have nothing to do: a new database has no rows. */
export async function requireFinished(
  tx: Db,
  { id, module, backfills }: Pick<PlannedMigration, 'id' | 'module' | 'backfills'>,
): Promise<void> {
  if (backfills.length === 0) return;
  const states = await readStates(tx);
  for (const backfill of backfills) {
    const stored = states.get(`${module}/${backfill.name}`);
    if (stored?.state === 'finished') continue;
    if (await hasBackfillRows(tx, backfill)) {
      const { state, share } = progressOf(stored, tx.clock.now());
      const how = stored === undefined ? state : `${state} at ${Math.floor(share * 100)} %`;
      throw new MigrationRefused(
        `Migration ${id} requires the back-fill ${module}/${backfill.name}, which is not finished (${how}). Run: npx kit backfill run ${backfill.name}, then npx kit migrate.`,
      );
    }
    if (await hasBackfills(tx)) await recordNothingToDo(tx, { module, name: backfill.name });
  }
}
