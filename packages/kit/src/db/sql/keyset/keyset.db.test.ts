import fc from 'fast-check';
import { expect, test } from 'vitest';
import { describeDatabases } from '../../../testing/databases.ts';
import { t } from '../../declare/column.ts';
import type { Database } from '../../engine/db.ts';
import { tableStatements } from '../ddl.ts';
import { model } from '../../declare/model.ts';
import { insert, insertMany, remove } from '../../rows/repository.ts';
import type { Row } from '../../declare/rows.ts';
import { countUpTo, estimateCount } from '../../rows/count-rows.ts';
import { Cursors } from './cursor.ts';
import { type Keyset, keysetOf, keysetPage, type KeysetStart } from './keyset.ts';

const items = model(
  'items',
  {
    id: t.int().pk(),
    owner_id: t.int(),
    rank: t.int(),
    title: t.text(20),
    note: t.text(20).nullable(),
    price: t.decimal(12, 2).nullable(),
    mass: t.decimal(30, 10),
    total: t.bigint().nullable(),
    ratio: t.float().nullable(),
    at: t.timestamp(),
    done_at: t.timestamp().nullable(),
    day: t.date().nullable(),
    token: t.uuid().nullable(),
    state: t.enum(['b', 'a']).nullable(),
  },
  { indexes: [{ columns: ['owner_id', '-at', '-id'] }] },
);
type Item = Row<typeof items>;

const pick = <V>(values: readonly V[]): fc.Arbitrary<V> => fc.constantFrom(...values);
const nullable = <V>(values: readonly V[]): fc.Arbitrary<V | null> => fc.option(pick(values), { freq: 3 });
const rows = fc.record({
  owner_id: fc.constant(1),
  rank: pick([1, 2, 3]),
  title: pick(['', 'a', 'B', '😀', '\uFFFD']),
  note: nullable(['x', 'y']),
  price: nullable(['9.50', '10.00', '-9.50', '-10.00', '0.00']),
  mass: pick(['12345678901234567890.0000000001', '12345678901234567890.0000000002', '-1.0000000000', '9.0000000000']),
  total: nullable([9_007_199_254_740_993n, 9_007_199_254_740_992n, -1n]),
  ratio: nullable([0.1, 0.30000000000000004, -2]),
  at: pick([new Date('2026-01-01T00:00:00.001Z'), new Date('2026-01-01T00:00:00.002Z'), new Date('0001-01-01T00:00:00Z')]),
  done_at: nullable([new Date('2026-01-01T00:00:00.001Z'), new Date('9999-12-31T23:59:59.999Z')]),
  day: nullable(['2024-02-29', '2026-01-01']),
  token: nullable(['0a000000-0000-7000-8000-000000000000', 'ffffffff-ffff-7fff-8fff-ffffffffffff']),
  state: nullable(['a' as const, 'b' as const]),
});
const columns = ['id', 'rank', 'title', 'note', 'price', 'mass', 'total', 'ratio', 'at', 'done_at', 'day', 'token', 'state'];
const orderings = fc
  .uniqueArray(pick(columns), { maxLength: 3 })
  .chain((names) => fc.tuple(...names.map((name) => fc.boolean().map((descending) => (descending ? `-${name}` : name)))));

const cursors = new Cursors([new Uint8Array(32).fill(7)]);

interface Step {
  readonly ids: readonly number[];
  readonly next: string | undefined;
  readonly previous: string | undefined;
}

/** One page as a list would read it: through a cursor that leaves the process. */
async function readPage(db: Database, keyset: Keyset, limit: number, cursor?: string): Promise<Step> {
  const content = cursor === undefined ? undefined : cursors.read(cursor, keyset.shape);
  if (cursor !== undefined && content === undefined) throw new Error('The cursor was refused.');
  const parameters: unknown[] = [1];
  const backwards = content?.backwards ?? false;
  const after = content === undefined ? '' : ` and ${keyset.append(db.dialect, content, parameters)}`;
  const text = `select i.* from items i where i.owner_id = $1${after} order by ${keyset.orderSql(db.dialect, backwards)} limit $${parameters.push(limit + 1)}`;
  const found = await db.query<Item>(text, parameters);
  const page = keysetPage(keyset, found, { limit, from: content });
  const write = (start: KeysetStart | undefined): string | undefined =>
    start === undefined ? undefined : cursors.write({ ...start, count: null }, keyset.shape);
  return { ids: page.rows.map(({ id }) => id), next: write(page.next), previous: write(page.previous) };
}

async function walk(db: Database, keyset: Keyset, limit: number): Promise<{ forward: number[]; back: number[] }> {
  const forward: number[] = [];
  let page = await readPage(db, keyset, limit);
  forward.push(...page.ids);
  while (page.next !== undefined) {
    page = await readPage(db, keyset, limit, page.next);
    forward.push(...page.ids);
  }
  const back = [...page.ids];
  while (page.previous !== undefined) {
    page = await readPage(db, keyset, limit, page.previous);
    back.unshift(...page.ids);
  }
  return { forward, back };
}

describeDatabases(
  'pages by keyset',
  (database) => {
    const wholeOrder = async (keyset: Keyset): Promise<number[]> => {
      const text = `select i.id from items i where i.owner_id = 1 order by ${keyset.orderSql(database.dialect)}`;
      return (await database.db.query<{ id: number }>(text)).map(({ id }) => id);
    };

    test('walk a list of ties and NULLs completely, without repeats, forward and back, in any ordering', async () => {
      for (const order of fc.sample(orderings, 60)) {
        const keyset = keysetOf(items, order, 'i');
        const all = await wholeOrder(keyset);
        expect(all).toHaveLength(250);
        const { forward, back } = await walk(database.db, keyset, 37);
        expect(forward, `forward by ${order.join()}`).toEqual(all);
        expect(back, `back by ${order.join()}`).toEqual(all);
      }
    });

    test.each([['rank'], ['-rank'], ['note'], ['-note'], ['-note', 'price']])('limit 7 by %s', async (...order) => {
      const keyset = keysetOf(
        items,
        order.flat().filter((each) => typeof each === 'string'),
        'i',
      );
      const all = await wholeOrder(keyset);
      expect(await walk(database.db, keyset, 7)).toEqual({ forward: all, back: all });
    });

    test('rows that come and go between pages cause no repeat of another and no gap', async () => {
      const keyset = keysetOf(items, ['-rank'], 'i');
      const untouched = await wholeOrder(keyset);
      const seen: number[] = [];
      let page = await readPage(database.db, keyset, 40);
      seen.push(...page.ids);
      const [sample] = await database.db.query<Item>('select * from items limit 1');
      for (let id = 1000; page.next !== undefined; id++) {
        await insert(database.db, items, { ...(sample as Item), id, rank: 1 + (id % 3) });
        if (id > 1001) await remove(database.db, items, id - 2);
        page = await readPage(database.db, keyset, 40, page.next);
        seen.push(...page.ids);
      }
      await database.db.query('delete from items where id between 1000 and 1999');
      expect(seen.filter((id) => id < 1000)).toEqual(untouched);
    });

    test('an empty page leads to every row on the other side of its position, in any ordering', async () => {
      for (const order of fc.sample(orderings, 15)) {
        const keyset = keysetOf(items, order, 'i');
        const all = await wholeOrder(keyset);
        const [first] = await database.db.query<Item>('select * from items where id = $1', [all[0]]);
        const [last] = await database.db.query<Item>('select * from items where id = $1', [all.at(-1)]);
        const from = (row: Item | undefined, backwards: boolean) =>
          cursors.write({ position: keyset.positionOf(row as Item), backwards, count: null }, keyset.shape);
        const beforeAll = await readPage(database.db, keyset, 300, from(first, true));
        expect([beforeAll.ids, beforeAll.previous], `before the first by ${order.join()}`).toEqual([[], undefined]);
        expect((await readPage(database.db, keyset, 300, beforeAll.next)).ids).toEqual(all);
        const afterAll = await readPage(database.db, keyset, 300, from(last, false));
        expect([afterAll.ids, afterAll.next], `after the last by ${order.join()}`).toEqual([[], undefined]);
        expect((await readPage(database.db, keyset, 300, afterAll.previous)).ids).toEqual(all);
      }
    });

    test('a page far into the list reads the index from its place, without sorting or an offset', async () => {
      const keyset = keysetOf(items, ['-at', '-id'], 'i');
      const parameters: unknown[] = [2];
      const position = ['2026-01-01T00:30:00.000Z', 3_000];
      const condition = keyset.append(database.dialect, { position, backwards: false }, parameters);
      const text = `select i.* from items i where i.owner_id = $1 and ${condition} order by ${keyset.orderSql(database.dialect)} limit 21`;
      const explain = database.dialect === 'sqlite' ? 'explain query plan' : 'explain';
      const plan = JSON.stringify(await database.db.query(`${explain} ${text}`, parameters));
      expect(plan).toContain('items_owner_id_at_id_index');
      expect(plan).toMatch(database.dialect === 'sqlite' ? /owner_id=\? AND at<\?/ : /Index Cond: .*ROW\(.*at, id\) < ROW/);
      expect(plan).not.toMatch(/sort|temp b-tree/i);
    });

    test('positions of one shape share their text', () => {
      const keyset = keysetOf(items, ['note', '-price'], 'i');
      const text = (position: readonly unknown[]): string => keyset.text(database.dialect, { position, backwards: false }, 4);
      expect(keyset.positionShape(['a', '1.00', 1])).toBe(keyset.positionShape(['b', '2.00', 7]));
      expect(text(['a', '1.00', 1])).toBe(text(['b', '2.00', 7]));
      expect(keyset.positionShape(['a', null, 1])).not.toBe(keyset.positionShape(['a', '1.00', 1]));
      expect(keyset.accepts(['a', null, 1])).toBe(true);
      expect(keyset.accepts(['a', 'ten', 1])).toBe(false);
      expect(keyset.accepts(['a', null, null])).toBe(false);
      expect(keyset.accepts(['a'])).toBe(false);
    });

    test('counting stops at its limit, and an estimate comes from the statistics', async () => {
      const source = { from: 'from items i where i.owner_id = $1', parameters: [1] };
      expect(await countUpTo(database.db, source, 250)).toBe(250);
      expect(await countUpTo(database.db, source, 249)).toBeNull();
      expect(await estimateCount(database.db, 'nowhere')).toBeUndefined();
      await database.db.query('analyze');
      expect(await estimateCount(database.db, 'items')).toBe(4_250);
      // An index of some of the rows has statistics of its own.
      await database.db.query('create index items_some on items (rank) where owner_id = 1');
      await database.db.query('analyze');
      expect(await estimateCount(database.db, 'items')).toBe(4_250);
      await database.db.query('drop index items_some');
      const matching = await estimateCount(database.db, 'items', source);
      expect(matching === undefined ? 'sqlite' : 'postgres').toBe(database.dialect);
      expect(matching ?? 250).toBeGreaterThan(150);
      expect(matching ?? 250).toBeLessThan(350);
    });
  },
  {
    prepare: async (db) => {
      for (const statement of tableStatements(items.table, db.dialect)) await db.query(statement);
      const listed = fc.sample(rows, 250).map((row, id) => Object.assign(row, { id }));
      const start = Date.parse('2026-01-01T00:00:00Z');
      const filler = fc
        .sample(rows, 4_000)
        .map((row, index) => Object.assign(row, { id: 2_000 + index, owner_id: 2 + (index % 8), at: new Date(start + index * 1000) }));
      await insertMany(db, items, [...listed, ...filler]);
      await db.query('analyze');
    },
  },
);
