import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { freePort } from '../../../../../../test/provision/free-port.ts';
import { PGBOUNCER, startPgBouncer } from '../../../../../../test/provision/pgbouncer.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { openDatabase } from '../../open/open-database.ts';
import { hearsTableWrites, watchTableWrites } from '../../rows/table-writes.ts';
import type { Database } from '../db.ts';

const SOON = { timeout: 60_000, interval: 20 };
const CHANNEL = 'kit_pooled';

describeDatabases('listening behind PgBouncer', (database) => {
  describe.runIf(PGBOUNCER !== undefined && database.dialect === 'postgres')('a pool and its listener', () => {
    let folder: string;
    let port: number;
    let bouncer: ChildProcess;
    let db: Database;
    let heard: string[];

    const start = async (mode: 'session' | 'transaction') => {
      bouncer = await startPgBouncer({ folder, server: new URL(database.url), port, connections: 6, mode });
    };
    const stop = async () => {
      const gone = once(bouncer, 'exit');
      bouncer.kill('SIGKILL');
      await gone;
    };
    const listen = async () => {
      const address = new URL(database.url);
      address.port = String(port);
      db = await openDatabase(address.href, { poolMax: 3, prepare: false, silenceMsMax: 100, connectMsMax: 1000, waitMsMax: 30_000 });
      await db.listen(CHANNEL, (payload) => heard.push(payload), {
        onDisconnect: () => heard.push('lost'),
        onReconnect: () => heard.push('back'),
      });
    };
    const serves = (n: number) =>
      vi.waitUntil(
        () =>
          db.query<{ n: number }>(`select ${n} as n`).then(
            ([row]) => row?.n === n,
            () => false,
          ),
        SOON,
      );

    beforeEach(async () => {
      folder = mkdtempSync(join(tmpdir(), 'kit-pooled-'));
      port = await freePort();
      heard = [];
    });
    afterEach(async () => {
      await db?.close();
      await stop();
      rmSync(folder, { recursive: true, force: true });
    });

    test('in session mode goes on after the pooler has ended and is back, as the pool does', async () => {
      await start('session');
      await listen();
      await database.db.notify(database.db, CHANNEL, 'one');
      await vi.waitUntil(() => heard.includes('one'), SOON);
      await watchTableWrites(db, () => undefined);
      expect(hearsTableWrites(db)).toBe(true);
      await stop();
      await vi.waitUntil(() => heard.includes('lost'), SOON);
      await start('session');
      await vi.waitUntil(() => heard.includes('back'), SOON);
      await serves(1);
      await database.db.notify(database.db, CHANNEL, 'two');
      await vi.waitUntil(() => heard.includes('two'), SOON);
      await vi.waitUntil(() => hearsTableWrites(db), SOON);
    });

    test('in transaction mode loses notifications and nothing else: no connection is given up, and statements of others are served', async () => {
      await start('transaction');
      await listen();
      // The response cache would keep what others have changed: it is told that it hears nothing.
      await expect(watchTableWrites(db, () => undefined)).rejects.toThrow('A pooler in transaction mode loses them');
      expect(hearsTableWrites(db)).toBe(false);
      // The heartbeat of the listener asks ten times a second.
      for (let n = 0; n < 20; n += 1) {
        await serves(n);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      expect(heard).not.toContain('lost');
      await stop();
      await vi.waitUntil(() => heard.includes('lost'), SOON);
      await start('transaction');
      await vi.waitUntil(() => heard.includes('back'), SOON);
      await serves(21);
    });
  });
});
