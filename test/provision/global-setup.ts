import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { startPostgresServer } from './postgres-server.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Maintenance database of the run's PostgreSQL server. */
    postgresUrl: string;
  }
}

/** One PostgreSQL server per run: the caller's through DATABASE_URL, else one started from npm's binaries. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env['DATABASE_URL'];
  const server = given === undefined || given === '' ? await startPostgresServer() : undefined;
  const url = server?.url ?? given ?? '';
  const probe = new pg.Client({ connectionString: url });
  await probe.connect().catch((cause: unknown) => {
    throw new Error('PostgreSQL at DATABASE_URL does not answer; unset it to let the tests start their own server.', { cause });
  });
  await probe.end();
  project.provide('postgresUrl', url);
  return async () => {
    await server?.stop();
  };
}
