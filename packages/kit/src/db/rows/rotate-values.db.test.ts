import { beforeEach, expect, test } from 'vitest';
import { describeDatabases } from '../../testing/databases.ts';
import { t } from '../declare/column.ts';
import { model } from '../declare/model.ts';
import { DataKeys } from '../sealing/data-keys.ts';
import { newKey } from '../sealing/key-list.ts';
import { tableStatements } from '../sql/ddl.ts';
import { find, findBy, insert, insertMany, list, update } from './repository.ts';
import { reveal } from './reveal.ts';
import { keyUses, rotateValues } from './rotate-values.ts';

const people = model(
  'people',
  {
    firm: t.text(20),
    number: t.int(),
    note: t.text(200).nullable().encrypted(),
    code: t.text(20).nullable().unique().encrypted({ search: 'equality' }),
  },
  { primaryKey: ['firm', 'number'] },
);
const [oldKey, currentKey, oldSearch, currentSearch] = [newKey('old'), newKey('new'), newKey('s-old'), newKey('s-new')];
const before = new DataKeys([oldKey], [oldSearch]);
const during = new DataKeys([currentKey, oldKey], [currentSearch, oldSearch]);
const after = new DataKeys([currentKey], [currentSearch]);

describeDatabases(
  'a rotation of data keys',
  (database) => {
    beforeEach(async () => {
      await database.db.query('delete from people');
      const rows = Array.from({ length: 23 }, (_, number) => ({
        firm: `f${number % 3}`,
        number,
        note: `note ${number}`,
        code: `c${number}`,
      }));
      await insertMany(database.db, people, [...rows, { firm: 'none', number: 99 }]);
    });

    test('encrypts every value with the first key, so that the old keys can be removed', async () => {
      const db = await database.open({ dataKeys: during });
      expect(await rotateValues(db, people, { batch: 4 })).toEqual({ rotated: 23, failed: [] });
      expect(await keyUses(db, people, during)).toEqual([
        { column: 'note', key: 'new', values: 23 },
        { column: 'note', key: 'old', values: 0 },
        { column: 'code', key: 'new', values: 23 },
        { column: 'code', key: 'old', values: 0 },
      ]);
      const rotated = await database.open({ dataKeys: after });
      for (const row of await list(rotated, people, { where: { number: { lt: 90 } } }))
        expect([reveal(rotated, people, row, 'note'), reveal(rotated, people, row, 'code')]).toEqual([
          `note ${row.number}`,
          `c${row.number}`,
        ]);
      expect((await findBy(rotated, people, { code: 'c7' }))?.number).toBe(7);
      expect(await rotateValues(db, people, { batch: 4 })).toEqual({ rotated: 0, failed: [] });
    });

    test('that was interrupted continues with what is left, and rotates nothing twice', async () => {
      const db = await database.open({ dataKeys: during });
      const stopped = rotateValues(db, people, {
        batch: 5,
        onBatch: ({ rotated }) => {
          if (rotated === 10) throw new Error('stopped');
        },
      });
      await expect(stopped).rejects.toThrow('stopped');
      const done = await db.query<{ note: string }>("select note from people where note like 'enc1.new.%'");
      expect(done).toHaveLength(10);
      expect((await rotateValues(db, people, { batch: 5 })).rotated).toBe(13);
      for (const { note } of done) expect(await db.query('select 1 as one from people where note = $1', [note])).toHaveLength(1);
    });

    test('leaves a value that a request writes at the same time to the request', async () => {
      const db = await database.open({ dataKeys: during });
      let isFirst = true;
      const key = { firm: 'f0', number: 3 };
      const racing = {
        ...db,
        dialect: db.dialect,
        context: (db as unknown as { context: unknown }).context,
        query: async (text: string, parameters: unknown[]) => {
          const rows = await db.query(text, parameters);
          if (isFirst) await update(database.db, people, key, { note: 'written meanwhile' });
          isFirst = false;
          return rows;
        },
        execute: (text: string, parameters: unknown[]) => db.execute(text, parameters),
      };
      await rotateValues(racing as never, people, { batch: 100 });
      const row = await find(db, people, key);
      expect(reveal(db, people, row as NonNullable<typeof row>, 'note')).toBe('written meanwhile');
      expect((await rotateValues(db, people, { batch: 100 })).rotated).toBe(1);
    });

    test('reports values that cannot be read or are no longer unique, and goes on', async () => {
      const db = await database.open({ dataKeys: during });
      await db.query("update people set note = 'broken' where number = 5");
      await insert(db, people, { firm: 'f0', number: 50, code: 'c8' });
      const { rotated, failed } = await rotateValues(db, people, { batch: 4 });
      expect(rotated).toBe(21);
      expect(failed.map(({ key }) => key)).toEqual(
        expect.arrayContaining([
          ['f2', 5],
          ['f2', 8],
        ]),
      );
      expect(failed.map(({ reason }) => reason).sort()).toEqual([
        '"note" of "people" has a value that is not encrypted. Was it written without the model?',
        'another row has the same value',
      ]);
      expect((await keyUses(db, people, during)).filter(({ key }) => key === null)).toEqual([{ column: 'note', key: null, values: 1 }]);
    });
  },
  {
    database: { dataKeys: before },
    prepare: async (db) => {
      for (const statement of tableStatements(people.table, db.dialect)) await db.query(statement);
    },
  },
);
