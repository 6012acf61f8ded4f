import { pino } from 'pino';
import { createApp } from '../app/assemble/create-app.ts';
import { migrateApp } from '../app/data/migration-modules.ts';
import type { App } from '../app/declare/module.ts';
import { runSeeds } from '../app/data/run-seeds.ts';
import type { AppOptions } from '../app/declare/options.ts';
import { testedAuthenticators, type TestedOptions } from '../app/assemble/tested-authenticators.ts';
import type { Middleware } from '../http/exchange/middleware.ts';
import { nPlusOne } from '../middleware/n-plus-one.ts';
import { loggedError } from '../errors/logged-error.ts';
import { testPostgresUrl } from './config.ts';
import { noteRepeats } from './note-repeats.ts';
import { testDataKeys } from './test-data-keys.ts';
import { createPostgresDatabase, createSqliteDatabase, type DatabasePlace } from './test-database.ts';
import { readOptions, requireArguments } from '../options/read-options.ts';
import { aFunction, anObject, either, filledText, flag, listOf, wholeNumber } from '../options/value-rule.ts';
import { type AsOptions, TestCallers, type TestClient, type TestUser } from './test-callers.ts';

export interface TestAppOptions extends Omit<AppOptions, 'database' | 'log'> {
  /**
   * `'sqlite'` (default): a new file. `'postgres'`: a new database on KIT_TEST_POSTGRES_URL. Anything else is passed on,
   * such as the `db` of describeDatabases().
   */
  readonly database?: NonNullable<AppOptions['database']>;
  /** Runs the migrations of the modules first; on unless said otherwise. */
  readonly migrate?: boolean;
  /**
   * Fails a request that runs the same statement again and again (`nPlusOne({ mode: 'throw' })`), so that the test fails: `true`, or how often
   * one statement may run.
   */
  readonly strictQueries?: boolean | number;
  /** Seeds of the app and its modules that fill the database, before `prepare`: `true` for all, or their names. */
  readonly runSeeds?: boolean | readonly string[];
  /** Fills the database: after the migrations, before modules are set up. */
  readonly prepare?: (app: App) => unknown;
}

/** One record the application logged. */
export interface LogRecord {
  readonly level: number;
  readonly msg: string;
  readonly [name: string]: unknown;
}

const optionRules = {
  migrate: flag,
  prepare: aFunction,
  runSeeds: either('true, false or names of seeds', flag, listOf(filledText)),
  strictQueries: either('true, false or a number', flag, wholeNumber(2)),
};

export interface TestApp extends AsyncDisposable {
  readonly app: App;
  /** Everything logged so far, newest last. */
  readonly records: LogRecord[];
  /** A request through the whole pipeline without a socket. */
  readonly inject: App['inject'];
  /**
   * Requests authenticated as this user, whatever the app's authenticators are: `await app.as({ id }).get('/v1/orders')`. Permissions, tenants
   * and throttles are asked as always; a session's CSRF proof is not.
   */
  as(user: TestUser, options?: AsOptions): TestClient;
  /** Listens on a free port of 127.0.0.1, for tests that need a socket; the same address when called again. */
  listen(): Promise<string>;
  close(): Promise<void>;
}

/**
 * A real application on a new real database. Both end with `await using kit = await testApp(…)`, or with `close()`.
 *
 * @example
 * ```ts
 * await using kit = await testApp({ mount: { '/v1': { '/orders': OrderController } }, modules: [shop] });
 * const response = await kit.inject({ method: 'GET', url: '/v1/orders' });
 * ```
 */
export async function testApp(options: TestAppOptions): Promise<TestApp> {
  requireArguments('testApp()', { options }, { options: anObject });
  const { database = 'sqlite', migrate: migrates = true, prepare, strictQueries = false, runSeeds: seeding = false, ...rest } = options;
  readOptions('testApp()', { migrate: migrates, prepare, strictQueries, runSeeds: seeding }, optionRules);
  const place = await placeOf(database);
  const records: LogRecord[] = [];
  const log = pino(
    { level: 'debug', base: null, serializers: { err: (error: unknown) => loggedError(error) } },
    { write: (line: string) => void records.push(JSON.parse(line) as LogRecord) },
  );
  const callers = new TestCallers();
  const tested: TestedOptions = {
    ...rest,
    settings: { ...testDataKeys(), ...rest.settings },
    middleware: [...(rest.middleware ?? []), ...noteRepeats(), ...(strictQueries === false ? [] : [strict(strictQueries)])],
    database: place?.url ?? database,
    log,
    [testedAuthenticators]: callers.authenticators,
  };
  const app = await createdOr(place, () => createApp(tested));
  let address: Promise<string> | undefined;
  const close = async (): Promise<void> => {
    await app.close();
    await place?.remove();
  };
  try {
    await app.openDatabases();
    if (migrates) await migrateApp(app);
    if (seeding !== false) await runSeeds(app, seeding === true ? undefined : seeding);
    await prepare?.(app);
    await app.ready();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    app,
    records,
    inject: (request) => app.inject(request),
    as: (user, asOptions) => callers.client(app, user, asOptions),
    listen: () => (address ??= app.listen({ port: 0 })),
    close,
    [Symbol.asyncDispose]: close,
  };
}

function strict(threshold: number | true): Middleware {
  return nPlusOne({ mode: 'throw', ...(threshold === true ? {} : { threshold }) });
}

/** A database that was made for an app that cannot be created is removed. */
async function createdOr(place: DatabasePlace | undefined, create: () => App): Promise<App> {
  try {
    return create();
  } catch (error) {
    await place?.remove();
    throw error;
  }
}

async function placeOf(database: TestAppOptions['database']): Promise<DatabasePlace | undefined> {
  if (database === 'sqlite') return createSqliteDatabase();
  if (database !== 'postgres') return undefined;
  const server = testPostgresUrl();
  if (server === undefined)
    throw new Error("testApp({ database: 'postgres' }) needs KIT_TEST_POSTGRES_URL, the address of a server that may create databases.");
  return createPostgresDatabase(server);
}
