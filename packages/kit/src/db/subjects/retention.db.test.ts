import { expect, test } from 'vitest';
import { describeDatabases } from '../../testing/databases.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { t } from '../declare/column.ts';
import { type Model, model } from '../declare/model.ts';
import type { Database } from '../engine/db.ts';
import { changes as changesMigration } from '../migrations/core/migrations/0004_changes.ts';
import { erasures as erasuresMigration } from '../migrations/core/migrations/0005_erasures.ts';
import { failedErasures } from '../migrations/core/migrations/0006_failed_erasures.ts';
import { migrate } from '../migrations/migrate.ts';
import { openDatabase } from '../open/open-database.ts';
import { insertMany, list } from '../rows/repository.ts';
import { tableStatements } from '../sql/ddl.ts';
import { setLegalHold } from './erasure-state.ts';
import { whoseIn } from './held-rows.ts';
import { countOverdue, cutoffOf, type RetainedTable, retainBatch, retentionStates } from './retention.ts';
import { subjectPlan } from './subject-plan.ts';

const visits = model(
  'visits',
  { id: t.int().pk(), user_id: t.text(20).person(), at: t.timestamp(), page: t.text() },
  { retention: { after: '30 days', by: 'at', then: 'delete' } },
);
const bills = model(
  'bills',
  {
    id: t.int().pk(),
    user_id: t.text(20).person({ erase: 'anonymise', erased: 'nobody' }),
    day: t.date().nullable(),
    address: t.text().nullable().personal(),
    total: t.int(),
  },
  { retention: { after: '2 years', by: 'day', then: 'anonymise' } },
);

test('a time ends by the calendar, in UTC', () => {
  const at = (text: string) => new Date(`${text}T12:00:00.000Z`);
  expect(cutoffOf({ after: '30 days' }, at('2030-03-01'))).toEqual(at('2030-01-30'));
  expect(cutoffOf({ after: '1 month' }, at('2030-03-31'))).toEqual(at('2030-02-28'));
  expect(cutoffOf({ after: '24 months' }, at('2032-02-29'))).toEqual(at('2030-02-28'));
  expect(cutoffOf({ after: '1 year' }, at('2032-02-29'))).toEqual(at('2031-02-28'));
});

test('a retention that cannot work is a fault of the model', () => {
  const columns = { id: t.int().pk(), at: t.timestamp(), name: t.text().personal() };
  const declared = (retention: object) => () => model('logs', columns, { retention } as never);
  expect(declared({ after: 'soon', by: 'at', then: 'delete' })).toThrow("a number of days, months or years, such as '24 months'");
  expect(declared({ after: '1 day', by: 'att', then: 'delete' })).toThrow('retention counts from an unknown column "att"');
  expect(declared({ after: '1 day', by: 'name', then: 'delete' })).toThrow('which is a text: it needs a timestamp or a date');
  expect(declared({ after: '1 day', by: 'at', then: 'anonymise' })).toThrow('retention anonymises "name", which is not nullable');
  expect(() =>
    model('logs', { id: t.int().pk(), at: t.timestamp() }, { retention: { after: '1 day', by: 'at', then: 'anonymise' } }),
  ).toThrow('no column shows which are');
});

describeDatabases(
  'retention',
  (database) => {
    const clock = fakeClock('2030-06-15T12:00:00.000Z');
    const tableOf = (db: Database, each: typeof visits | typeof bills): RetainedTable => {
      const people = subjectPlan('person', [visits, bills]).tables;
      const tables = { models: [visits, bills], whose: (of: Model) => whoseIn(of, people, []) };
      return { database: db, model: each, retention: each.retention as never, tables };
    };
    const fill = async (): Promise<Database> => {
      const db = await database.open({ clock });
      for (const name of ['visits', 'bills', 'kit_erasures', 'kit_legal_holds', 'kit_retention', 'kit_changes', 'kit_migrations'])
        await db.query(`drop table if exists ${name}${db.dialect === 'postgres' ? ' cascade' : ''}`);
      await migrate(db, [{ name: 'kit', migrations: [changesMigration, erasuresMigration, failedErasures] }]);
      for (const { table } of [visits, bills]) for (const sql of tableStatements(table, db.dialect)) await db.query(sql);
      const day = 86_400_000;
      await insertMany(
        db,
        visits,
        Array.from({ length: 40 }, (_, id) => ({
          id,
          user_id: id % 2 === 0 ? 'ada' : 'bob',
          at: new Date(clock.now().getTime() - id * 2 * day),
          page: '/',
        })),
      );
      await insertMany(db, bills, [
        { id: 1, user_id: 'ada', day: '2028-06-14', address: 'Street 1', total: 7 },
        { id: 2, user_id: 'ada', day: '2028-06-15', address: 'Street 1', total: 7 },
        { id: 3, user_id: 'bob', day: null, address: 'Street 2', total: 7 },
        { id: 4, user_id: 'bob', day: '2020-01-01', address: null, total: 7 },
      ]);
      return db;
    };
    const all = async (db: Database, table: RetainedTable, batch: number): Promise<number[]> => {
      const batches: number[] = [];
      for (
        let rows = await retainBatch(table, { database: db, batch });
        rows !== null;
        rows = await retainBatch(table, { database: db, batch })
      )
        batches.push(rows);
      return batches;
    };

    test('rows whose time is over go in batches, with their figures; the others stay', async () => {
      const db = await fill();
      const table = tableOf(db, visits);
      // Exactly 30 days are not over yet.
      expect(await countOverdue(table, db)).toBe(24);
      expect(await all(db, table, 10)).toEqual([10, 10, 4]);
      expect((await list(db, visits)).map(({ id }) => id).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 16 }, (_, id) => id));
      expect((await retentionStates(db)).get('visits')).toMatchObject({ last_rows: 24n, total_rows: 24n, last_error: null });
      clock.advance(3 * 86_400_000);
      expect(await all(db, table, 10)).toEqual([2]);
      expect((await retentionStates(db)).get('visits')).toMatchObject({ last_rows: 2n, total_rows: 26n });
      clock.advance(-3 * 86_400_000);
    });

    test('a row is anonymised once, and what is not personal stays', async () => {
      const db = await fill();
      const table = tableOf(db, bills);
      expect(await all(db, table, 10)).toEqual([2]);
      expect(await list(db, bills, { orderBy: ['id'] })).toMatchObject([
        { id: 1, user_id: 'nobody', address: null, total: 7 },
        { id: 2, user_id: 'ada', address: 'Street 1' },
        { id: 3, user_id: 'bob', address: 'Street 2' },
        { id: 4, user_id: 'nobody', address: null },
      ]);
      expect(await countOverdue(table, db)).toBe(0);
    });

    test('rows under a legal hold stay, and a batch that fails changes nothing and says why', async () => {
      const db = await fill();
      const table = tableOf(db, visits);
      await db.transaction((tx) => setLegalHold(tx, { kind: 'person', id: 'ada' }, { reason: 'case 7', by: null }));
      expect(await countOverdue(table, db)).toBe(12);
      const failing = { database: db, beforeErase: () => Promise.reject(new Error('the store of files is away')) };
      await expect(retainBatch(table, failing)).rejects.toThrow('the store of files is away');
      expect((await retentionStates(db)).get('visits')).toMatchObject({ total_rows: 0n, last_error: 'the store of files is away' });
      expect((await list(db, visits)).length).toBe(40);
      expect(await retainBatch(table, { database: db })).toBeNull();
      expect(await retainBatch(table, { database: db, now: true })).toBe(12);
      expect((await retentionStates(db)).get('visits')).toMatchObject({ total_rows: 12n, last_error: null });
      expect((await list(db, visits, { where: { user_id: 'ada' } })).length).toBe(20);
    });

    test('two processes remove every row once', async () => {
      const db = await fill();
      const other = await openDatabase(database.url, { clock });
      try {
        const both = [db, other].map(async (each) => {
          let total = 0;
          for (let tries = 0; tries < 40; tries++)
            total += (await retainBatch(tableOf(each, visits), { database: each, batch: 3, now: true })) ?? 0;
          return total;
        });
        const totals = await Promise.all(both);
        expect((totals[0] ?? 0) + (totals[1] ?? 0)).toBe(24);
      } finally {
        await other.close();
      }
      expect((await retentionStates(db)).get('visits')).toMatchObject({ total_rows: 24n });
    });
  },
  { database: {} },
);
