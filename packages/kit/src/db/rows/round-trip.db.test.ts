import { kyselyOf, type Tables } from '../kysely/index.ts';
import { deepStrictEqual } from 'node:assert';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { describeDatabases } from '../../testing/databases.ts';
import { t } from '../declare/column.ts';
import type { Db } from '../engine/db.ts';
import { tableStatements } from '../sql/ddl.ts';
import { json } from '../values/json-parameter.ts';
import { model } from '../declare/model.ts';
import { find, insert, list, update } from './repository.ts';
import type { Insert } from '../declare/rows.ts';
import { uuidv7 } from '../values/uuidv7.ts';

const things = model('things', {
  id: t.uuidv7().pk(),
  uuid: t.uuid(),
  label: t.text(),
  short: t.text(8),
  int: t.int(),
  big: t.bigint(),
  price: t.decimal(20, 6),
  ratio: t.float(),
  flag: t.bool(),
  at: t.timestamp(),
  day: t.date(),
  doc: t.json(),
  raw: t.bytes(),
  state: t.enum(['draft', "it's", 'paid']),
  tags: t.array(t.text()),
  bigs: t.array(t.bigint()),
  times: t.array(t.timestamp()),
  prices: t.array(t.decimal(10, 2)),
  flags: t.array(t.bool()),
  counts: t.array(t.int()),
});
const maybes = model('maybes', {
  id: t.uuidv7().pk(),
  label: t.text().nullable(),
  big: t.bigint().nullable(),
  price: t.decimal(20, 6).nullable(),
  flag: t.bool().nullable(),
  at: t.timestamp().nullable(),
  doc: t.json().nullable(),
  raw: t.bytes().nullable(),
  tags: t.array(t.text()).nullable(),
});
type Shop = Tables<{ things: typeof things; maybes: typeof maybes }>;

const prepare = async (db: Db): Promise<void> => {
  for (const each of [things, maybes]) for (const statement of tableStatements(each.table, db.dialect)) await db.query(statement);
};

const text = (maxLength = 40): fc.Arbitrary<string> => fc.string({ unit: 'binary', maxLength }).filter((value) => !value.includes('\0'));
const date = fc.date({ min: new Date('0001-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true });
const big = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.constantFrom(-(2n ** 63n), 2n ** 63n - 1n, 0n, 2n ** 53n + 1n),
);
const decimal = (whole: number, scale: number): fc.Arbitrary<string> =>
  fc
    .tuple(fc.boolean(), fc.bigInt({ min: 0n, max: 10n ** BigInt(whole) - 1n }), fc.bigInt({ min: 0n, max: 10n ** BigInt(scale) - 1n }))
    .map(
      ([negative, before, after]) => `${negative && (before > 0n || after > 0n) ? '-' : ''}${before}.${String(after).padStart(scale, '0')}`,
    );
const jsonValue = fc
  .letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      text(),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(fc.oneof(text(10), fc.constantFrom('__proto__', 'constructor', 'toString')), tie('value'), { maxKeys: 4 }),
    ),
  }))
  .value.map((value) => JSON.parse(JSON.stringify(value)) as unknown);

const row: fc.Arbitrary<Insert<typeof things>> = fc.record({
  uuid: fc.uuid(),
  label: text(),
  short: fc
    .array(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).filter((c) => c !== '\0'),
      { maxLength: 8 },
    )
    .map((parts) => parts.join('')),
  int: fc.integer({ min: -2_147_483_648, max: 2_147_483_647 }),
  big,
  price: decimal(14, 6),
  ratio: fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
  flag: fc.boolean(),
  at: date,
  day: date.map((value) => value.toISOString().slice(0, 10)),
  doc: jsonValue,
  raw: fc.uint8Array({ maxLength: 64 }),
  state: fc.constantFrom('draft', "it's", 'paid'),
  tags: fc.array(text(), { maxLength: 4 }),
  bigs: fc.array(big, { maxLength: 4 }),
  times: fc.array(date, { maxLength: 3 }),
  prices: fc.array(decimal(8, 2), { maxLength: 3 }),
  flags: fc.array(fc.boolean(), { maxLength: 3 }),
  counts: fc.array(fc.integer({ min: -2_147_483_648, max: 2_147_483_647 }), { maxLength: 3 }),
});

describeDatabases(
  'values',
  (database) => {
    test('every kind of value comes back identical: from the insert, a lookup, a hand-built query and inside a transaction', async () => {
      const { db } = database;
      await fc.assert(
        fc.asyncProperty(row, async (values) => {
          const written = await insert(db, things, values);
          // Node's comparison: vitest's trips over data that has a key "constructor".
          deepStrictEqual(written, { id: written.id, ...values });
          deepStrictEqual(await find(db, things, written.id), written);
          const selected = await kyselyOf<Shop>(db)
            .selectFrom('things as thing')
            .selectAll()
            .where('thing.id', '=', written.id)
            .executeTakeFirst();
          deepStrictEqual(selected, written);
          const inside = await db.transaction((tx) => tx.query('select x.* from (select * from things) x where x.id = $1', [written.id]));
          deepStrictEqual(inside, [written]);
        }),
        { numRuns: 150 },
      );
    });

    test('values written by a hand-built query come back identical too', async () => {
      const { db } = database;
      await fc.assert(
        fc.asyncProperty(row, async (values) => {
          const id = uuidv7();
          const { doc, ...rest } = values;
          await kyselyOf<Shop>(db)
            .insertInto('things')
            .values({ ...rest, id, doc: json(doc) })
            .execute();
          const read = await find(db, things, id);
          deepStrictEqual(read, { id, ...values });
        }),
        { numRuns: 50 },
      );
    });

    test.each([[null], ['text'], ['null'], ['123'], [0], [1.5], [true], [false], [[]], [[1, [null]]], [{}], [{ a: null }]])(
      'the JSON value %j is kept as itself at the top level',
      async (doc) => {
        const base = fc.sample(row, { numRuns: 1, seed: 7 })[0] as Insert<typeof things>;
        const written = await insert(database.db, things, { ...base, doc });
        expect(written.doc).toStrictEqual(doc);
        expect((await update(database.db, things, written.id, { doc }))?.doc).toStrictEqual(doc);
      },
    );

    test('null in a nullable JSON column is SQL NULL; in a column that cannot be NULL it is JSON null', async () => {
      const { id } = await insert(database.db, maybes, { doc: null });
      expect(await database.db.query('select id from maybes where doc is null and id = $1', [id])).toHaveLength(1);
      const base = fc.sample(row, { numRuns: 1, seed: 7 })[0] as Insert<typeof things>;
      const thing = await insert(database.db, things, { ...base, doc: null });
      expect(await database.db.query('select id from things where doc is not null and id = $1', [thing.id])).toHaveLength(1);
    });

    test('nested __proto__ is data and pollutes nothing', async () => {
      const doc = JSON.parse('{"__proto__": {"polluted": true}, "a": {"__proto__": 1}}') as object;
      const { id } = await insert(database.db, maybes, { doc });
      const read = await find(database.db, maybes, id);
      deepStrictEqual(read?.doc, doc);
      expect(Object.hasOwn(read?.doc, '__proto__')).toBe(true);
      expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    });

    test('keys of JSON come back as they were, after any other keys (nodejs/node#63785)', async () => {
      await insert(database.db, maybes, { doc: { after: 1, '\\': 2 } });
      const doc = { after: 1, '\n': { after: 1, '"': 2 } };
      const { id, doc: written } = await insert(database.db, maybes, { doc });
      deepStrictEqual([written, (await find(database.db, maybes, id))?.doc], [doc, doc]);
    });

    test('absent nullable columns are null', async () => {
      const written = await insert(database.db, maybes, {});
      expect(written).toStrictEqual({
        id: written.id,
        label: null,
        big: null,
        price: null,
        flag: null,
        at: null,
        doc: null,
        raw: null,
        tags: null,
      });
    });

    test('decimals have one spelling, whichever way they were written', async () => {
      for (const [given, kept] of [
        ['1.5', '1.500000'],
        ['-0', '0.000000'],
        ['007', '7.000000'],
        ['-0.1', '-0.100000'],
      ] as const) {
        const { id } = await insert(database.db, maybes, { price: given });
        expect((await find(database.db, maybes, id))?.price).toBe(kept);
        await kyselyOf<Shop>(database.db).updateTable('maybes').set({ price: given }).where('id', '=', id).execute();
        expect((await find(database.db, maybes, id))?.price).toBe(kept);
      }
    });

    test.each([
      ['price', '1.1234567'],
      ['price', '123456789012345.0'],
      ['price', 'NaN'],
      ['label', 'a\0b'],
      ['label', '\ud800'],
      ['doc', { deep: ['\0'] }],
      ['doc', { '\ud800': 1 }],
      ['at', new Date(Number.NaN)],
      ['at', new Date('+010000-01-01T00:00:00Z')],
      ['big', 2n ** 63n],
    ])('%s refuses %o with a sentence and writes nothing', async (column, value) => {
      await expect(insert(database.db, maybes, { [column]: value })).rejects.toMatchObject({ code: 'value_not_storable', status: 422 });
    });

    test('a backslash before u0000 in JSON text is ordinary data', async () => {
      const doc = { path: String.raw`C:\u0000`, twice: String.raw`\\ud800` };
      expect((await insert(database.db, maybes, { doc })).doc).toStrictEqual(doc);
    });

    test('count(*) and sums are numbers on both', async () => {
      const [row] = await database.db.query('select count(*) as n, 2 + 1 as three from maybes');
      expect(row).toMatchObject({ n: expect.any(Number), three: 3 });
    });

    test('text sorts by code point and NULLs come last, ascending and descending', async () => {
      const labels = ['b', 'a', 'B', 'é', 'Z', '_', '😀', '\uffee'];
      await database.db.query('delete from maybes');
      for (const label of labels) await insert(database.db, maybes, { label });
      await insert(database.db, maybes, { label: null });
      const byCodePoint = labels.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      expect((await list(database.db, maybes, { orderBy: ['label'] })).map((each) => each.label)).toEqual([...byCodePoint, null]);
      expect((await list(database.db, maybes, { orderBy: ['-label'] })).map((each) => each.label)).toEqual([
        ...byCodePoint.toReversed(),
        null,
      ]);
    });

    test('decimals sort by value', async () => {
      await database.db.query('delete from maybes');
      for (const price of ['10.000000', '9.000000', '-1.000000', '100.500000']) await insert(database.db, maybes, { price });
      const prices = (await list(database.db, maybes, { orderBy: ['price'] })).map((each) => each.price);
      expect(prices).toEqual(['-1.000000', '9.000000', '10.000000', '100.500000']);
    });
  },
  { prepare },
);
