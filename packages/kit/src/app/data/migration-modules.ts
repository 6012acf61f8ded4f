import { checkDrift, type Drift, modelDrift, unwritableTables } from '../../db/migrations/drift.ts';
import { newerMigrations, readHistory } from '../../db/migrations/history.ts';
import { migrate, pendingMigrations, type MigrateOptions, type MigrationReport } from '../../db/migrations/migrate.ts';
import type { Database, Db } from '../../db/engine/db.ts';
import { findTable } from '../../db/migrations/found-schema.ts';
import { type MigrationModule, planMigrations } from '../../db/migrations/plan.ts';
import { secretsAndIdempotency } from '../../db/migrations/core/migrations/0002_secrets_and_idempotency.ts';
import { deletedUsers as deletedUsersMigration } from '../../db/migrations/core/migrations/0003_deleted_users.ts';
import { changes as changesMigration } from '../../db/migrations/core/migrations/0004_changes.ts';
import { erasures as erasuresMigration } from '../../db/migrations/core/migrations/0005_erasures.ts';
import { failedErasures } from '../../db/migrations/core/migrations/0006_failed_erasures.ts';
import { erasedSubjects } from '../../db/migrations/core/migrations/0007_erased_subjects.ts';
import { changesInOrder } from '../../db/migrations/core/migrations/0008_changes_in_order.ts';
import type { TriggeredTable } from '../../db/migrations/core/change-sql.ts';
import { applyTriggers, compareTriggers, triggerStatements } from '../../db/migrations/core/change-triggers.ts';
import { erasures, legalHolds, retentionRuns } from '../../db/subjects/models.ts';
import { changes, deletedUsers, idempotency, secrets } from '../../db/migrations/core/models.ts';
import { initial as throttleMigration } from '../../throttle/migrations/0001_throttles.ts';
import { throttles as throttleModel } from '../../throttle/models.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { Fault } from '../../options/fault.ts';
import type { App, Module } from '../declare/module.ts';
import { requireArguments } from '../../options/read-options.ts';
import { objectWith } from '../../options/value-rule.ts';

/** Tables of the toolkit itself, under the module name `kit`. */
export const coreTables: MigrationModule = {
  name: 'kit',
  models: [throttleModel, secrets, idempotency, deletedUsers, changes, erasures, legalHolds, retentionRuns],
  migrations: [
    throttleMigration,
    secretsAndIdempotency,
    deletedUsersMigration,
    changesMigration,
    erasuresMigration,
    failedErasures,
    erasedSubjects,
    changesInOrder,
  ],
};

/** Everything that has tables, whatever the database, the core first. */
export function migrationModules(app: App): readonly MigrationModule[] {
  return [coreTables, ...app.modules];
}

/** A database and what has tables in it. */
export interface MigratedDatabase {
  readonly alias: string;
  readonly database: Database;
  readonly modules: readonly MigrationModule[];
}

/** The default database first; one that no module has tables in is left alone. Needs open databases. */
export function migratedDatabases(app: App): readonly MigratedDatabase[] {
  const aliases = ['default', ...Object.keys(app.databases).filter((alias) => alias !== 'default')];
  return aliases.flatMap((alias) => {
    const database = app.databases[alias];
    const modules = modulesIn(app, alias);
    return database === undefined || modules.length === 0 ? [] : [{ alias, database, modules }];
  });
}

/** The modules that have tables in the database of this alias. */
export function modulesIn(app: App, alias: string): readonly (MigrationModule & Pick<Module, 'verifyData'>)[] {
  const inIt = app.modules.filter((module) => databasesOf(module).includes(alias));
  return alias === 'default' ? [coreTables, ...inIt] : inIt;
}

/** What is wrong with the data of a database, as its modules say. */
export async function dataFaults(app: App, alias: string, db: Db): Promise<readonly string[]> {
  const faults = await Promise.all(modulesIn(app, alias).map(async (module) => module.verifyData?.(db) ?? []));
  return faults.flat();
}

/** The aliases of the databases that a module has tables in. */
export function databasesOf({ databases = ['default'] }: Pick<Module, 'databases'>): readonly string[] {
  return databases;
}

/** `webhooks/0001_initial`, with the database where it is not the default one. */
function labelled(alias: string, ids: readonly string[]): readonly string[] {
  return alias === 'default' ? ids : ids.map((id) => `${id} (database ${alias})`);
}

/**
 * Models that no migration follows: the first insert would fail. A module without migrations has its tables made elsewhere. Needs no
 * database.
 */
export function modelDriftFaults(app: App): readonly Fault[] {
  const migrated = migrationModules(app).filter(({ migrations = [] }) => migrations.length > 0);
  const hint = 'Run npx kit migrate make <name>, add the migration to its module, then npx kit migrate.';
  try {
    return modelDrift(migrated).map((message) => ({ id: 'E023', message, hint }));
  } catch (error) {
    return [{ id: 'E023', message: (error as Error).message }];
  }
}

/**
 * References by name (`t.ref('customers')`) to a table that no migration or model has and that is not in the database either: SQLite creates such a
 * reference, and the first insert fails. Needs open databases.
 */
export async function unknownReferences(app: App): Promise<readonly Fault[]> {
  const faults: Fault[] = [];
  for (const { database, modules } of migratedDatabases(app)) {
    const migrated = modules.filter(({ migrations = [] }) => migrations.length > 0);
    const known = new Set([
      ...planMigrations(migrated).end.keys(),
      ...modules.flatMap(({ models = [] }) => models.map(({ name }) => name)),
    ]);
    for (const { name, columns } of migrated.flatMap(({ models = [] }) => models))
      for (const [column, { settings }] of Object.entries(columns)) {
        const target = settings.reference?.target;
        if (typeof target !== 'string' || known.has(target) || (await findTable(database, target)) !== undefined) continue;
        faults.push({
          id: 'E027',
          message: `Model "${name}", column "${column}": references the table "${target}", which does not exist.`,
          hint: didYouMean(target, [...known]).trim() || 'Refer to the model: t.ref(() => model).',
        });
      }
  }
  return faults;
}

/** What `kit migrate` would apply, over all databases: `accounts/0001_initial`. Needs open databases. */
export async function pendingOf(app: App): Promise<string[]> {
  const outdated = await outdatedDatabases(app);
  return outdated.flatMap(({ alias, pending }) => labelled(alias, pending));
}

/** A database that migrations are pending for. */
export interface OutdatedDatabase {
  readonly alias: string;
  /** Without a password. */
  readonly url: string;
  readonly pending: readonly string[];
}

/** The databases that are not up to date. Needs open databases. */
export async function outdatedDatabases(app: App): Promise<OutdatedDatabase[]> {
  const outdated: OutdatedDatabase[] = [];
  for (const { alias, database, modules } of migratedDatabases(app)) {
    const pending = [...(await pendingMigrations(database, modules)), ...(await pendingTriggers(app, alias, database))];
    if (pending.length > 0) outdated.push({ alias, url: database.url, pending });
  }
  return outdated;
}

/** Tables whose changes the database logs itself: those of live lists whose rows are written without their resource. */
function triggeredTables(app: App, alias: string): readonly TriggeredTable[] {
  if (alias !== 'default') return [];
  const tables = new Map(app.controllers.flatMap((each) => each.triggeredTables ?? []).map((each) => [each.table, each]));
  return [...tables.values()].toSorted((a, b) => (a.table < b.table ? -1 : 1));
}

async function pendingTriggers(app: App, alias: string, db: Db): Promise<string[]> {
  const { missing, idle } = await compareTriggers(db, triggeredTables(app, alias));
  return [...missing.map(({ table }) => triggersId(table)), ...idle.map(triggersId)];
}

/** How reports name the triggers of a table. */
function triggersId(table: string): string {
  return `kit/changes of ${table}`;
}

/** Migrations that a message lists by name. */
const NAMED_MAX = 3;

/** The first of them by name, and how many more there are. */
function listed(migrations: readonly string[]): string {
  const more = migrations.length > NAMED_MAX ? ` and ${migrations.length - NAMED_MAX} more` : '';
  return `${migrations.slice(0, NAMED_MAX).join(', ')}${more}`;
}

/** The sentence that names a database, how many migrations are pending for it, the first of them, and the command. */
export function describeOutdated({ alias, url, pending }: OutdatedDatabase): string {
  const count = `${pending.length} ${pending.length === 1 ? 'migration is' : 'migrations are'} pending`;
  return `The database ${alias === 'default' ? '' : `"${alias}" `}${url} is not up to date: ${count} (${listed(pending)}). Run: npx kit migrate`;
}

/** `kit migrate` finds nothing to do where migrations were applied and the tables changed afterwards. */
export const CHANGED_BY_HAND =
  'The tables do not match their migrations: they were changed by hand. Change them back, or restore a backup.';

const CHANGED_BY_NEWER = (migrations: readonly string[]): string =>
  `A newer version of the app has changed the tables (${listed(migrations)}), and this version does not work with them. Deploy the newer version again, or make what it added optional.`;

/** What to do about tables that differ. */
export function driftRemedy({ newer }: AppDrift): string {
  return newer.length === 0 ? CHANGED_BY_HAND : CHANGED_BY_NEWER(newer);
}

export interface AppDrift extends Drift {
  /** Migrations that were applied and that this version does not have. */
  readonly newer: readonly string[];
}

/** Where models, migrations and tables disagree, over all databases. */
export async function driftOf(app: App): Promise<AppDrift> {
  const models = new Set<string>();
  const [tables, additions, newer]: [string[], string[], string[]] = [[], [], []];
  for (const { alias, database, modules } of migratedDatabases(app)) {
    const drift = await checkDrift(modules, database);
    for (const fault of drift.models) models.add(fault);
    tables.push(...labelled(alias, drift.database));
    additions.push(...labelled(alias, drift.additions));
    newer.push(...labelled(alias, newerMigrations(modules, await readHistory(database))));
  }
  return { models: [...models], database: tables, additions, newer };
}

/**
 * Whether this version can still write to databases that a newer version may migrate while this one runs. Asked often: the tables are looked
 * at only when migrations were applied that this version does not have.
 */
export class SchemaWatch {
  readonly #app: App;
  /** The newer migrations that were found harmless, by database. */
  readonly #harmless = new Map<string, string>();

  constructor(app: App) {
    this.#app = app;
  }

  /** What this version cannot write to in the database of this alias; empty where it can write to everything. */
  async faults(alias: string): Promise<readonly string[]> {
    const target = migratedDatabases(this.#app).find((each) => each.alias === alias);
    if (target === undefined) return [];
    const { database, modules } = target;
    const newer = newerMigrations(modules, await readHistory(database));
    if (newer.length === 0 || this.#harmless.get(alias) === newer.join()) return [];
    const found = await unwritableTables(modules, database);
    if (found.length > 0) return [...found, CHANGED_BY_NEWER(newer)];
    this.#harmless.set(alias, newer.join());
    return [];
  }
}

/**
 * What `kit migrate` does, for programs that start an app on databases of their own. Opens the databases and brings each
 * one up to date that a module has tables in; safe to run from several processes.
 */
export async function migrateApp(app: App, options?: MigrateOptions): Promise<MigrationReport> {
  requireArguments('migrateApp()', { app }, { app: objectWith('an app: createApp(…)', 'openDatabases') });
  await app.openDatabases();
  const total = {
    applied: [] as string[],
    unknown: [] as string[],
    backups: [] as string[],
    statements: {} as Record<string, readonly string[]>,
  };
  for (const { alias, database, modules } of migratedDatabases(app)) {
    const report = await migrate(database, modules, options);
    total.applied.push(...labelled(alias, report.applied));
    total.unknown.push(...labelled(alias, report.unknown));
    total.backups.push(...report.backups);
    for (const [id, statements] of Object.entries(report.statements)) total.statements[labelled(alias, [id])[0] ?? id] = statements;
    await migrateTriggers(app, alias, database, { options, report: total });
  }
  return total;
}

/** For a database that got its tables otherwise, such as by a copy. */
export async function applyAppTriggers(app: App, alias: string, database: Database): Promise<void> {
  const tables = triggeredTables(app, alias);
  if (tables.length > 0) await applyTriggers(database, tables);
}

/** After the migrations: the columns of the tables are those of the models. */
async function migrateTriggers(
  app: App,
  alias: string,
  database: Database,
  {
    options = {},
    report,
  }: {
    readonly options: MigrateOptions | undefined;
    readonly report: { applied: string[]; statements: Record<string, readonly string[]> };
  },
): Promise<void> {
  if (alias !== 'default') return;
  const tables = triggeredTables(app, alias);
  const difference = await compareTriggers(database, tables);
  const changed = [...difference.missing.map(({ table }) => table), ...difference.idle];
  if (changed.length === 0) return;
  if (options.dryRun === true) report.statements['kit/changes'] = await triggerStatements(database, difference);
  else await applyTriggers(database, tables, options.lockWaitMs);
  report.applied.push(...(options.dryRun === true ? ['kit/changes'] : changed.map(triggersId)));
}
