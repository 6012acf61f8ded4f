import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { describeDatabases } from '../testing/databases.ts';
import { t } from './column.ts';
import type { Database, Db } from './db.ts';
import { tableStatements } from './ddl.ts';
import { type ExpectedInsertion, expectedInsertText, expectInsertion } from './expected-insertion.ts';
import { insertAtOnce } from './handle.ts';
import { migrate } from './migrations/migrate.ts';
import { migration } from './migrations/migration.ts';
import { sql } from './migrations/operation.ts';
import { type Model, model } from './model.ts';
import { statementsOf } from './model-statements.ts';
import { quoteName } from './names.ts';
import { openDatabase } from './open-database.ts';
import { insertion } from './repository.ts';
import { isStorableText } from './storable-text.ts';

const samples = model('inserted_samples', {
  id: t.uuid().pk(),
  name: t.text(20).nullable(),
  total: t.bigint().nullable(),
  price: t.decimal(12, 2).nullable(),
  ratio: t.float().nullable(),
  count: t.int().nullable(),
  done: t.bool().nullable(),
  at: t.timestamp().nullable(),
  day: t.date().nullable(),
  data: t.json().nullable(),
  raw: t.bytes().nullable(),
  state: t.enum(['a', 'b']).dbDefault('a'),
  words: t.array(t.text()).nullable(),
  bigs: t.array(t.bigint()).nullable(),
  times: t.array(t.timestamp()).nullable(),
  first: t.int().dbDefault(7),
  open: t.bool().dbDefault(true),
  rate: t.decimal(6, 3).dbDefault('1.5'),
  half: t.float().dbDefault(0.5),
  kind: t.text(20).dbDefault(`it's`),
});

const moments = fc.date({ min: new Date('0001-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true });
const bigs = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const text = fc.string({ maxLength: 10, unit: 'binary' }).filter(isStorableText);
const rows = fc.record(
  {
    id: fc.uuid(),
    name: fc.oneof(text, fc.constantFrom('007', '1e3', '-0', '9007199254740993', 'NULL')),
    total: bigs,
    price: fc.constantFrom('0', '-10.5', '9999999999.99', '1.00', '-0.00'),
    ratio: fc.double({ noNaN: true, noDefaultInfinity: true }),
    count: fc.integer(),
    done: fc.boolean(),
    at: moments,
    day: fc.constantFrom('0001-01-01', '2024-02-29'),
    data: fc.jsonValue().filter((value) => isStorableText(JSON.stringify(value)) && !JSON.stringify(value).includes('\\u')),
    raw: fc.uint8Array({ maxLength: 20 }),
    state: fc.constantFrom('a', 'b'),
    words: fc.array(text, { maxLength: 3 }),
    bigs: fc.array(bigs, { maxLength: 3 }),
    times: fc.array(moments, { maxLength: 3 }),
    first: fc.integer(),
    open: fc.boolean(),
    rate: fc.constantFrom('0', '1.250'),
    half: fc.constantFrom(1, -0, 0.25),
    kind: text,
  },
  { requiredKeys: ['id'] },
);

/** Columns of kinds that PostgreSQL gives back in its own spelling. */
const RESPELT = ['data', 'raw', 'words', 'bigs', 'times'] as const;

function withoutRespelt<V extends object>(of: V): Omit<V, (typeof RESPELT)[number]> {
  return Object.fromEntries(Object.entries(of).filter(([name]) => !(RESPELT as readonly string[]).includes(name))) as Omit<
    V,
    (typeof RESPELT)[number]
  >;
}

/** Inserts a row. Returns it, and whether the database was asked for it. */
async function inserted(db: Db, of: Model, values: object, as?: 'wire') {
  const statements = statementsOf(of);
  const given = insertion(db, statements, values);
  const asked: boolean[] = [];
  const statement = (kind: 'returned' | 'known'): string => {
    asked.push(kind === 'returned');
    const named = kind === 'known' ? statements.columns.map(({ name }) => name) : given.names;
    const places = named.map((_, index) => `$${index + 1}`).join(', ');
    const returning = kind === 'returned' ? ` returning ${statements.list}` : '';
    return `insert into ${statements.table} (${named.map(quoteName).join(', ')}) values (${places})${returning}`;
  };
  const row = await insertAtOnce<Record<string, unknown>>(db, statements, given, statement, as === undefined ? {} : { as });
  return { row, asked };
}

async function read(db: Db, of: Model, id: unknown, as?: 'wire'): Promise<unknown> {
  const { list, table } = statementsOf(of);
  const [row] = await db.query(`select ${list} from ${table} where id = $1`, [id], as === undefined ? {} : { as });
  return row;
}

describeDatabases('a row that was inserted', (database) => {
  const create = async (of: Model) => {
    for (const statement of tableStatements(of.table, database.dialect)) await database.db.query(statement);
  };
  const isAsked = () => [database.dialect === 'postgres'];

  test('is the row that is read, in both forms, whatever its values; SQLite is not asked for it', async () => {
    await create(samples);
    await fc.assert(
      fc.asyncProperty(rows, fc.constantFrom(undefined, 'wire' as const), fc.boolean(), async (values, as, inTransaction) => {
        const insert = (db: Db) => inserted(db, samples, values, as);
        const { row, asked } = await (inTransaction ? database.db.transaction(insert) : insert(database.db));
        const found = await read(database.db, samples, values.id, as);
        expect(row).toEqual(found);
        expect(Object.keys(row)).toEqual(Object.keys(found as object));
        expect(asked).toEqual(isAsked());
        await database.db.query('delete from inserted_samples');
      }),
      { numRuns: 300 },
    );
  });

  test.runIf(database.dialect === 'postgres')('is the row that was expected before it was made, whatever its values', async () => {
    const of = model('expected_samples', withoutRespelt(samples.columns));
    const statements = statementsOf(of);
    await create(of);
    await fc.assert(
      fc.asyncProperty(rows, fc.constantFrom(undefined, 'wire' as const), async (generated, as) => {
        const values = withoutRespelt(generated);
        const given = insertion(database.db, statements, values);
        const expected = expectInsertion(database.db, statements, given, as) as ExpectedInsertion;
        const text = expectedInsertText(database.db, statements, given.names);
        await database.db.transaction(async (tx) => expected.send(tx, text, () => undefined));
        const found = await read(database.db, of, generated.id, as);
        expect(expected.row).toEqual(found);
        expect(Object.keys(expected.row)).toEqual(Object.keys(found as object));
        await database.db.query('delete from expected_samples');
      }),
      { numRuns: 300 },
    );
    // What PostgreSQL spells in its own way is not expected, unless it is NULL.
    for (const name of RESPELT) {
      const one = statementsOf(model('expected_one', { id: t.uuid().pk(), [name]: samples.columns[name] }));
      const expected = (...given: unknown[]) =>
        expectInsertion(database.db, one, { names: ['id', name], parameters: ['x', ...given] })?.row;
      expect([name, expected(new Uint8Array())]).toEqual([name, undefined]);
      expect(expected(null)).toEqual({ id: 'x', [name]: null });
      expect(expectInsertion(database.db, one, { names: ['id'], parameters: ['x'] })?.row).toEqual({ id: 'x', [name]: null });
    }
  });

  test('is asked for where the database makes a value', async () => {
    const made = model('inserted_made', { id: t.uuid().pk(), at: t.timestamp().dbDefault('now'), big: t.bigint().dbDefault(5n) });
    await create(made);
    const id = '00000000-0000-4000-8000-000000000001';
    const { row, asked } = await inserted(database.db, made, { id });
    expect(asked).toEqual([true]);
    expect(row).toEqual(await read(database.db, made, id));
    const second = await inserted(database.db, made, { id: id.replace(/1$/, '2'), at: new Date(0), big: 1n });
    expect(second.asked).toEqual(isAsked());
  });
});

describe('a row inserted into a table that another tool made (sqlite)', () => {
  const id = '00000000-0000-4000-8000-000000000001';
  let db: Database;
  beforeEach(async () => {
    db = await openDatabase('sqlite::memory:');
  });
  afterEach(() => db.close());

  const foreign = async (columns: string, declared: Parameters<typeof model>[1], values: object) => {
    const of = model('inserted_foreign', { id: t.uuid().pk(), ...declared });
    await db.query(`create table inserted_foreign (id uuid_text not null primary key, ${columns})`);
    const { row, asked } = await inserted(db, of, { id, ...values });
    expect(row).toEqual(await read(db, of, id));
    return { row, asked };
  };

  test('is asked for where SQLite may store something else than it was given', async () => {
    const { row, asked } = await foreign('code numeric', { code: t.text(20) }, { code: '007' });
    expect(asked).toEqual([true]);
    expect(row).toMatchObject({ code: 7 });
  });

  test('is asked for where a column that is left out has a default that the model does not know', async () => {
    const { row, asked } = await foreign(`note text default 'from the table'`, { note: t.text().nullable() }, {});
    expect(asked).toEqual([true]);
    expect(row).toMatchObject({ note: 'from the table' });
  });

  test('is asked for where the default is another one than the model has', async () => {
    const { row, asked } = await foreign(`state text not null default 'closed'`, { state: t.text().dbDefault('open') }, {});
    expect(asked).toEqual([true]);
    expect(row).toMatchObject({ state: 'closed' });
  });

  test('is asked for where a column is computed', async () => {
    const columns = { name: t.text(), shout: t.text().nullable() };
    const { row, asked } = await foreign('name text, shout text generated always as (upper(name))', columns, { name: 'ada' });
    expect(asked).toEqual([true]);
    expect(row).toMatchObject({ shout: 'ADA' });
  });

  test('is not asked for where the table is as the model has it', async () => {
    const { asked } = await foreign('code text not null', { code: t.text(20) }, { code: '007' });
    expect(asked).toEqual([false]);
  });

  test('is the row that is read, also after another process has changed a default', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'kit-inserted-'));
    const [own, other] = [await openDatabase(`sqlite:${folder}/a.db`), await openDatabase(`sqlite:${folder}/a.db`)];
    try {
      const of = model('inserted_here', { id: t.uuid().pk(), state: t.text().dbDefault('open'), note: t.text().nullable() });
      await own.query(`create table inserted_here (id uuid_text not null primary key, state text not null default 'open', note text)`);
      expect((await inserted(own, of, { id })).asked).toEqual([false]);
      await other.query('drop table inserted_here');
      await other.query(
        `create table inserted_here (id uuid_text not null primary key, state text not null default 'new', note text default 'new')`,
      );
      const { row } = await inserted(own, of, { id });
      expect(row).toEqual(await read(own, of, id));
    } finally {
      await own.close();
      await other.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test('is asked for again after a migration has changed the table', async () => {
    const of = model('inserted_changed', { id: t.uuid().pk(), note: t.text().nullable() });
    await db.query('create table inserted_changed (id uuid_text not null primary key, note text)');
    expect((await inserted(db, of, { id })).asked).toEqual([false]);
    const change = migration('0001_default', [
      sql({
        sqlite: [
          'drop table inserted_changed',
          `create table inserted_changed (id uuid_text not null primary key, note text default 'new')`,
        ],
        postgres: [],
      }),
    ]);
    await migrate(db, [{ name: 'inserted', models: [], migrations: [change] }]);
    expect(await inserted(db, of, { id })).toMatchObject({ asked: [true], row: { note: 'new' } });
  });
});
