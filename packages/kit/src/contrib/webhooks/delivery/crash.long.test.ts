import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startPostgresServer, type PostgresServer } from '../../../../../../test/provision/postgres-server.ts';
import { scaled } from '../../../../../../test/provision/scale.ts';
import { runCrashLoop, type Reconciliation } from '../../../../test/webhooks/crash-loop.ts';
import { createPostgresDatabase, createSqliteDatabase } from '../../../testing/test-database.ts';

const kills = scaled(3, 100);
const restarts = scaled(1, 5);
/** A kill and the start of another process in its place take seconds on a busy machine. */
const TIMEOUT_MS = 5 * 60_000 + kills * 30_000;

/** A long run shows that it is alive. */
function onKill(n: number): void {
  if (n % 10 === 0) console.info(`crash loop: ${n} of ${kills} kills`);
}

function expectNothingLost(result: Reconciliation): void {
  console.info(`crash loop: ${JSON.stringify(result)}`);
  expect(result).toMatchObject({ lost: 0, unpromised: 0, stuck: 0 });
  expect(result.published).toBeGreaterThan(0);
  // Every duplicate is a request whose worker was killed, or lost its claim and said so, before its result was stored.
  expect(result.duplicates).toBe(result.interrupted + result.unstored);
  expect(result.unstored).toBeLessThanOrEqual(result.lost_claims);
}

describe('workers and publishers killed at random points', () => {
  test(
    'on SQLite every committed event arrives, no rolled-back one does, and nothing is stuck',
    async () => {
      const place = await createSqliteDatabase();
      try {
        expectNothingLost(await runCrashLoop({ url: place.url, workers: 2, publishers: 1, kills, onKill }));
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
        const running = server;
        if (running === undefined) throw new Error('the server was not started');
        const place = await createPostgresDatabase(running.url);
        const restart = () => running.restart();
        expectNothingLost(await runCrashLoop({ url: place.url, workers: 3, publishers: 2, kills, restarts, restart, onKill }));
      },
      TIMEOUT_MS,
    );
  });
});
