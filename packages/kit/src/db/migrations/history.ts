import type { Db } from '../engine/db.ts';
import type { MigrationModule, MigrationPlan, PlannedMigration } from './plan.ts';
import { MigrationRefused } from './migration-refused.ts';

export interface AppliedMigration {
  readonly module: string;
  readonly name: string;
  readonly checksum: string;
  readonly applied_at: Date;
}

const HISTORY = {
  sqlite: `create table if not exists kit_migrations (module text not null, name text not null, checksum text not null, applied_at timestamp_text not null, primary key (module, name))`,
  postgres: `create table if not exists kit_migrations (module text not null, name text not null, checksum text not null, applied_at timestamp(3) with time zone not null, primary key (module, name))`,
};

export async function ensureHistory(tx: Db): Promise<void> {
  await tx.query(HISTORY[tx.dialect]);
}

/** Empty for a database that has never been migrated. Changes nothing. */
export async function readHistory(db: Db): Promise<AppliedMigration[]> {
  const known = await db.query(
    db.dialect === 'sqlite'
      ? `select 1 as found from sqlite_master where type = 'table' and name = 'kit_migrations'`
      : `select 1 as found where to_regclass('kit_migrations') is not null`,
  );
  if (known.length === 0) return [];
  return db.query<AppliedMigration>('select module, name, checksum, applied_at from kit_migrations order by applied_at, module, name');
}

export async function recordApplied(tx: Db, { module, migration }: PlannedMigration): Promise<void> {
  await tx.query('insert into kit_migrations (module, name, checksum, applied_at) values ($1, $2, $3, $4)', [
    module,
    migration.name,
    migration.checksum,
    tx.clock.now(),
  ]);
}

export interface Comparison {
  readonly pending: readonly PlannedMigration[];
  /** Applied to the database but unknown to this code: made by a newer version, or by a module no longer installed. */
  readonly unknown: readonly string[];
}

/** What is left to do. Refuses a history that the code contradicts. */
export function compareHistory(plan: MigrationPlan, history: readonly AppliedMigration[]): Comparison {
  const applied = new Map(history.map((each) => [`${each.module}/${each.name}`, each]));
  const planned = new Set(plan.steps.map((step) => step.id));
  for (const step of plan.steps) {
    const known = applied.get(step.id);
    if (known !== undefined && known.checksum !== step.migration.checksum) {
      throw new MigrationRefused(
        `Migration ${step.id} was changed after it was applied on ${known.applied_at.toISOString()}: put its text back and write a new migration for the change.`,
      );
    }
  }
  const pending = plan.steps.filter((step) => !applied.has(step.id));
  for (const step of pending) {
    const later = plan.steps.find(
      (each) => each.module === step.module && applied.has(each.id) && each.migration.name > step.migration.name,
    );
    if (later !== undefined)
      throw new MigrationRefused(
        `Migration ${step.id} is new but sorts before ${later.id}, which is already applied: give it a later number.`,
      );
  }
  return { pending, unknown: [...applied.keys()].filter((id) => !planned.has(id)) };
}

/** Migrations of these modules that were applied and that this version does not have. Those of modules no longer installed are none of them. */
export function newerMigrations(modules: readonly MigrationModule[], history: readonly AppliedMigration[]): string[] {
  const known = new Map(modules.map(({ name, migrations = [] }) => [name, new Set(migrations.map((each) => each.name))]));
  return history.filter(({ module, name }) => known.get(module)?.has(name) === false).map(({ module, name }) => `${module}/${name}`);
}
