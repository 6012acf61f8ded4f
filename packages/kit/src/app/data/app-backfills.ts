import { changeState } from '../../db/backfills/backfill-state.ts';
import type { Database, Db } from '../../db/engine/db.ts';
import type { MigrationModule } from '../../db/migrations/plan.ts';
import { backfillStatus, type BackfillStatus, declaredBackfills } from '../../db/rollout/declared-backfills.ts';
import type { App } from '../declare/module.ts';
import { migratedDatabases } from './migration-modules.ts';

/** A back-fill in one of the databases of an app. */
export interface AppBackfill extends BackfillStatus {
  /** `shop/0012_full_name`, with the database where it is not the default one. */
  readonly label: string;
  readonly alias: string;
  readonly database: Database;
  readonly modules: readonly MigrationModule[];
}

/** Every back-fill of the app, in every database that its module has tables in. Needs open databases. */
export async function appBackfills(app: App): Promise<AppBackfill[]> {
  const found: AppBackfill[] = [];
  for (const { alias, database, modules } of migratedDatabases(app)) {
    if (declaredBackfills(modules).length === 0) continue;
    for (const each of await backfillStatus(database, modules))
      found.push({ ...each, label: alias === 'default' ? each.id : `${each.id} (database ${alias})`, alias, database, modules });
  }
  return found;
}

/** Its runners stop before the next batch, and wait. False: it is not under way. */
export function pauseBackfill({ database, module, backfill }: AppBackfill, db: Db = database): Promise<boolean> {
  return changeState(db, { module, name: backfill.name }, ['running', 'failed'], 'paused');
}

/** Its runners go on. False: it is not paused. */
export function resumeBackfill({ database, module, backfill }: AppBackfill, db: Db = database): Promise<boolean> {
  return changeState(db, { module, name: backfill.name }, ['paused'], 'running');
}
