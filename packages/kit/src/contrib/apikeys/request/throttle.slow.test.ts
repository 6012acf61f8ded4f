import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, expect, inject, test } from 'vitest';
import { createPostgresDatabase } from 'kit/testing';
import { startRedisServer } from '../../../../../../test/provision/redis-server.ts';
import { prepareAccountsAndKeys, startKeyApp } from '../../../../test/key-app.ts';
import { migrate } from '../../../db/migrations/migrate.ts';
import { openDatabase } from '../../../db/open/open-database.ts';
import { fakeClock } from '../../../testing/fake-clock.ts';
import { initial as throttles } from '../../../throttle/migrations/0001_throttles.ts';

const NOW = '2030-01-01T00:00:00.000Z';
const closers: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

async function serve(databaseUrl: string, redisUrl: string): Promise<{ address: string; child: ChildProcess }> {
  const script = join(import.meta.dirname, '../../../../test/serve-limited.ts');
  const child = spawn(process.execPath, ['--conditions=source', script, databaseUrl, redisUrl, NOW], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  closers.push(async () => {
    child.stdin?.end();
    if (child.exitCode === null) await once(child, 'exit');
  });
  const [address] = (await once(createInterface(child.stdout), 'line')) as [string];
  return { address, child };
}

test.each(['PostgreSQL', 'Redis'])(
  'of 100 parallel requests against a 10/min key two processes that share %s admit exactly 10',
  async (storage) => {
    const database = await createPostgresDatabase(inject('postgresUrl'));
    closers.push(() => database.remove());
    const redis = storage === 'Redis' ? await startRedisServer() : null;
    if (redis !== null) closers.push(() => redis.stop());
    const db = await openDatabase(database.url);
    await prepareAccountsAndKeys(db);
    await migrate(db, [{ name: 'kit', migrations: [throttles] }]);
    const kit = await startKeyApp(db, { clock: fakeClock(NOW) });
    const { raw } = await kit.key(await kit.user('ada'), { rateLimit: '10/min' });
    await kit.app.close();
    await db.close();
    const servers = await Promise.all([serve(database.url, redis?.url ?? ''), serve(database.url, redis?.url ?? '')]);
    const statuses = await Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        const response = await fetch(`${servers[index % 2]?.address}/v1/limited`, { headers: { 'x-api-key': raw } });
        await response.arrayBuffer();
        return response.status;
      }),
    );
    expect([statuses.filter((status) => status === 200).length, statuses.filter((status) => status === 429).length]).toEqual([10, 90]);
  },
  600_000,
);
