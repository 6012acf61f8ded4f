import { afterAll, beforeAll, describe, test } from 'vitest';
import { startPostgresServer, type PostgresServer } from '../../../../test/provision/postgres-server.ts';
import { scaled } from '../../../../test/provision/scale.ts';
import { createPostgresDatabase, createSqliteDatabase } from '../../src/testing/test-database.ts';
import type { RandomKills } from './kill-at-random.ts';

/** Where a crash loop runs, and how much is killed and restarted there. */
export interface CrashPlace extends Omit<RandomKills, 'beforeKill'> {
  readonly url: string;
  readonly dialect: 'sqlite' | 'postgres';
}

const kills = scaled(3, 100);
const restarts = scaled(1, 5);
/** A kill and the start of another process in its place take seconds on a busy machine. */
const TIMEOUT_MS = 8 * 60_000 + kills * 30_000;

/** A crash loop on SQLite, and on a PostgreSQL server of its own that is restarted meanwhile. */
export function describeCrashes(name: string, guarantee: string, run: (place: CrashPlace) => Promise<void>): void {
  test(
    `${name}: on SQLite ${guarantee}`,
    async () => {
      const place = await createSqliteDatabase();
      try {
        await run({ url: place.url, dialect: 'sqlite', kills });
      } finally {
        await place.remove();
      }
    },
    TIMEOUT_MS,
  );

  describe('on a server of its own', () => {
    let server: PostgresServer | undefined;
    beforeAll(async () => {
      server = await startPostgresServer();
    });
    afterAll(() => server?.stop());

    test(
      `${name}, and PostgreSQL restarted: ${guarantee}`,
      async () => {
        const running = server;
        if (running === undefined) throw new Error('the server was not started');
        const { url } = await createPostgresDatabase(running.url);
        await run({ url, dialect: 'postgres', kills, restarts, restart: () => running.restart() });
      },
      TIMEOUT_MS,
    );
  });
}
