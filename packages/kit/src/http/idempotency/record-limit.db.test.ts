import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Person, ShopApp } from '../../../test/crud/shop.ts';
import { startLedger } from '../../../test/idempotency/ledger.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { mayHaveRecord, REFUSED_MS } from './record-limit.ts';

const HOUR_MS = 3_600_000;
const clock = fakeClock(new Date());

describeDatabases(
  'idempotency records of one caller',
  (database) => {
    let ledger: ShopApp;
    beforeAll(async () => {
      ledger = await startLedger({ database: database.db, clock, idempotencyRecordsMax: 5 });
    });
    afterAll(() => ledger.close());
    const pay = (key: string, person: Person = 'ann') =>
      ledger.call(person, 'POST', 'payments', { account: key, amount: 5 }, { 'idempotency-key': key });

    test('have a limit: another key is 429, a known one still gets its response, and expired ones do not count', async () => {
      for (let n = 0; n < 5; n += 1) expect((await pay(`k${n}`)).status).toBe(201);
      const refused = await pay('k5');
      expect(refused).toMatchObject({
        status: 429,
        headers: { 'retry-after': '60' },
        body: {
          code: 'too_many_idempotency_keys',
          detail: 'You have used too many idempotency keys in the last 24 hours. Nothing was done.',
          keys_max: 5,
        },
      });
      expect(await database.db.query('select id from payments where account = $1', ['k5'])).toEqual([]);
      const again = await pay('k3');
      expect([again.status, again.headers['idempotent-replayed']]).toEqual([201, 'true']);
      // Without a key, and for another caller, there is no limit.
      expect((await ledger.call('ann', 'POST', 'payments', { account: 'none', amount: 5 })).status).toBe(201);
      expect((await pay('k5', 'bob')).status).toBe(201);
      clock.advance(25 * HOUR_MS);
      expect((await pay('k5')).status).toBe(201);
      expect((await pay('k0')).headers['idempotent-replayed']).toBeUndefined();
    });

    test('are counted in the database: another process counts them too, and one that refused asks again after some seconds', async () => {
      const other = await database.open({ clock });
      clock.advance(25 * HOUR_MS);
      for (let n = 0; n < 5; n += 1) expect((await pay(`m${n}`)).status).toBe(201);
      const [row] = await database.db.query<{ caller: string }>('select caller from kit_idempotency order by created_at desc limit 1');
      const caller = row?.caller ?? '';
      expect(await mayHaveRecord(other, caller, 5)).toBe(false);
      await database.db.execute(`delete from kit_idempotency where key = 'm0'`);
      expect(await mayHaveRecord(other, caller, 5)).toBe(false);
      clock.advance(REFUSED_MS);
      expect(await mayHaveRecord(other, caller, 5)).toBe(true);
    });

    test('are not counted with every request', async () => {
      let statements = 0;
      const other = await database.open({ clock, onQuery: () => (statements += 1) });
      for (let n = 0; n < 100; n += 1) expect(await mayHaveRecord(other, 'user x', 1_000)).toBe(true);
      expect(statements).toBe(0);
      for (let n = 0; n < 100; n += 1) expect(await mayHaveRecord(other, 'user x', 1_000)).toBe(true);
      expect(statements).toBeGreaterThan(0);
      expect(statements).toBeLessThan(4);
    });
  },
  { database: { clock } },
);
