import { migrate, pendingMigrations, type MigrateOptions, type MigrationModule, type MigrationReport } from '../db/index.ts';
import { throttleMigration, throttleModel } from '../throttle/index.ts';
import type { App } from './module.ts';

/** Tables of the toolkit itself, under the module name `kit`. */
const core: MigrationModule = { name: 'kit', models: [throttleModel], migrations: [throttleMigration] };

/** Everything that has tables in the app's default database, the core first. */
export function migrationModules(app: App): readonly MigrationModule[] {
  return [core, ...(app.modules as readonly MigrationModule[])];
}

/** What `kit migrate` would apply: `accounts/0001_initial`. Needs open databases. */
export function pendingOf(app: App): Promise<string[]> {
  return pendingMigrations(app.db, migrationModules(app));
}

/** What `kit migrate` does, for programs that start an app on a database of their own. Opens the databases; safe to run from several processes. */
export async function migrateApp(app: App, options?: MigrateOptions): Promise<MigrationReport> {
  await app.openDatabases();
  return migrate(app.db, migrationModules(app), options);
}
