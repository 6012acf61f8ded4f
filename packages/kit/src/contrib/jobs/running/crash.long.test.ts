import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startPostgresServer, type PostgresServer } from '../../../../../../test/provision/postgres-server.ts';
import { scaled } from '../../../../../../test/provision/scale.ts';
import { runJobCrashLoop, type JobReconciliation } from '../../../../test/jobs/crash-loop.ts';
import { createPostgresDatabase, createSqliteDatabase } from '../../../testing/test-database.ts';

const kills = scaled(3, 100);
const restarts = scaled(1, 5);
const TIMEOUT_MS = 8 * 60_000 + kills * 30_000;

function expectExactlyOnce(result: JobReconciliation): void {
  console.info(`jobs crash loop: ${JSON.stringify(result)}`);
  expect(result).toMatchObject({ stuck: 0, notExactlyOnce: 0, succeeded: result.started });
  expect(result.started).toBeGreaterThan(0);
}

describe('workers killed at random points', () => {
  test(
    'on SQLite every job ends, and what it committed was committed exactly once',
    async () => {
      const place = await createSqliteDatabase();
      try {
        expectExactlyOnce(await runJobCrashLoop({ url: place.url, workers: 2, kills }));
      } finally {
        await place.remove();
      }
    },
    TIMEOUT_MS,
  );

  describe('and PostgreSQL restarted', () => {
    let server: PostgresServer | undefined;
    beforeAll(async () => {
      server = await startPostgresServer();
    });
    afterAll(() => server?.stop());

    test(
      'on PostgreSQL too',
      async () => {
        if (server === undefined) throw new Error('the server was not started');
        const running = server;
        const place = await createPostgresDatabase(running.url);
        expectExactlyOnce(await runJobCrashLoop({ url: place.url, workers: 3, kills, restarts, restart: () => running.restart() }));
      },
      TIMEOUT_MS,
    );
  });
});
