import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { sqliteTemplateFolder } from '../../packages/kit/src/testing/test-database.ts';
import { freePort } from './free-port.ts';
import { PGBOUNCER, startPgBouncer } from './pgbouncer.ts';
import { startPostgresServer } from './postgres-server.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Maintenance database of the run's PostgreSQL server. */
    postgresUrl: string;
    /** Host and port of PgBouncer in front of that server; empty without `KIT_TEST_PGBOUNCER=1`. */
    postgresPooler: string;
    /** Tells this run's template databases from those of another run on the same server. */
    testRun: string;
  }
}

interface Provision {
  readonly url: string;
  readonly run: string;
  readonly pooler: string;
  /** Projects of this run that use it. */
  users: number;
  remove(): Promise<void>;
}

/** Of each test database, to the server: fewer than the pool of an app has, so that they change hands, and more than its exports hold. */
const POOLED_CONNECTIONS = 8;

/** Each project loads this file for itself; they share what is here. */
const shared = globalThis as { kitTestProvision?: Promise<Provision> | undefined };

/** One PostgreSQL server per run: the caller's through DATABASE_URL, else one started from npm's binaries. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  shared.kitTestProvision ??= provide();
  const provision = await shared.kitTestProvision;
  provision.users += 1;
  project.provide('postgresUrl', provision.url);
  project.provide('postgresPooler', provision.pooler);
  project.provide('testRun', provision.run);
  return async () => {
    provision.users -= 1;
    if (provision.users > 0) return;
    shared.kitTestProvision = undefined;
    await provision.remove();
  };
}

async function provide(): Promise<Provision> {
  const given = process.env['DATABASE_URL'];
  // The tables of long tests take many gigabytes.
  const inMemory = process.env['KIT_TEST_LONG'] !== '1';
  const server = given === undefined || given === '' ? await startPostgresServer({ inMemory }) : undefined;
  const url = server?.url ?? given ?? '';
  const probe = new pg.Client({ connectionString: url });
  await probe.connect().catch((cause: unknown) => {
    throw new Error('PostgreSQL at DATABASE_URL does not answer; unset it to let the tests start their own server.', { cause });
  });
  await probe.end();
  const run = randomBytes(4).toString('hex');
  const pooler = process.env['KIT_TEST_PGBOUNCER'] === '1' ? await startPooler(url) : undefined;
  return {
    url,
    run,
    pooler: pooler?.place ?? '',
    users: 0,
    async remove() {
      await pooler?.stop();
      await rm(sqliteTemplateFolder(run), { recursive: true, force: true });
      if (server === undefined) await dropTemplates(url, run);
      else await server.stop();
    },
  };
}

/** PgBouncer in transaction mode: every test of the project whose database is PostgreSQL goes through it. Processes that tests start read DATABASE_PREPARE. */
async function startPooler(url: string): Promise<{ readonly place: string; stop(): Promise<void> }> {
  if (PGBOUNCER === undefined) throw new Error('KIT_TEST_PGBOUNCER=1 needs PgBouncer (Debian: pgbouncer).');
  const folder = await mkdtemp(join(tmpdir(), 'kit-bouncer-'));
  const port = await freePort();
  const bouncer = await startPgBouncer({ folder, server: new URL(url), port, connections: POOLED_CONNECTIONS });
  return {
    place: `127.0.0.1:${port}`,
    async stop() {
      bouncer.kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A server that is not ours keeps nothing of the run. */
async function dropTemplates(url: string, run: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ datname: string }>('select datname from pg_database where datname like $1', [
    `kit_template_${run}_%`,
  ]);
  for (const { datname } of rows) {
    await client.query(`alter database "${datname}" with is_template false`);
    await client.query(`drop database "${datname}" with (force)`);
  }
  await client.end();
}
