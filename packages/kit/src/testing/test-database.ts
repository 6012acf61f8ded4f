import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { Dialect } from '../db/dialect.ts';
import { inspect } from './before-removal.ts';

/** A real, empty database that exists for a test and is gone afterwards. */
export interface DatabasePlace {
  readonly dialect: Dialect;
  readonly url: string;
  remove(): Promise<void>;
}

/** A SQLite file in a temporary folder. */
export async function createSqliteDatabase(): Promise<DatabasePlace> {
  const folder = await mkdtemp(join(tmpdir(), 'kit-test-'));
  return placeOf('sqlite', `sqlite:${join(folder, 'test.db')}`, () => rm(folder, { recursive: true, force: true }));
}

/**
 * A database of its own on the given server, cloned from `template` (about 30 ms; a template that was migrated once
 * saves migrating every test). The name is random, so files and runs on one server never meet.
 */
export async function createPostgresDatabase(serverUrl: string, template = 'template0'): Promise<DatabasePlace> {
  const name = `kit_test_${randomBytes(8).toString('hex')}`;
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  await onServer(serverUrl, `create database "${name}" template "${template.replaceAll('"', '""')}"`);
  return placeOf('postgres', url.href, () => onServer(serverUrl, `drop database if exists "${name}" with (force)`));
}

function placeOf(dialect: Dialect, url: string, drop: () => Promise<void>): DatabasePlace {
  const place: DatabasePlace = {
    dialect,
    url,
    async remove() {
      try {
        await inspect(place);
      } finally {
        await drop();
      }
    },
  };
  return place;
}

/**
 * Makes the template once, whichever test file asks first; the others wait on the advisory lock and find it.
 * `fill` gets the address of the empty database and must close its connections.
 */
export async function ensurePostgresTemplate(serverUrl: string, name: string, fill: (url: string) => Promise<void>): Promise<void> {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  await withClient(serverUrl, async (client) => {
    await client.query('select pg_advisory_lock(hashtext($1))', [name]);
    const known = await client.query('select 1 from pg_database where datname = $1 and datistemplate', [name]);
    if (known.rowCount === 1) return;
    await client.query(`drop database if exists "${name}" with (force)`);
    await client.query(`create database "${name}" template template0`);
    await fill(url.href);
    await client.query(`alter database "${name}" with is_template true`);
  });
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

async function onServer(url: string, statement: string): Promise<void> {
  await withClient(url, (client) => client.query(statement));
}
