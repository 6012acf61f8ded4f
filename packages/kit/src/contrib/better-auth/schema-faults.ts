import { columnTypes } from '../../auth/people/user-table.ts';
import type { Database } from '../../db/engine/db.ts';
import type { Fault } from '../../options/fault.ts';
import type { BetterAuthInstance, InstanceContext } from './instance.ts';

/**
 * better-auth's own comparison of its options with the tables, after the migrations. It finds plugins and additional fields that the migrations of
 * the module do not have.
 */
export async function schemaFaults(auth: BetterAuthInstance, context: InstanceContext, database: Database): Promise<readonly Fault[]> {
  // Pending migrations are reported elsewhere. And a comparison that failed once would be remembered.
  if ((await columnTypes(database, 'better_auth_users')) === undefined) return [];
  const { toBeCreated, toBeAdded, compileMigrations } = await plannedChanges(auth);
  const missing = [...toBeCreated, ...toBeAdded].map(({ table, fields }) => `${table} (${Object.keys(fields).join(', ')})`);
  const problem = (await ownComparison(context)) ?? (missing.length === 0 ? null : `tables or columns are missing: ${missing.join('; ')}.`);
  if (problem === null) return [];
  const statements = (await compileMigrations()).split(';').flatMap((statement) => statement.trim() || []);
  const hint =
    statements.length === 0
      ? 'Compare the plugins and additional fields of the instance with the tables.'
      : `Add a migration to a module of the app, with sql({ sqlite: […], postgres: […] }); on ${database.dialect} it is: ${statements.join('; ')}`;
  return [{ id: 'E032', message: `better-auth: ${problem}`, hint }];
}

/** What is wrong by better-auth's own measure; null when nothing is. Older versions of the range have none that can be called. */
async function ownComparison(context: InstanceContext): Promise<string | null> {
  try {
    await context.explicitSchemaCheck?.();
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** What better-auth itself would run to bring the tables up to date. */
async function plannedChanges(auth: BetterAuthInstance) {
  const { getMigrations } = await import('better-auth/db/migration');
  return getMigrations(auth.options, { throwOnUnsafe: false });
}
