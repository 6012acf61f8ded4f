import { kyselyOf, type Tables, whereExpression } from '../../kysely/index.ts';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeDatabases } from '../../../testing/databases.ts';
import { t } from '../../declare/column.ts';
import type { Database } from '../../engine/db.ts';
import { tableStatements } from '../ddl.ts';
import { model } from '../../declare/model.ts';
import { openDatabase } from '../../open/open-database.ts';
import { scaled } from '../../../../../../test/provision/scale.ts';
import { countQueries } from '../../engine/query-observer.ts';
import { count, findBy, insert, insertMany, list } from '../../rows/repository.ts';
import type { Row } from '../../declare/rows.ts';
import { compileWhere, type CompiledWhere } from './compile-where.ts';
import type { ThreeValued } from './evaluate-where.ts';
import { whereSql } from './where-sql.ts';
import type { Where, WhereRelations } from './where.ts';

/** Pairs of a tree and a row. */
const cases = scaled(20_000, 1_000_000);
const seed = Number(process.env['KIT_WHERE_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

const samples = model('samples', {
  id: t.int().pk(),
  name: t.text(20),
  note: t.text().nullable(),
  price: t.decimal(12, 2).nullable(),
  mass: t.decimal(40, 10).nullable(),
  size: t.int().nullable(),
  total: t.bigint().nullable(),
  ratio: t.float().nullable(),
  done: t.bool().nullable(),
  state: t.enum(['new', 'open', 'Done']).nullable(),
  token: t.uuid().nullable(),
  at: t.timestamp().nullable(),
  day: t.date().nullable(),
  raw: t.bytes().nullable(),
  data: t.json().nullable(),
});
type Sample = Row<typeof samples>;
type Columns = typeof samples.columns;

// Few values per column, so that equality, order and near misses all happen.
const texts = ['', 'a', 'A', 'aB', 'ab%', 'a_b', 'b', 'ß', 'İ', 'K', 'é', 'e\u0301', '\uFFFD', '\uE000', '😀', '😀b', "a'b", 'a\\'];
const values = {
  name: fc.constantFrom(...texts),
  note: fc.constantFrom(...texts),
  price: fc.constantFrom('0.00', '9.50', '10.00', '-9.50', '-10.00', '-0.01', '0.01', '9999999999.99', '-9999999999.99', '100.00'),
  mass: fc.constantFrom(
    '0.0000000000',
    '999999999999999999999999999999.9999999999',
    '-999999999999999999999999999999.9999999999',
    '123456789012345678.0000000001',
    '123456789012345678.0000000002',
    '-123456789012345678.0000000001',
    '99999999.0000000000',
    '-99999999.0000000001',
  ),
  size: fc.constantFrom(-2_147_483_648, -1, 0, 1, 2, 2_147_483_647),
  total: fc.constantFrom(-(2n ** 63n), -1n, 0n, 9_007_199_254_740_993n, 9_007_199_254_740_992n, 2n ** 63n - 1n),
  ratio: fc.constantFrom(0, 0.1, 0.30000000000000004, 0.3, -1.5e300, 5e-324, 1e21),
  done: fc.boolean(),
  state: fc.constantFrom('new' as const, 'open' as const, 'Done' as const),
  token: fc.constantFrom(
    '00000000-0000-7000-8000-000000000000',
    'FFFFFFFF-ffff-7fff-8fff-ffffffffffff',
    '0a000000-0000-7000-8000-000000000000',
  ),
  at: fc.constantFrom(
    new Date('0001-01-01T00:00:00.000Z'),
    new Date('2026-03-29T02:30:00.000+01:00'),
    new Date('2026-03-29T01:30:00.001Z'),
    new Date('2026-03-29T07:00:00.000+05:30'),
    new Date('9999-12-31T23:59:59.999Z'),
  ),
  day: fc.constantFrom('0001-01-01', '2024-02-29', '2026-03-29', '9999-12-31'),
  raw: fc.constantFrom(new Uint8Array(), new Uint8Array([0]), new Uint8Array([255, 0])),
  data: fc.constantFrom<unknown>({ a: 1 }, [1], 'text', false),
};
type Name = keyof typeof values;
const names = Object.keys(values) as Name[];

const rows = fc.record(
  Object.fromEntries(
    names.map((name) => [name, name === 'name' ? values[name] : fc.option(values[name] as fc.Arbitrary<unknown>, { freq: 5 })]),
  ),
) as fc.Arbitrary<Omit<Sample, 'id'>>;

function condition(name: Name): fc.Arbitrary<unknown> {
  const value = values[name] as fc.Arbitrary<unknown>;
  const isNull = fc.record({ isnull: fc.boolean() });
  if (name === 'data') return fc.oneof(isNull, fc.constant(null));
  const equal = fc.oneof(
    value,
    fc.constant(null),
    fc.record({ eq: fc.option(value, { freq: 5 }) }),
    fc.record({ ne: fc.option(value, { freq: 5 }) }),
    fc.record({ in: fc.array(value, { maxLength: 5 }) }),
    fc.record({ nin: fc.array(value, { maxLength: 5 }) }),
    isNull,
  );
  if (name === 'done' || name === 'raw') return equal;
  const order = fc.record({ gt: value, gte: value, lt: value, lte: value }, { requiredKeys: [] });
  const ordered = fc.oneof(
    equal,
    order.filter((each) => Object.keys(each).length > 0),
  );
  if (name !== 'name' && name !== 'note') return ordered;
  const text = fc.record({ contains: value, starts: value, ends: value }, { requiredKeys: [] });
  return fc.oneof(
    ordered,
    text.filter((each) => Object.keys(each).length > 0),
  );
}

const leaf = fc.oneof(...names.map((name) => condition(name).map((each) => ({ [name]: each }))));
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    leaf,
    fc.tuple(leaf, leaf).map(([a, b]) => Object.assign({}, a, b)),
    fc.record({ and: fc.array(tie('tree'), { maxLength: 3 }) }),
    fc.record({ or: fc.array(tie('tree'), { maxLength: 3 }) }),
    fc.record({ not: tie('tree') }),
  ),
}));

const TREES_PER_STATEMENT = 50;
const ROWS = 40;
const ROWS_PER_STATEMENT = 10;

/** What the database makes of each tree on each row: one statement, one column per tree. */
async function inDatabase(
  db: Database,
  trees: readonly CompiledWhere[],
  rows: readonly Sample[],
): Promise<ReadonlyMap<number, readonly ThreeValued[]>> {
  const parameters: unknown[] = [];
  const columns = trees.map((each, index) => `(${each.append(db.dialect, 's', parameters)}) as c${index}`);
  const found = await db.query<Record<string, unknown>>(
    `select s.id, ${columns.join(', ')} from samples s where s.id between $${parameters.push(rows[0]?.id)} and $${parameters.push(rows.at(-1)?.id)}`,
    parameters,
    {
      replanned: true,
    },
  );
  return new Map(
    found.map((row) => [
      row['id'] as number,
      trees.map((_, index) => {
        const value = row[`c${index}`];
        return value === null ? null : Boolean(value);
      }),
    ]),
  );
}

describeDatabases(
  'a tree of conditions',
  (database) => {
    let stored: Sample[];
    let elsewhere: Database;
    const zone = process.env['TZ'];

    beforeAll(async () => {
      const generated = fc.sample(rows, { numRuns: ROWS, seed });
      stored = await insertMany(
        database.db,
        samples,
        generated.map((row, id) => Object.assign(row, { id })),
      );
      const url = new URL(database.url);
      // A session and a process of another time zone must see the same moments.
      if (database.dialect === 'postgres') url.searchParams.set('options', '-c TimeZone=Asia/Kolkata');
      process.env['TZ'] = 'America/New_York';
      elsewhere = await openDatabase(url.href);
    });
    afterAll(async () => {
      if (zone === undefined) delete process.env['TZ'];
      else process.env['TZ'] = zone;
      await elsewhere.close();
    });

    test(
      '11: means the same in SQL and in JavaScript, unknown included',
      async () => {
        for (let done = 0; done < cases; done += TREES_PER_STATEMENT * ROWS_PER_STATEMENT) {
          const start = (done / TREES_PER_STATEMENT) % ROWS;
          const chosen = stored.slice(start, start + ROWS_PER_STATEMENT);
          const trees = fc.sample(tree, { numRuns: TREES_PER_STATEMENT, seed: seed + done });
          const compiled = trees.map((each) => compileWhere(samples, each as Where<Columns>));
          const found = await inDatabase(elsewhere, compiled, chosen);
          for (const row of chosen) {
            const expected = compiled.map((each) => each.matches(row));
            const actual = found.get(row.id) ?? [];
            const wrong = expected.findIndex((value, index) => value !== actual[index]);
            if (wrong === -1) continue;
            const print = (value: unknown): string =>
              JSON.stringify(value, (_key, item: unknown) => (typeof item === 'bigint' ? `${item}n` : item));
            throw new Error(
              `seed ${seed}: the database says ${actual[wrong]}, JavaScript ${expected[wrong]} for ${print(trees[wrong])} on ${print(row)}: ${compiled[wrong]?.text(database.dialect, 's', 1)}`,
            );
          }
        }
      },
      Math.max(60_000, cases),
    );

    test('trees of one shape share their text, whatever their values', async () => {
      const texts = new Map<string, Set<string>>();
      for (const each of fc.sample(tree, { numRuns: 5_000, seed })) {
        const compiled = compileWhere(samples, each as Where<Columns>);
        const known = texts.get(compiled.shape) ?? new Set();
        texts.set(compiled.shape, known.add(compiled.text(database.dialect, 's', 3)));
      }
      expect([...texts.values()].filter((each) => each.size > 1)).toEqual([]);
      expect(texts.size).toBeLessThan(4_000);
      const shapeOf = (size: number): string => compileWhere(samples, { size: { in: Array.from({ length: size }, (_, n) => n) } }).shape;
      expect(shapeOf(65)).toBe(shapeOf(100));
      expect(new Set(Array.from({ length: 100 }, (_, n) => shapeOf(n + 1))).size).toBe(8);
    });

    test('a list of any length is the same condition: 70,000 values of a column that names rows, 1,001 of any other', async () => {
      const rows = await list(database.db, samples, {});
      const found = async (where: Where<Columns>) =>
        (await list(database.db, samples, { where })).map(({ id }) => id).toSorted((a, b) => a - b);
      let compared = 0;
      for (const name of ['id', 'name', 'note', 'price', 'size', 'total', 'state', 'token', 'at', 'day'] as const) {
        const given = [...new Map(rows.map((row) => [String(row[name]), row[name]])).values()].filter((value) => value !== null);
        const short = given.slice(0, Math.max(1, Math.floor(given.length / 2)));
        if (short.length === 0) continue;
        const names = ['id', 'name', 'token'].includes(name);
        for (const operator of ['in', 'nin'] as const) {
          const length = names && operator === 'in' ? 70_000 : 1_001;
          const long = Array.from({ length }, (_, index) => short[index % short.length]);
          expect(await found({ [name]: { [operator]: long } } as Where<Columns>), `${name} ${operator}`).toEqual(
            await found({ [name]: { [operator]: short } } as Where<Columns>),
          );
        }
        compared += 1;
      }
      expect(compared).toBe(10);
      // Another condition beside it keeps its own place among the parameters.
      const ids = Array.from({ length: 40_000 }, (_, index) => index);
      expect(await found({ and: [{ name: 'a' }, { id: { in: ids } }, { size: { isnull: false } }] } as Where<Columns>)).toEqual(
        await found({ and: [{ name: 'a' }, { size: { isnull: false } }] } as Where<Columns>),
      );
    });

    test('decimals are compared by value, also when a statement by hand stored fewer digits', async () => {
      await database.db.query(`insert into samples (id, name, price, mass) values (900, 'hand', '9.5', '-7'), (901, 'hand', '10', '7.5')`);
      const found = async (where: Where<Columns>): Promise<number[]> =>
        (await list(database.db, samples, { where: { and: [{ name: 'hand' }, where] }, orderBy: ['id'] })).map(({ id }) => id);
      expect(await found({ price: { lt: '10.00' } })).toEqual([900]);
      expect(await found({ price: '9.50' })).toEqual([900]);
      expect(await found({ mass: { gt: '-7.0000000001' } })).toEqual([900, 901]);
      expect(await found({ mass: { in: ['7.5'] } })).toEqual([901]);
      await database.db.query(`delete from samples where name = 'hand'`);
    });

    test('composes with a statement by hand, with Kysely and with the repository', async () => {
      const where = { or: [{ note: { contains: 'A' } }, { size: { gte: 1, lte: 2 } }] } satisfies Where<Columns>;
      const matching = stored.filter((row) => compileWhere(samples, where).matches(row) === true).map(({ id }) => id);
      const byBuilder = await kyselyOf<Tables<{ samples: typeof samples }>>(database.db)
        .selectFrom('samples as s')
        .select('s.id')
        .where('s.id', '>=', 0)
        .where(whereExpression(database.db, samples, where, 's'))
        .orderBy('s.id')
        .execute();
      expect(byBuilder.map(({ id }) => id)).toEqual(matching);
      expect((await list(database.db, samples, { where, orderBy: ['id'] })).map(({ id }) => id)).toEqual(matching);
      expect(await count(database.db, samples, where)).toBe(matching.length);
    });

    test('a value that no row can have finds nothing; a condition that is undefined is refused', async () => {
      expect(await findBy(database.db, samples, { token: 'nonsense' })).toBeUndefined();
      expect(await count(database.db, samples, { name: 'x'.repeat(21) })).toBe(0);
      await expect(list(database.db, samples, { where: { not: { token: 'nonsense' } } })).rejects.toMatchObject({ code: 'invalid_where' });
      const { count: statements } = await countQueries(() =>
        expect(findBy(database.db, samples, { token: undefined } as never)).rejects.toMatchObject({ code: 'invalid_where', status: 500 }),
      );
      expect(statements).toBe(0);
    });
  },
  {
    prepare: async (db) => {
      for (const statement of tableStatements(samples.table, db.dialect)) await db.query(statement);
    },
  },
);

const teams = model('teams', { id: t.uuidv7().pk(), name: t.text(20), hidden: t.bool() });
const people = model('people', {
  id: t.int().pk(),
  team_id: t.ref(() => teams).nullable(),
  name: t.text(20),
  left_at: t.date().nullable(),
});

const relations: WhereRelations = (name, from) => {
  if (from.name === 'people' && name === 'team') return { kind: 'one', model: teams, column: 'team_id', where: { hidden: false } };
  if (from.name === 'teams' && name === 'members') return { kind: 'many', model: people, column: 'team_id', where: { left_at: null } };
  return undefined;
};

describeDatabases(
  'conditions on relations',
  (database) => {
    const { dialect } = database;
    const db = (): Database => database.db;
    const select = async (from: typeof teams | typeof people, where: unknown): Promise<unknown[]> => {
      const parameters: unknown[] = ['ignored'];
      const compiled = compileWhere(from as typeof teams, where as Where<typeof teams.columns>, relations);
      expect(compiled.isEvaluable).toBe(false);
      const text = compiled.append(dialect, 'r', parameters);
      const cast = dialect === 'postgres' ? '$1::text' : '$1';
      const found = await db().query<{ name: string }>(
        `select name from ${from.name} r where ${cast} <> '' and ${text} order by name`,
        parameters,
      );
      return found.map(({ name }) => name);
    };

    test('only rows that exist for the caller count, and unknown is not a match', async () => {
      const red = await insert(db(), teams, { name: 'red', hidden: false });
      const grey = await insert(db(), teams, { name: 'grey', hidden: true });
      await insert(db(), teams, { name: 'blue', hidden: false });
      await insertMany(db(), people, [
        { id: 1, name: 'ann', team_id: red.id },
        { id: 2, name: 'bob', team_id: grey.id },
        { id: 3, name: 'cid', team_id: red.id, left_at: '2026-01-01' },
        { id: 4, name: 'dan' },
      ]);
      expect(await select(people, { team: { is: {} } })).toEqual(['ann', 'cid']);
      expect(await select(people, { not: { team: { is: { name: 'red' } } } })).toEqual(['bob', 'dan']);
      expect(await select(teams, { members: { some: {} } })).toEqual(['grey', 'red']);
      expect(await select(teams, { members: { none: { name: { starts: 'A' } } } })).toEqual(['blue', 'grey']);
      expect(await select(teams, { members: { some: { team: { is: { members: { some: { name: 'ann' } } } } } } })).toEqual(['red']);
    });

    test('whereSql has its own placeholders and names columns of the row', async () => {
      const where = {
        or: [
          { name: 'blue' },
          whereSql("exists (select 1 from people p where p.team_id = this.id and p.name in ($2, $1) and $1 <> '$2')", ['bob', 'x']),
        ],
      };
      expect(await select(teams, where)).toEqual(['blue', 'grey']);
      const expression = whereExpression(db(), teams, where as Where<typeof teams.columns>);
      const found = await kyselyOf<Tables<{ teams: typeof teams }>>(db())
        .selectFrom('teams')
        .select('name')
        .where(expression)
        .orderBy('name')
        .execute();
      expect(found.map(({ name }) => name)).toEqual(['blue', 'grey']);
    });
  },
  {
    prepare: async (db) => {
      for (const each of [teams, people]) for (const statement of tableStatements(each.table, db.dialect)) await db.query(statement);
    },
  },
);
