import { pendingMigrations, type MigrationModule } from '../db/index.ts';
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
