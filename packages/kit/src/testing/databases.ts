import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, inject } from 'vitest';
import type { Database } from '../db/db.ts';
import type { Dialect } from '../db/dialect.ts';
import { openDatabase, type DatabaseOptions } from '../db/open-database.ts';
import { testPostgresUrl } from './config.ts';

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
  /** How the block's own handle is opened. */
  readonly database?: DatabaseOptions;
}

interface Place {
  readonly url: string;
  remove(): Promise<void>;
}

/** Defines the same tests on SQLite (a temporary file) and on PostgreSQL (a database of their own, dropped at the end). */
export function describeDatabases(name: string, define: (database: TestDatabase) => void, options: DescribeDatabasesOptions = {}): void {
  const server = postgresServer();
  describe(`${name} (sqlite)`, () => {
    withDatabase('sqlite', createSqliteFile, define, options);
  });
  if (server === undefined) return;
  describe(`${name} (postgres)`, () => {
    withDatabase('postgres', () => createPostgresDatabase(server), define, options);
  });
}

/** The test run's own server (provided to vitest as `postgresUrl`), else KIT_TEST_POSTGRES_URL. */
function postgresServer(): string | undefined {
  const provided = (inject as (key: string) => unknown)('postgresUrl');
  return typeof provided === 'string' && provided !== '' ? provided : testPostgresUrl();
}

function withDatabase(
  dialect: Dialect,
  create: () => Promise<Place>,
  define: (database: TestDatabase) => void,
  options: DescribeDatabasesOptions,
): void {
  let place: Place | undefined;
  const opened: Database[] = [];
  const open = async (settings?: DatabaseOptions): Promise<Database> => {
    const database = await openDatabase(made().url, settings);
    opened.push(database);
    return database;
  };
  const made = (): Place => {
    if (place === undefined) throw new Error('The test database exists from beforeAll on: use it inside tests and hooks.');
    return place;
  };

  beforeAll(async () => {
    place = await create();
    const db = await open(options.database);
    await options.prepare?.(db);
  });
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

async function createSqliteFile(): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'kit-test-'));
  return { url: `sqlite:${join(folder, 'test.db')}`, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** Cloned from template0 (about 30 ms); the name is random, so files and runs on one server never meet. */
async function createPostgresDatabase(serverUrl: string): Promise<Place> {
  const name = `kit_test_${randomBytes(8).toString('hex')}`;
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  await onServer(serverUrl, `create database "${name}" template template0`);
  return { url: url.href, remove: () => onServer(serverUrl, `drop database if exists "${name}" with (force)`) };
}

async function onServer(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
