import { expect, test } from 'vitest';
import { coreTables } from '../../../app/data/migration-modules.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { createTable, migration, model, t } from '../../index.ts';
import { checkDrift } from '../drift.ts';
import { migrate } from '../migrate.ts';
import { applyTriggers } from './change-triggers.ts';

const columns = { id: t.int().pk(), title: t.text(20), extra: t.json().nullable() };
const notes = { name: 'notes', models: [model('notes', columns)], migrations: [migration('0001_notes', [createTable('notes', columns)])] };
const table = {
  table: 'notes',
  key: { name: 'id', kind: 'int' },
  compared: ['id', 'title', 'extra'],
  logged: [
    { name: 'id', kind: 'int' },
    { name: 'title', kind: 'text' },
  ],
  noted: ['extra'],
} as const;

describeDatabases('a change log that is put in order', (database) => {
  test('keeps its lines and numbers, and triggers go on', async () => {
    const { db } = database;
    const before = (coreTables.migrations ?? []).filter(({ name }) => name < '0008');
    await migrate(db, [{ ...coreTables, models: [], migrations: before }, notes]);
    await applyTriggers(db, [table]);
    await db.query(`insert into notes (id, title) values (1, 'one'), (2, 'two')`);
    await db.query('update notes set title = title || $1', ['!']);
    const read = async () => {
      const rows = await db.query<{ position: unknown }>(
        'select position, token, resource, key, kind, prior, at from kit_changes order by position',
      );
      return rows.map((row) => Object.assign(row, { position: Number(row.position) }));
    };
    const kept = await read();
    expect(kept).toHaveLength(4);
    await migrate(db, [coreTables, notes]);
    expect(await read()).toEqual(kept);
    expect(await checkDrift([coreTables, notes], db)).toEqual({ models: [], database: [], additions: [] });
    // The number of the row is the key.
    const indexes = db.dialect === 'sqlite' ? await db.query(`select name from pragma_index_list('kit_changes')`) : [];
    expect(indexes).toEqual([]);
    await db.query('delete from notes where id = 1');
    expect(await read()).toMatchObject([...kept, { position: 5, resource: 'notes', key: '1', kind: 'changed', prior: { title: 'one!' } }]);
  });
});
