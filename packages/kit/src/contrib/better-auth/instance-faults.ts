import { columnTypes } from '../../auth/people/user-table.ts';
import type { Database } from '../../db/engine/db.ts';
import type { Fault } from '../../options/fault.ts';
import { basePathOf, type BetterAuthInstance, type InstanceContext, type InstanceOptions, pluginOf } from './instance.ts';
import { joinedDatabase } from './joined-kysely.ts';
import { PLUGIN_ID } from './kit-plugin.ts';

/** better-auth falls back to it outside of production. */
const WELL_KNOWN_SECRET = 'better-auth-secret-12345678901234567890';

/** Whether the instance is connected with the app: without either, changes and transactions go past the toolkit. */
export function connectionFaults(options: InstanceOptions, database: Database): readonly Fault[] {
  const faults: Fault[] = [];
  const wrong = (message: string, hint: string): void => void faults.push({ id: 'E033', message: `better-auth: ${message}`, hint });
  if (pluginOf(options, PLUGIN_ID) === undefined)
    wrong('the instance does not have the plugin of the toolkit.', "Add kitPlugin() of 'kit/contrib/better-auth' to its plugins.");
  const connect =
    'Write database: { db: joinedKysely(db), type: db.dialect, transaction: true } with the database that createApp is given.';
  const joined = joinedDatabase(options.database);
  if (joined === undefined) wrong('its database was not made by joinedKysely().', connect);
  else if (joined !== database) wrong('its database is not the default database of the app.', connect);
  else {
    const { type, transaction } = options.database as { readonly type?: unknown; readonly transaction?: unknown };
    if (type !== database.dialect) wrong(`database.type is ${JSON.stringify(type)}, but the database is ${database.dialect}.`, connect);
    if (transaction !== true) wrong('database.transaction is not set, so its changes could be stored in part.', connect);
  }
  return faults;
}

/** Settings under which logins would not be safe here, or under which our statements would not find the sessions. */
export function configurationFaults(options: InstanceOptions, context: InstanceContext): readonly Fault[] {
  const faults: Fault[] = [];
  const wrong = (message: string, hint: string): void => void faults.push({ id: 'E031', message: `better-auth: ${message}`, hint });
  const { advanced = {}, session = {}, emailAndPassword = {} } = options;
  if (typeof options.baseURL === 'object' && options.baseURL !== null)
    wrong(
      'baseURL depends on the request.',
      "Set one URL, such as baseURL: 'https://app.example.com'; list other origins in trustedOrigins.",
    );
  else if (context.baseURL === '')
    wrong('baseURL is missing, so links in mails would be made from the Host header.', "Set baseURL: 'https://app.example.com'.");
  else if (basePathOf(options) !== new URL(context.baseURL).pathname)
    wrong(
      `its routes are at ${new URL(context.baseURL).pathname}, but the options lead to ${basePathOf(options)}.`,
      'Set baseURL without a path, and basePath, in the options of the instance.',
    );
  if (context.secret === WELL_KNOWN_SECRET)
    wrong('the secret is the default of the package.', 'Set secret, or BETTER_AUTH_SECRET: openssl rand -base64 32.');
  if (options.secondaryStorage !== undefined && session.storeSessionInDatabase !== true)
    wrong('sessions are in secondaryStorage only.', 'Set session: { storeSessionInDatabase: true }.');
  const bearer = pluginOf(options, 'bearer');
  if (bearer !== undefined && bearer.options?.['requireSignature'] !== true)
    wrong('bearer() accepts session tokens as they are stored in the database.', 'Write bearer({ requireSignature: true }).');
  if (emailAndPassword.enabled === true && emailAndPassword.revokeSessionsOnPasswordReset !== true)
    wrong('sessions survive a password reset.', 'Set emailAndPassword: { revokeSessionsOnPasswordReset: true }.');
  if (isOn(advanced.disableCSRFCheck) || isOn(context.skipCSRFCheck))
    wrong('the CSRF check is disabled.', 'Remove advanced.disableCSRFCheck.');
  if (isOn(advanced.disableOriginCheck)) wrong('the origin check is disabled.', 'Remove advanced.disableOriginCheck.');
  // A plugin may list single paths: @better-auth/sso has those that a SAML provider posts to, with a signature instead.
  else if (context.skipOriginCheck === true)
    wrong('the origin check is disabled, because NODE_ENV is test.', 'Set advanced: { disableOriginCheck: false }.');
  if (advanced.database?.validateSchema !== false)
    wrong(
      'it compares the tables when it is created, which may be before `kit migrate`, and then rejects every request.',
      'Set advanced: { database: { validateSchema: false } }; the tables are compared when the app starts.',
    );
  const { generateId } = advanced.database ?? {};
  if (generateId !== undefined && typeof generateId !== 'function')
    wrong(
      `generateId is ${JSON.stringify(generateId)}, but its ids are text here.`,
      'Remove advanced.database.generateId, or use a function that returns a string.',
    );
  const roles = pluginOf(options, 'admin')?.options?.['adminRoles'] as string | readonly string[] | undefined;
  if (roles !== undefined && !(typeof roles === 'string' ? roles.split(',') : roles).includes('admin'))
    wrong('adminRoles of admin() does not contain "admin", the role that is staff here.', "Add 'admin' to adminRoles.");
  const renamed = renamedParts(context);
  if (renamed.length > 0)
    wrong(
      `tables or columns have other names: ${renamed.join(', ')}.`,
      'Remove modelName and fields from the options of the instance and its plugins.',
    );
  return faults;
}

/** Options that are true or a list of paths. */
function isOn(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value);
}

/** The tables that our statements read. */
const READ = ['user', 'session', 'organization', 'member'];

function renamedParts({ tables }: InstanceContext): readonly string[] {
  const found: string[] = [];
  for (const name of READ) {
    const table = tables[name];
    if (table === undefined) continue;
    if (table.modelName !== name) found.push(`${name} → ${table.modelName}`);
    for (const [field, { fieldName = field }] of Object.entries(table.fields))
      if (fieldName !== field) found.push(`${name}.${field} → ${fieldName}`);
  }
  return found;
}

/** The versions that the tests run with, both included. */
export const TESTED = { oldest: '1.7.4', newest: '1.7.7' } as const;

export function versionFaults({ version }: Pick<InstanceContext, 'version'>): readonly Fault[] {
  const order = compareVersions(version, TESTED.oldest);
  if (order !== null && order < 0)
    return [
      {
        id: 'E031',
        message: `better-auth: version ${version} is too old: it cannot be installed beside this version of the toolkit, or has other tables.`,
        hint: `Install better-auth ${TESTED.newest}.`,
      },
    ];
  const newer = compareVersions(version, TESTED.newest);
  if (newer !== null && newer <= 0) return [];
  return [
    {
      id: 'W024',
      message: `better-auth: version ${version} was not tested with this version of the toolkit, which was tested with ${TESTED.oldest} to ${TESTED.newest}.`,
      hint: `Install better-auth ${TESTED.newest}, or run your own login tests and silence the check with a reason.`,
    },
  ];
}

/** Negative: the first is older. Null: not a released version. */
function compareVersions(left: string, right: string): number | null {
  if (!/^\d+\.\d+\.\d+$/.test(left)) return null;
  const [a, b] = [left, right].map((version) => version.split('.').map(Number)) as [number[], number[]];
  return a.map((part, index) => part - (b[index] ?? 0)).find((difference) => difference !== 0) ?? 0;
}

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
