import { columnTypes } from '../../auth/user-table.ts';
import type { Database } from '../../db/db.ts';
import type { Fault } from '../../options/fault.ts';
import type { BetterAuthInstance, InstanceContext } from './instance.ts';

/**
 * better-auth's own comparison of its options with the tables, after the migrations. It finds plugins and additional fields that the migrations of
 * the module do not have.
 */
export async function schemaFaults(auth: BetterAuthInstance, context: InstanceContext, database: Database): Promise<readonly Fault[]> {
  // Pending migrations are reported elsewhere. And a comparison that failed once would be remembered.
  if ((await columnTypes(database, 'better_auth_users')) === undefined) return [];
  try {
    await context.explicitSchemaCheck?.();
    return [];
  } catch (error) {
    const statements = await missingStatements(auth);
    const hint =
      statements.length === 0
        ? 'Compare the plugins and additional fields of the instance with the tables.'
        : `Add a migration to a module of the app, with sql({ sqlite: […], postgres: […] }); on ${database.dialect} it is: ${statements.join('; ')}`;
    return [{ id: 'E032', message: `better-auth: ${error instanceof Error ? error.message : String(error)}`, hint }];
  }
}

/** What better-auth itself would run to bring the tables up to date. */
async function missingStatements(auth: BetterAuthInstance): Promise<readonly string[]> {
  const { getMigrations } = await import('better-auth/db/migration');
  const { compileMigrations } = await getMigrations(auth.options, { throwOnUnsafe: false });
  return (await compileMigrations())
    .split(';')
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');
}
