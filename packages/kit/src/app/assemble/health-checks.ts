import { access, constants } from 'node:fs/promises';
import type { Database } from '../../db/engine/db.ts';
import { engineOf } from '../../db/engine/handle.ts';
import { sqliteFile } from '../../db/open/open-engine.ts';
import { NotReady, type HealthCheck } from '../../middleware/health.ts';
import { safeMethods } from '../../permissions/built-ins.ts';
import { replicasOf } from '../check/replica-faults.ts';
import { databasesOf, SchemaWatch } from '../data/migration-modules.ts';
import type { App } from '../declare/module.ts';

/**
 * What an app needs to serve: each database answers, takes changes where the app makes some, and has tables that this version can use. Then
 * the checks of its authenticators and modules.
 */
export function healthChecks(app: App): Readonly<Record<string, HealthCheck>> {
  const isWriter = app.routes.some(({ method }) => !safeMethods.has(method));
  // One that no module has tables in may be a replica for reading.
  const written = new Set(isWriter ? ['default', ...app.modules.flatMap((module) => databasesOf(module))] : []);
  const watch = new SchemaWatch(app);
  // Without one its reads go to the primary.
  const replicas = replicasOf(app.routes);
  const needed = Object.keys(app.databases).filter((alias) => !replicas.has(alias));
  const ofDatabases = needed.map((alias): [string, HealthCheck] => [
    alias === 'default' ? 'database' : `database_${alias}`,
    async ({ databases }) => {
      await checkDatabase(databases[alias], written.has(alias));
      checkTables(await watch.faults(alias));
    },
  ]);
  const ofAuthenticators = app.authenticators.flatMap(({ healthChecks: checks = {} }) => Object.entries(checks));
  const ofModules = app.modules.flatMap(({ healthChecks: checks = {} }) => Object.entries(checks));
  return Object.freeze(Object.fromEntries([...ofDatabases, ...ofAuthenticators, ...ofModules]));
}

/** The databases that only a restart of the process can reach again. */
export function stuckDatabases(databases: Readonly<Record<string, Database>>): string[] {
  return Object.keys(databases).filter((alias) => engineOf(databases[alias] as Database).isStuck === true);
}

async function checkDatabase(database: Database | undefined, isWritten: boolean): Promise<void> {
  await database?.query('select 1');
  if (database?.dialect === 'postgres') {
    if (isWritten && (await engineOf(database).isWritable?.()) === false)
      throw new NotReady('The database is read-only, and this app writes to it.');
    return;
  }
  const file = database === undefined || !isWritten ? null : sqliteFile(database.url);
  if (file === null) return;
  try {
    await access(file, constants.W_OK);
  } catch (error) {
    throw new NotReady('The database is read-only, and this app writes to it.', (error as Error).message);
  }
}

function checkTables(faults: readonly string[]): void {
  if (faults.length > 0)
    throw new NotReady(
      'A newer version of the app has changed the tables, and this version cannot write to them. The log names them.',
      faults.join(' '),
    );
}
