import type { Backfill } from '../backfills/backfill.ts';
import { readStates } from '../backfills/backfill-state.ts';
import { type BackfillProgress, progressOf } from '../backfills/progress.ts';
import type { Db } from '../engine/db.ts';
import { readHistory } from '../migrations/history.ts';
import { type MigrationModule, planMigrations } from '../migrations/plan.ts';

/** A back-fill, and where it stands among the migrations of its module. */
export interface DeclaredBackfill {
  /** `shop/0012_full_name` */
  readonly id: string;
  readonly module: string;
  readonly backfill: Backfill;
  /** The migration before it, which must be applied. */
  readonly after: string | null;
  /** Migrations that wait for it. */
  readonly requiredBy: readonly string[];
}

export interface BackfillStatus extends DeclaredBackfill {
  readonly progress: BackfillProgress;
}

/** The back-fills of these modules, in the order of their numbers. */
export function declaredBackfills(modules: readonly MigrationModule[]): DeclaredBackfill[] {
  planMigrations(modules);
  return modules.flatMap(({ name: module, migrations = [], backfills = [] }) =>
    backfills.map((backfill) => {
      const before = migrations.findLast(({ name }) => name < backfill.name);
      return {
        id: `${module}/${backfill.name}`,
        module,
        backfill,
        after: before === undefined ? null : `${module}/${before.name}`,
        requiredBy: migrations.filter((each) => each.backfills.includes(backfill.name)).map(({ name }) => `${module}/${name}`),
      };
    }),
  );
}

/** The back-fills of these modules in a database, with their progress. Changes nothing. */
export async function backfillStatus(db: Db, modules: readonly MigrationModule[]): Promise<BackfillStatus[]> {
  const states = await readStates(db);
  return declaredBackfills(modules).map((each) => Object.assign(each, { progress: progressOf(states.get(each.id), db.clock.now()) }));
}

/** The migration that must be applied before it; null when it is. */
export async function missingMigration(db: Db, { after }: DeclaredBackfill): Promise<string | null> {
  if (after === null) return null;
  const applied = (await readHistory(db)).some(({ module, name }) => `${module}/${name}` === after);
  return applied ? null : after;
}
