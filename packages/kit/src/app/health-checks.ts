import { access, constants } from 'node:fs/promises';
import type { Database } from '../db/db.ts';
import { sqliteFile } from '../db/open-database.ts';
import { NotReady, type HealthCheck } from '../middleware/health.ts';
import { safeMethods } from '../permissions/built-ins.ts';
import { databasesOf, SchemaWatch } from './migration-modules.ts';
import type { App } from './module.ts';

/**
 * What an app needs to serve: each database answers, takes changes where the app makes some, and has tables that this version can use. Then
 * the checks of its authenticators and modules.
 */
export function healthChecks(app: App): Readonly<Record<string, HealthCheck>> {
  const isWriter = app.routes.some(({ method }) => !safeMethods.has(method));
  // One that no module has tables in may be a replica for reading.
  const written = new Set(isWriter ? ['default', ...app.modules.flatMap((module) => databasesOf(module))] : []);
  const watch = new SchemaWatch(app);
  const ofDatabases = Object.keys(app.databases).map((alias): [string, HealthCheck] => [
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

async function checkDatabase(database: Database | undefined, isWritten: boolean): Promise<void> {
  if (database?.dialect === 'postgres') {
    const [row] = await database.query<{ read_only: string }>(`select current_setting('transaction_read_only') as read_only`);
    if (isWritten && row?.read_only !== 'off') throw new NotReady('The database is read-only, and this app writes to it.');
    return;
  }
  await database?.query('select 1');
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
