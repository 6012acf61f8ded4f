import { randomBytes } from 'node:crypto';
import pg from 'pg';

/** A database of its own for one test file, cloned from a template and dropped at the end. */
export interface PostgresDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

async function onServer<T>(serverUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

function urlOf(serverUrl: string, database: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${database}`;
  return url.href;
}

/**
 * Clones `template` (about 30 ms) or creates an empty database. Names are random, so that files running in
 * parallel and several runs on one server never meet.
 */
export async function createPostgresDatabase(serverUrl: string, template = 'template0'): Promise<PostgresDatabase> {
  const name = `kit_${randomBytes(8).toString('hex')}`;
  await onServer(serverUrl, (client) => client.query(`create database "${name}" template "${template}"`));
  return {
    url: urlOf(serverUrl, name),
    async drop() {
      await onServer(serverUrl, (client) => client.query(`drop database if exists "${name}" with (force)`));
    },
  };
}

/**
 * Builds a template once per run, whichever test file asks first; the others wait on the advisory lock and find it.
 * `fill` gets the connection string of the empty database and must close its connections.
 */
export async function ensurePostgresTemplate(serverUrl: string, name: string, fill: (url: string) => Promise<void>): Promise<void> {
  await onServer(serverUrl, async (client) => {
    await client.query('select pg_advisory_lock(hashtext($1))', [name]);
    const known = await client.query('select 1 from pg_database where datname = $1 and datistemplate', [name]);
    if (known.rowCount === 1) return;
    await client.query(`drop database if exists "${name}" with (force)`);
    await client.query(`create database "${name}" template template0`);
    await fill(urlOf(serverUrl, name));
    await client.query(`alter database "${name}" with is_template true`);
  });
}
