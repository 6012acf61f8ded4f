import fc from 'fast-check';
import { expect, test } from 'vitest';
import { describeDatabases } from '../../testing/databases.ts';
import { t } from '../declare/column.ts';
import type { Db } from '../engine/db.ts';
import { tableStatements } from '../sql/ddl.ts';
import { model } from '../declare/model.ts';
import { openDatabase } from '../open/open-database.ts';
import { isStorableText } from '../values/storable-text.ts';
import { find, insert, insertMany, update } from './repository.ts';

const samples = model('wire_samples', {
  id: t.int().pk(),
  name: t.text(20).nullable(),
  token: t.uuid().nullable(),
  total: t.bigint().nullable(),
  price: t.decimal(12, 2).nullable(),
  ratio: t.float().nullable(),
  done: t.bool().nullable(),
  at: t.timestamp().nullable(),
  day: t.date().nullable(),
  data: t.json().nullable(),
  raw: t.bytes().nullable(),
  state: t.enum(['a', 'b']).nullable(),
  bigs: t.array(t.bigint()).nullable(),
  times: t.array(t.timestamp()).nullable(),
  days: t.array(t.date()).nullable(),
  prices: t.array(t.decimal(5, 1)).nullable(),
  words: t.array(t.text()).nullable(),
  flags: t.array(t.bool()).nullable(),
});

const moments = fc.date({ min: new Date('0001-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true });
const bigs = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const text = fc.string({ maxLength: 10, unit: 'binary' }).filter(isStorableText);
const day = fc.constantFrom('0001-01-01', '2024-02-29', '9999-12-31');
const rows = fc.record(
  {
    name: text,
    token: fc.uuid(),
    total: bigs,
    price: fc.constantFrom('0.00', '-10.50', '9999999999.99'),
    ratio: fc.double({ noNaN: true, noDefaultInfinity: true }).map((each) => each + 0),
    done: fc.boolean(),
    at: moments,
    day,
    data: fc.constantFrom<unknown>({ a: [1, 'x', null] }, [true], 'text', 5),
    raw: fc.uint8Array({ maxLength: 20 }),
    state: fc.constantFrom('a' as const, 'b' as const),
    bigs: fc.array(bigs, { maxLength: 3 }),
    times: fc.array(moments, { maxLength: 3 }),
    days: fc.array(day, { maxLength: 3 }),
    prices: fc.array(fc.constantFrom('0.0', '-1.5'), { maxLength: 3 }),
    words: fc.array(text, { maxLength: 3 }),
    flags: fc.array(fc.boolean(), { maxLength: 3 }),
  },
  { requiredKeys: [] },
);

/** A row in JSON, the way responses are made from rows of code. */
function json(row: unknown): string {
  const result = samples.output['~standard'].validate(row);
  if (result instanceof Promise || result.issues !== undefined) throw new Error('The row does not match its model.');
  return JSON.stringify(result.value);
}

describeDatabases(
  'rows in their wire form',
  (database) => {
    test('are, byte for byte, what the response of the same row is: in queries, transactions, streams and RETURNING', async () => {
      const text = 'select * from wire_samples order by id';
      const expected = (await database.db.query(text)).map(json);
      expect(expected).toHaveLength(200);
      const print = (found: readonly unknown[]): string[] => found.map((row) => JSON.stringify(row));
      expect(print(await database.db.query(text, [], { as: 'wire' }))).toEqual(expected);
      expect(print((await database.db.execute(text, [], { as: 'wire', replanned: true })).rows)).toEqual(expected);
      expect(print(await database.db.query(text, [], { as: 'wire', pipelined: true }))).toEqual(expected);
      expect(print(await database.db.transaction((tx) => tx.query(text, [], { as: 'wire' })))).toEqual(expected);
      const streamed: unknown[] = [];
      for await (const chunk of database.db.stream(text, [], 7, { as: 'wire' })) streamed.push(...chunk);
      expect(print(streamed)).toEqual(expected);
      await database.db.transaction(async (tx) => {
        const inside: unknown[] = [];
        for await (const chunk of tx.stream(text, [], 50, { as: 'wire' })) inside.push(...chunk);
        expect(print(inside)).toEqual(expected);
        // PostgreSQL tells the columns of a statement once per connection.
        for (const _ of [1, 2, 3]) {
          expect(print(await tx.query(text, [], { as: 'wire' }))).toEqual(expected);
          expect((await tx.query(text)).map(json)).toEqual(expected);
        }
      });
      const returned = await database.db.query(`update wire_samples set name = name where id = $1 returning *`, [3], { as: 'wire' });
      expect(print(returned)).toEqual([expected[3]]);
      // The other form is not disturbed.
      expect((await database.db.query(text)).map(json)).toEqual(expected);
    });

    test('are the same in a session of another time zone, and count(*) is a number', async () => {
      const text = 'select * from wire_samples order by id';
      const expected = (await database.db.query(text)).map(json);
      const url = new URL(database.url);
      if (database.dialect === 'postgres') url.searchParams.set('options', '-c TimeZone=Asia/Kolkata');
      const elsewhere = await openDatabase(url.href);
      try {
        expect((await elsewhere.query(text, [], { as: 'wire' })).map((row) => JSON.stringify(row))).toEqual(expected);
        for (const _ of [1, 2, 3, 4])
          for (const options of [{ as: 'wire' } as const, {}])
            expect(
              await elsewhere.query(
                'select count(*) as count, null as empty, 1 as "__proto__" from wire_samples where id >= $1',
                [0],
                options,
              ),
            ).toEqual([JSON.parse('{"count":200,"empty":null,"__proto__":1}')]);
      } finally {
        await elsewhere.close();
      }
    });

    test('a row found with a lock is changed by one transaction at a time', async () => {
      await insert(database.db, samples, { id: 900, total: 0n });
      const add = async (tx: Db): Promise<void> => {
        const row = await find(tx, samples, 900, { lock: true });
        await new Promise<void>((resume) => setImmediate(resume));
        await update(tx, samples, 900, { total: (row?.total ?? 0n) + 1n });
      };
      await Promise.all(Array.from({ length: 12 }, () => database.db.transaction(add)));
      expect(await find(database.db, samples, 900)).toMatchObject({ total: 12n });
      await expect(find(database.db, samples, 900, { lock: true })).rejects.toThrow('needs a transaction');
      await database.db.query('delete from wire_samples where id = 900');
    });
  },
  {
    prepare: async (db) => {
      for (const statement of tableStatements(samples.table, db.dialect)) await db.query(statement);
      await insertMany(
        db,
        samples,
        fc.sample(rows, 200).map((row, id) => Object.assign({}, row, { id })),
      );
    },
  },
);
