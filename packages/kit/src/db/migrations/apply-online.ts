import type { Database, Db } from '../engine/db.ts';
import { engineOf } from '../engine/handle.ts';
import { type OnlineStep, onlineSteps } from './online-steps.ts';
import type { Operation } from './operation.ts';
import type { PlannedMigration } from './plan.ts';
import type { SchemaState } from './schema-state.ts';
import { limitTableLocks, TABLE_LOCK_MS } from './table-locks.ts';

/**
 * The statements of a migration with `online: true`, each of which commits by itself. `tx` only keeps other processes from migrating: it reads
 * nothing meanwhile, so that concurrent statements do not wait for it.
 */
export async function applyOnline(database: Database, tx: Db, step: PlannedMigration, lockTimeoutMs = TABLE_LOCK_MS): Promise<void> {
  await tx.query('set local idle_in_transaction_session_timeout = 0');
  for (const operation of step.migration.operations)
    for (const { sql, done, isConcurrent } of stepsOf(operation, step.before)) {
      const [found] = await database.query<{ done: boolean }>(done);
      if (found?.done === true) continue;
      if (isConcurrent) await engineOf(database).runAlone?.(sql);
      else
        await database.transaction(async (own) => {
          await own.query('set local statement_timeout = 0');
          await limitTableLocks(own, lockTimeoutMs);
          await own.query(sql);
        });
    }
}

/** The plan has refused operations without such a form. */
export function stepsOf(operation: Operation, before: SchemaState): readonly OnlineStep[] {
  const steps = onlineSteps(operation, before);
  if (typeof steps === 'string') throw new TypeError(steps);
  return steps;
}
