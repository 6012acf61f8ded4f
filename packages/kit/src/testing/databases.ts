import type * as Vitest from 'vitest';
import type { Database } from '../db/engine/db.ts';
import type { Dialect } from '../db/dialect.ts';
import type { DatabaseOptions } from '../db/open/database-options.ts';
import { openDatabase } from '../db/open/open-database.ts';
import { testPostgresUrl } from './config.ts';
import { runningVitest } from './running-vitest.ts';
import {
  createPostgresDatabase,
  createSqliteDatabase,
  ensurePostgresTemplate,
  ensureSqliteTemplate,
  type DatabasePlace,
} from './test-database.ts';
import { readOptions } from '../options/read-options.ts';
import { aFunction, filledText, objectWith } from '../options/value-rule.ts';

/** The real database of one `describeDatabases` block. Its members can be used from `beforeAll` on. */
export interface TestDatabase {
  readonly dialect: Dialect;
  readonly url: string;
  readonly db: Database;
  /** Another handle on the same database, as a second process would have; closed at the end. */
  open(options?: DatabaseOptions): Promise<Database>;
}

export interface DescribeDatabasesOptions {
  /** Fills the database once, before the block's own `beforeAll`: migrations, usually. */
  readonly prepare?: (db: Database) => Promise<void>;
  /**
   * A name for what `prepare` makes. The first block of the test run that names it fills a template, and every block gets a copy:
   * a clone of the database on PostgreSQL (about 30 ms), of the file on SQLite. Needs `testRun` provided to vitest: a text of its
   * own per run, so that no run meets an older template.
   */
  readonly template?: string;
  /** How the block's own handle is opened. */
  readonly database?: DatabaseOptions;
}

/** Migrations of a whole app take seconds on a busy machine, where vitest gives a hook ten. */
export const PREPARE_MS = 600_000;

/** Defines the same tests on SQLite (a temporary file) and on PostgreSQL (a database of their own, dropped at the end). */
export function describeDatabases(name: string, define: (database: TestDatabase) => void, options: DescribeDatabasesOptions = {}): void {
  const vitest = runningVitest('describeDatabases()');
  readOptions('describeDatabases()', options, {
    prepare: aFunction,
    template: filledText,
    database: objectWith('options of openDatabase()'),
  });
  const { describe } = vitest;
  const server = postgresServer(vitest);
  const template = templateOf(vitest, options);
  const { prepare, ...prepared } = options;
  describe(`${name} (sqlite)`, () => {
    if (template === undefined) return withDatabase(vitest, 'sqlite', () => createSqliteDatabase(), define, options);
    const create = async (): Promise<DatabasePlace> =>
      createSqliteDatabase(await ensureSqliteTemplate(template.run, template.name, (url) => fill(url, prepare)));
    return withDatabase(vitest, 'sqlite', create, define, prepared);
  });
  if (server === undefined) return;
  describe(`${name} (postgres)`, () => {
    const pooler = postgresPooler(vitest);
    const pooled = (given: DescribeDatabasesOptions): DescribeDatabasesOptions =>
      // A pooler in transaction mode keeps no prepared statements.
      pooler === undefined ? given : { ...given, database: { prepare: false, ...given.database } };
    if (template === undefined)
      return withDatabase(vitest, 'postgres', async () => behind(pooler, await createPostgresDatabase(server)), define, pooled(options));
    const database = `kit_template_${template.run}_${template.name}`;
    const create = async (): Promise<DatabasePlace> => {
      await ensurePostgresTemplate(server, database, (url) => fill(url, prepare));
      return behind(pooler, await createPostgresDatabase(server, database));
    };
    return withDatabase(vitest, 'postgres', create, define, pooled(prepared));
  });
}

interface Template {
  readonly run: string;
  readonly name: string;
}

/** The block's template in this run; undefined when the block prepares a database of its own. */
function templateOf({ inject }: typeof Vitest, { template, prepare }: DescribeDatabasesOptions): Template | undefined {
  const run = (inject as (key: string) => unknown)('testRun');
  return template === undefined || prepare === undefined || typeof run !== 'string' ? undefined : { run, name: template };
}

async function fill(url: string, prepare: DescribeDatabasesOptions['prepare']): Promise<void> {
  const db = await openDatabase(url);
  try {
    await prepare?.(db);
  } finally {
    await db.close();
  }
}

/** The test run's own server (provided to vitest as `postgresUrl`), else KIT_TEST_POSTGRES_URL. */
function postgresServer({ inject }: typeof Vitest): string | undefined {
  const provided = (inject as (key: string) => unknown)('postgresUrl');
  return typeof provided === 'string' && provided !== '' ? provided : testPostgresUrl();
}

/** Host and port of a pooler in front of the server (provided to vitest as `postgresPooler`): the tests' own connections go through it. */
function postgresPooler({ inject }: typeof Vitest): string | undefined {
  const provided = (inject as (key: string) => unknown)('postgresPooler');
  return typeof provided === 'string' && provided !== '' ? provided : undefined;
}

/** The same database by the address of the pooler. It is created and removed directly. */
function behind(pooler: string | undefined, place: DatabasePlace): DatabasePlace {
  if (pooler === undefined) return place;
  const url = new URL(place.url);
  url.host = pooler;
  return { ...place, url: url.href };
}

function withDatabase(
  { beforeAll, afterAll }: typeof Vitest,
  dialect: Dialect,
  create: () => Promise<DatabasePlace>,
  define: (database: TestDatabase) => void,
  options: DescribeDatabasesOptions,
): void {
  let place: DatabasePlace | undefined;
  const opened: Database[] = [];
  const open = async (settings?: DatabaseOptions): Promise<Database> => {
    const database = await openDatabase(made().url, { ...(options.database?.prepare === false ? { prepare: false } : {}), ...settings });
    opened.push(database);
    return database;
  };
  const made = (): DatabasePlace => {
    if (place === undefined) throw new Error('The test database exists from beforeAll on: use it inside tests and hooks.');
    return place;
  };

  beforeAll(async () => {
    place = await create();
    const db = await open(options.database);
    await options.prepare?.(db);
  }, PREPARE_MS);
  afterAll(async () => {
    await Promise.all(opened.map((database) => database.close().catch(() => undefined)));
    await place?.remove();
  });

  define({
    dialect,
    open,
    get url() {
      return made().url;
    },
    get db() {
      made();
      const [first] = opened;
      if (first === undefined) throw new Error('The test database could not be opened.');
      return first;
    },
  });
}
