import { join } from 'node:path';
import { expect, test } from 'vitest';
import { bills, notes, people } from '../../../test/personal/killed-tables.ts';
import { runUntilKilled } from '../../../test/run-until-killed.ts';
import { scaled } from '../../../../../test/provision/scale.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { changes as changesMigration } from '../migrations/core/migrations/0004_changes.ts';
import { erasures as erasuresMigration } from '../migrations/core/migrations/0005_erasures.ts';
import { failedErasures } from '../migrations/core/migrations/0006_failed_erasures.ts';
import { migrate } from '../migrations/migrate.ts';
import { insert, insertMany, list } from '../rows/repository.ts';
import { tableStatements } from '../sql/ddl.ts';
import { findErasure, requestErasure } from './erasure-state.ts';
import { retentionStates } from './retention.ts';

const PROGRAM = join(import.meta.dirname, '../../../test/personal/erase-until-killed.ts');
const ROWS = 60;

describeDatabases(
  'processes killed with SIGKILL',
  (database) => {
    const fill = async () => {
      const { db } = database;
      for (const { name } of [people, notes, bills]) await db.query(`delete from ${name}`);
      for (const [index, id] of ['ada', 'bob'].entries()) {
        await insert(db, people, { id, name: id });
        const ids = Array.from({ length: ROWS }, (_, n) => index * 1000 + n);
        const at = new Date(db.clock.now().getTime() - (id === 'ada' ? 40 : 10) * 86_400_000);
        await insertMany(
          db,
          notes,
          ids.map((n) => ({ id: n, owner_id: id, at, seen: 0 })),
        );
        await insertMany(
          db,
          bills,
          ids.map((n) => ({ id: n, owner_id: id, address: id })),
        );
      }
      return db;
    };

    test('while they erase a person leave a progress that the next one continues: every row once, none left', async () => {
      const db = await fill();
      const { id } = await db.transaction((tx) => requestErasure(tx, { kind: 'person', id: 'ada' }, { dueAt: db.clock.now(), by: 'test' }));
      // Each gets a little further; the last one is left alone.
      for (const lines of [1, 3, 2, 5].slice(-scaled(2, 4))) {
        await runUntilKilled(PROGRAM, [database.url, id], lines);
        expect((await findErasure(db, id))?.state).toBe('running');
      }
      await runUntilKilled(PROGRAM, [database.url, id], Infinity);
      const erasure = await findErasure(db, id);
      expect(erasure).toMatchObject({
        state: 'finished',
        counts: { people: { delete: 1 }, notes: { delete: ROWS }, bills: { anonymise: ROWS } },
      });
      expect((await list(db, people)).map((row) => row.id)).toEqual(['bob']);
      expect((await list(db, notes, { where: { owner_id: 'ada' } })).length).toBe(0);
      expect((await list(db, notes, { where: { owner_id: 'bob' } })).length).toBe(ROWS);
      expect((await list(db, bills, { where: { owner_id: 'erased', address: null } })).length).toBe(ROWS);
      expect((await list(db, bills, { where: { owner_id: 'bob', address: 'bob' } })).length).toBe(ROWS);
    }, 300_000);

    test('while they apply a retention have done a batch or not: the figures are those of the rows', async () => {
      const db = await fill();
      for (const lines of [1, 4, 2].slice(-scaled(1, 3))) await runUntilKilled(PROGRAM, [database.url, 'retention'], lines);
      const left = (await list(db, notes, { where: { owner_id: 'ada' } })).length;
      expect((await retentionStates(db)).get('notes')?.total_rows).toBe(BigInt(ROWS - left));
      await runUntilKilled(PROGRAM, [database.url, 'retention'], Infinity);
      expect((await list(db, notes)).every(({ owner_id: owner }) => owner === 'bob')).toBe(true);
      expect((await retentionStates(db)).get('notes')?.total_rows).toBe(BigInt(ROWS));
    }, 300_000);
  },
  {
    prepare: async (db) => {
      await migrate(db, [{ name: 'kit', migrations: [changesMigration, erasuresMigration, failedErasures] }]);
      for (const { table } of [people, notes, bills]) for (const sql of tableStatements(table, db.dialect)) await db.query(sql);
    },
  },
);
