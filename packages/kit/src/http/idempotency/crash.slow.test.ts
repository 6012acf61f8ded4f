import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ShopApp } from '../../../test/crud/shop.ts';
import { startLedger } from '../../../test/idempotency/ledger.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { describeDatabases } from '../../testing/databases.ts';

const SCRIPT = join(import.meta.dirname, '../../../test/idempotency/crash-process.ts');
const WRITER = join(import.meta.dirname, '../../../test/idempotency/write-process.ts');
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
      const key = { 'idempotency-key': moment };
      if (moment.startsWith('memo'))
        return {
          retry: () => ledger.call('ann', 'POST', 'memos', { title: moment }, key),
          rows: () => database.db.query('select id from memos where title = $1', [moment]),
        };
      return {
        retry: () => ledger.call('ann', 'POST', 'payments', { account: moment, amount: 5 }, key),
        rows: () => database.db.query('select id from payments where account = $1', [moment]),
      };
    };

    // Triggers of SQLite can kill the process inside a generic create.
    const inside = database.dialect === 'sqlite' ? ['memo-begun', 'memo-written'] : [];
    test.each(['claimed', 'written', ...inside])(
      'when its request was %s is waited for until its lease ends, and then done once',
      async (moment) => {
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
      },
    );

    test.each(['committed', 'memo-committed'])(
      'after its commit and before its answer has its response sent by the retry: %s',
      async (moment) => {
        const { retry, rows } = await crash(moment);
        const first = await retry();
        expect([first.status, first.headers['idempotent-replayed']]).toEqual([201, 'true']);
        expect(await rows()).toEqual([{ id: first.body.id }]);
      },
    );

    test.runIf(database.dialect === 'sqlite')(
      'while its key is being claimed leaves nothing, and the retry does it immediately',
      async () => {
        const { retry, rows } = await crash('memo-recorded');
        expect([await rows(), await database.db.query('select 1 from kit_idempotency where key = $1', ['memo-recorded'])]).toEqual([
          [],
          [],
        ]);
        const first = await retry();
        expect([first.status, first.headers['idempotent-replayed']]).toEqual([201, undefined]);
        const second = await retry();
        expect([second.status, second.headers['idempotent-replayed'], second.text]).toEqual([201, 'true', first.text]);
        expect(await rows()).toEqual([{ id: first.body.id }]);
      },
    );

    test('and others: three processes that send creates under the same keys make one row of each, and get the same responses', async () => {
      const keys = Array.from({ length: 20 }, (_, index) => `shared-${index}`);
      const bodies = await Promise.all(
        [1, 2, 3].map(async () => {
          const child = spawn(process.execPath, ['--conditions=source', WRITER, database.url, ...keys], {
            stdio: ['ignore', 'pipe', 'inherit'],
          });
          const [text, [code]] = await Promise.all([readText(child.stdout), once(child, 'close')]);
          expect(code).toBe(0);
          return JSON.parse(text) as string[];
        }),
      );
      expect(new Set(bodies.map((each) => JSON.stringify(each))).size).toBe(1);
      const rows = await database.db.query(`select title from memos where title like 'shared-%' order by title`);
      expect(rows).toEqual(keys.toSorted().map((title) => ({ title })));
    });
  },
  { database: { clock } },
);
