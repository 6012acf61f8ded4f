import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ShopApp } from '../../../test/crud/shop.ts';
import { startLedger } from '../../../test/idempotency/ledger.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { describeDatabases } from '../../testing/databases.ts';

const SCRIPT = join(import.meta.dirname, '../../../test/idempotency/crash-process.ts');
const clock = fakeClock(new Date());

describeDatabases(
  '58: a process that is killed',
  (database) => {
    let ledger: ShopApp;
    beforeAll(async () => {
      ledger = await startLedger({ database: database.db, clock });
    });
    afterAll(() => ledger.close());

    /** Runs a request in a process that is killed on the way, and returns what repeats it here. */
    const crash = async (moment: string) => {
      const child = spawn(process.execPath, ['--conditions=source', SCRIPT, database.url, moment, moment], { stdio: 'inherit' });
      const [, signal] = (await once(child, 'close')) as [number | null, string | null];
      expect(signal).toBe('SIGKILL');
      clock.set(new Date());
      return {
        retry: () => ledger.call('ann', 'POST', 'payments', { account: moment, amount: 5 }, { 'idempotency-key': moment }),
        rows: () => database.db.query('select id from payments where account = $1', [moment]),
      };
    };

    test.each(['claimed', 'written'])('when its request was %s is waited for until its lease ends, and then done once', async (moment) => {
      const { retry, rows } = await crash(moment);
      const first = await retry();
      expect([first.status, first.body.code]).toEqual([409, 'request_in_progress']);
      expect(Number(first.headers['retry-after'])).toBeGreaterThan(0);
      expect(await rows()).toEqual([]);
      clock.advance(61_000);
      const second = await retry();
      expect([second.status, second.headers['idempotent-replayed']]).toEqual([201, undefined]);
      const third = await retry();
      expect([third.status, third.headers['idempotent-replayed'], third.text]).toEqual([201, 'true', second.text]);
      expect(await rows()).toHaveLength(1);
    });

    test('after its commit and before its answer has its response sent by the retry', async () => {
      const { retry, rows } = await crash('committed');
      const first = await retry();
      expect([first.status, first.headers['idempotent-replayed']]).toEqual([201, 'true']);
      expect(await rows()).toEqual([{ id: first.body.id }]);
    });
  },
  { database: { clock } },
);
