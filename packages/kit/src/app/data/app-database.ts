import type { Database } from '../../db/engine/db.ts';
import { type DatabaseOptions, databaseRules } from '../../db/open/database-options.ts';
import { LazyDatabase } from '../../db/open/lazy-database.ts';
import type { Fault } from '../../options/fault.ts';
import { type OptionRules, readOptions } from '../../options/read-options.ts';
import { secret } from '../../options/value-rule.ts';
import { StartUpError } from '../check/start-up-error.ts';
import { readSettings } from '../declare/config.ts';
import { checkUrl } from './databases.ts';

/** The others come from the app and its settings. */
type OwnOptions = Omit<DatabaseOptions, 'name' | 'prepare' | 'createFile' | 'dataKeys' | 'clock' | 'log'>;

export interface AppDatabaseOptions extends OwnOptions {
  /** Where neither DATABASE_URL nor DATABASE_URL_FILE is set. */
  readonly defaultUrl?: string;
}

const {
  name: _name,
  prepare: _prepare,
  createFile: _createFile,
  dataKeys: _dataKeys,
  clock: _clock,
  log: _log,
  ...ownRules
} = databaseRules;
const rules: OptionRules<AppDatabaseOptions> = {
  ...ownRules,
  defaultUrl: secret('a URL such as "sqlite:./data/app.db"', (value) => typeof value === 'string' && value !== ''),
};

/**
 * The database of an app whose configuration needs a handle before the app exists, as better-auth does. It reads DATABASE_URL,
 * DATABASE_URL_FILE and DATABASE_PREPARE as `createApp` does, and connects when the app opens its databases, or with its first statement. The
 * app closes it.
 *
 * @example
 * ```ts
 * import { betterAuth as createAuth } from 'better-auth';
 *
 * const database = appDatabase({ defaultUrl: 'sqlite:./data/app.db' });
 * const auth = createAuth({ database: { db: joinedKysely(database), type: database.dialect, transaction: true } });
 * export default createApp({ database, modules: [betterAuth(auth)], mount: {} });
 * ```
 */
export function appDatabase(options: AppDatabaseOptions = {}): Database {
  const { defaultUrl, ...own } = readOptions('appDatabase()', options, rules);
  const { settings, faults } = readSettings();
  // `createApp` reports the other settings.
  const found: Fault[] = faults.filter((each) => /\bDATABASE_/.test(each)).map((message) => ({ id: 'E011', message }));
  const url = settings.databaseUrl ?? defaultUrl;
  if (url !== undefined) checkUrl(url, settings.databaseUrl === undefined ? 'appDatabase(): defaultUrl' : 'DATABASE_URL', found);
  else if (found.length === 0)
    found.push({
      id: 'E011',
      message: 'The app has no database.',
      hint: 'Set DATABASE_URL or appDatabase({ defaultUrl: "sqlite:./data/app.db" }).',
    });
  if (url === undefined || found.length > 0) throw new StartUpError(found);
  return new LazyDatabase(url, { ...own, prepare: settings.databasePrepare === 'on' });
}
