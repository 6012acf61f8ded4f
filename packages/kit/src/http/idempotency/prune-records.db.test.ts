import { lockRows } from '../../../test/lock-rows.ts';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { secretsAndIdempotency } from '../../db/migrations/core/migrations/0002_secrets_and_idempotency.ts';
import type { Database } from '../../db/engine/db.ts';
import { migrate } from '../../db/migrations/migrate.ts';
import { uuidv7 } from '../../db/values/uuidv7.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { claimKey, KEPT_MS, pruneRecords } from './record-store.ts';

const core = { name: 'kit', models: [], migrations: [secretsAndIdempotency] };
const START = new Date('2026-01-01T00:00:00Z').getTime();
const MINUTE = 60_000;

describeDatabases(
  'removing expired idempotency records',
  (database) => {
    const clock = fakeClock(new Date(START));
    let db: Database;
    beforeAll(async () => {
      db = await database.open({ clock });
    });
    beforeEach(async () => {
      await db.query('delete from kit_idempotency');
      clock.set(new Date(START));
    });
    const claim = async (key: string): Promise<void> => {
      const claimed = { scopeHash: key, key, caller: 'c', operation: 'o', fingerprint: 'f', token: uuidv7() };
      expect(await claimKey(db, claimed)).toBe(true);
    };
    const claimMany = async (prefix: string, count: number): Promise<void> => {
      for (let index = 0; index < count; index++) await claim(`${prefix}-${index}`);
    };
    const left = async (): Promise<string[]> =>
      (await db.query<{ key: string }>('select key from kit_idempotency')).map(({ key }) => key).toSorted();

    test('all that are expired go, more than one statement takes, and no other', async () => {
      await claimMany('old', 1201);
      clock.advance(MINUTE);
      await claimMany('new', 3);
      clock.set(new Date(START + KEPT_MS - 1));
      expect(await pruneRecords(db)).toBe(0);
      clock.advance(1);
      expect(await pruneRecords(db)).toBe(1201);
      expect(await left()).toEqual(['new-0', 'new-1', 'new-2']);
    });

    test('a record that another transaction has locked does not hold up the others', async ({ skip }) => {
      if (db.dialect === 'sqlite') skip('SQLite has one writer at a time');
      await claimMany('old', 3);
      clock.set(new Date(START + KEPT_MS));
      const release = await lockRows(db, 'kit_idempotency', ['old-1'], 'scope_hash');
      expect(await pruneRecords(db)).toBe(2);
      await release();
      expect(await pruneRecords(db)).toBe(1);
    });

    test('records that were taken over do not hide expired ones behind them', async () => {
      await claimMany('daily', 450);
      clock.advance(MINUTE);
      await claimMany('once', 30);
      clock.set(new Date(START + KEPT_MS));
      await claimMany('daily', 450);
      clock.set(new Date(START + KEPT_MS + MINUTE));
      expect(await pruneRecords(db)).toBe(30);
      expect((await left()).length).toBe(450);
      clock.set(new Date(START + 2 * KEPT_MS));
      expect(await pruneRecords(db)).toBe(450);
    });

    test('records of a clock that was ahead do not hide expired ones behind them', async () => {
      clock.set(new Date(START + 10 * KEPT_MS));
      await claimMany('ahead', 450);
      clock.set(new Date(START));
      await claimMany('old', 5);
      clock.set(new Date(START + KEPT_MS));
      expect(await pruneRecords(db)).toBe(5);
      clock.set(new Date(START + 11 * KEPT_MS));
      expect(await pruneRecords(db)).toBe(450);
    });
  },
  { prepare: async (db) => void (await migrate(db, [core])) },
);
