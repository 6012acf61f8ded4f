import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { access, copyFile, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import type { Dialect } from '../db/dialect.ts';
import { inspect } from './before-removal.ts';
import { requireArguments } from '../options/read-options.ts';
import { filledText } from '../options/value-rule.ts';

/** A real, empty database that exists for a test and is gone afterwards. */
export interface DatabasePlace {
  readonly dialect: Dialect;
  readonly url: string;
  remove(): Promise<void>;
}

/** A SQLite file in a temporary folder: empty, or a copy of the file `template`. */
export async function createSqliteDatabase(template?: string): Promise<DatabasePlace> {
  if (template !== undefined) requireArguments('createSqliteDatabase()', { template }, { template: filledText });
  const folder = await mkdtemp(join(tmpdir(), 'kit-test-'));
  if (template !== undefined) await copyFile(template, join(folder, 'test.db'), constants.COPYFILE_FICLONE);
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
  await withClient(serverUrl, async (client) => {
    const { rows } = await client.query<{ copies: boolean }>(
      "select current_setting('fsync') = 'off' and current_setting('server_version_num')::int >= 150000 as copies",
    );
    // Copying files takes half the time of writing them to the log, where their checkpoints do not wait for the disk: on servers for tests.
    const strategy = rows[0]?.copies === true ? ' strategy file_copy' : '';
    await client.query(`create database "${name}" template "${template.replaceAll('"', '""')}"${strategy}`);
  });
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

/** Where the SQLite templates of one test run are, until its global setup removes them. */
export function sqliteTemplateFolder(run: string): string {
  return join(tmpdir(), `kit-templates-${run}`);
}

/**
 * Makes the template file once per run and returns its path. Processes that need it at the same moment each make one, and the
 * last one renamed stays: they hold the same, and a copy never sees half of a file. `fill` must close its connections.
 */
export async function ensureSqliteTemplate(run: string, name: string, fill: (url: string) => Promise<void>): Promise<string> {
  const folder = sqliteTemplateFolder(run);
  const path = join(folder, `${name}.db`);
  const exists = await access(path).then(
    () => true,
    () => false,
  );
  if (exists) return path;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const unfinished = join(folder, `${name}-${randomBytes(8).toString('hex')}.db`);
  await fill(`sqlite:${unfinished}`);
  await rename(unfinished, path);
  return path;
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const { Client } = await import('pg');
  const client = new Client({ connectionString: url });
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
