import { describe, expect, test } from 'vitest';
import type { Dialect } from '../../db/dialect.ts';
import { model } from '../../db/declare/model.ts';
import type { ModelIndex } from '../../db/declare/table-from-columns.ts';
import { t } from '../../db/declare/column.ts';
import { compileWhere } from '../../db/sql/where/compile-where.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { notTrue } from '../../db/sql/where/not-true.ts';
import { inIndexWords, whereSql } from '../../db/sql/where/where-sql.ts';
import { orderTerm } from '../options/ordering.ts';
import { longRead, termsOf } from './long-read.ts';

const columns = {
  id: t.uuidv7().pk(),
  owner_id: t.uuid(),
  status: t.text(20),
  title: t.text(100),
  code: t.text(20).unique(),
  total: t.decimal(12, 2),
  created_at: t.timestamp(),
  due_at: t.timestamp().nullable(),
  deleted_at: t.timestamp().nullable(),
};
type Columns = typeof columns;

function read(where: Where<Columns>, ordering: string[], indexes: ModelIndex<keyof Columns>[] = [], dialect: Dialect = 'sqlite') {
  const orders = model('orders', columns, { indexes });
  const terms = termsOf([compileWhere(orders, where)], dialect);
  return longRead({ table: orders.table, terms, ordering: ordering.map(orderTerm), dialect });
}

const OWNER = { owner_id: '0190a1b2-0000-7000-8000-000000000001' };
const ID = '0190a1b2-0000-7000-8000-000000000002';
const served = undefined;

describe('is served by an index', () => {
  test.each<[string, Where<Columns>, string[], string[][]]>([
    ['a row by its key, whatever else is asked of it', { id: ID, title: { contains: 'x' } }, ['id'], []],
    ['rows by their keys', { id: { in: [ID, ID] }, status: 'open' }, ['-created_at', 'id'], []],
    ['a row by a unique column', { code: 'a', ...OWNER }, ['title', 'id'], []],
    ['every row in the order of the key', {}, ['-id'], []],
    ['the rows of an owner in the order that follows it', OWNER, ['-created_at', '-id'], [['owner_id', '-created_at', '-id']]],
    ['the same order backwards', OWNER, ['created_at', 'id'], [['owner_id', '-created_at', '-id']]],
    ['several columns of equality, in any order', { ...OWNER, status: 'open' }, ['id'], [['status', 'owner_id', 'id']]],
    [
      'a range of the first column of the order',
      { ...OWNER, created_at: { gte: new Date(0) } },
      ['created_at', 'id'],
      [['owner_id', 'created_at', 'id']],
    ],
    ['an order that repeats a column of equality', { ...OWNER, status: 'open' }, ['status', 'id'], [['owner_id', 'status', 'id']]],
    ['an order of a unique column, without the key after it', {}, ['code', 'id'], []],
    ['rows that are there, where the index has the deletion', { ...OWNER, deleted_at: null }, ['-id'], [['owner_id', 'deleted_at', '-id']]],
    ['a time, of which few rows have the same', OWNER, ['-created_at', '-id'], [['owner_id', '-created_at']]],
    ['rows in any order', OWNER, [], [['owner_id', 'title']]],
  ])('%s', (_name, where, ordering, indexes) => {
    for (const dialect of ['sqlite', 'postgres'] as const)
      expect(
        read(
          where,
          ordering,
          indexes.map((each) => ({ columns: each as never })),
          dialect,
        ),
      ).toEqual(served);
  });

  test('rows that are there, by an index of those only', () => {
    const indexes = [{ columns: ['owner_id', '-id'] as never, where: 'deleted_at is null' }];
    expect(read({ ...OWNER, deleted_at: null }, ['-id'], indexes)).toEqual(served);
    expect(read({ ...OWNER, deleted_at: { isnull: false } }, ['-id'], indexes)).toBeDefined();
    expect(read(OWNER, ['-id'], indexes)).toBeDefined();
  });
});

describe('may be long', () => {
  test.each<[string, Where<Columns>, string[], string[][]]>([
    ['an owner, a filter and an index of the owner only', { ...OWNER, status: 'open' }, ['-id'], [['owner_id', '-id']]],
    ['rows that are there, without the deletion in the index', { ...OWNER, deleted_at: null }, ['-id'], [['owner_id', '-id']]],
    ['an order without an index', OWNER, ['title', 'id'], [['owner_id', '-id']]],
    ['an order whose end is not in the index', OWNER, ['title', 'id'], [['owner_id', 'title']]],
    ['directions that the index does not have', OWNER, ['title', '-id'], [['owner_id', 'title', 'id']]],
    ['a text that is contained', { ...OWNER, title: { contains: 'x' } }, ['-id'], [['owner_id', '-id']]],
    ['a text that begins', { ...OWNER, title: { starts: 'x' } }, ['title', 'id'], [['owner_id', 'title', 'id']]],
    ['another value', { ...OWNER, status: { ne: 'open' } }, ['-id'], [['owner_id', 'status', '-id']]],
    ['one of several values', { ...OWNER, status: { in: ['open', 'paid'] } }, ['-id'], [['owner_id', 'status', '-id']]],
    [
      'a range of another column than the order begins with',
      { ...OWNER, created_at: { gte: new Date(0) } },
      ['-id'],
      [['owner_id', '-id'], ['created_at']],
    ],
    [
      'one or another',
      { or: [OWNER, { status: 'open' }] },
      ['-id'],
      [
        ['owner_id', '-id'],
        ['status', '-id'],
      ],
    ],
    ['SQL of the application', { and: [OWNER, whereSql('this.title is null')] }, ['-id'], [['owner_id', '-id']]],
    ['equality without an index', { status: 'open' }, [], []],
  ])('%s', (_name, where, ordering, indexes) => {
    for (const dialect of ['sqlite', 'postgres'] as const)
      expect(
        read(
          where,
          ordering,
          indexes.map((each) => ({ columns: each as never })),
          dialect,
        ),
      ).toMatchObject({
        reason: expect.any(String) as string,
      });
  });

  test('a decimal on SQLite, which is stored as text', () => {
    const indexes = [{ columns: ['owner_id', 'total', 'id'] as never }];
    expect(read(OWNER, ['total', 'id'], indexes, 'sqlite')?.reason).toContain('total');
    expect(read({ ...OWNER, total: '1.00' }, ['id'], indexes, 'sqlite')?.reason).toContain('total');
    expect(read(OWNER, ['total', 'id'], indexes, 'postgres')).toEqual(served);
    expect(read({ ...OWNER, total: '1.00' }, ['id'], indexes, 'postgres')).toEqual(served);
  });

  test('NULLs that an index of the other direction has first, on PostgreSQL', () => {
    const indexes = [{ columns: ['owner_id', 'due_at', 'id'] as never }];
    expect(read(OWNER, ['due_at', 'id'], indexes, 'postgres')).toEqual(served);
    expect(read(OWNER, ['-due_at', '-id'], indexes, 'postgres')).toBeDefined();
    expect(read(OWNER, ['-due_at', '-id'], indexes, 'sqlite')).toEqual(served);
  });
});

test('an index that would help is named, column by column; none where no index helps', () => {
  expect(read({ ...OWNER, status: 'open' }, ['-created_at', '-id'])).toEqual({
    reason: 'no index begins with owner_id, status, -created_at, -id',
    index: ['owner_id', 'status', '-created_at', '-id'],
  });
  expect(read({ ...OWNER, title: { contains: 'secret' } }, ['-id'])).toEqual({
    reason: 'a condition on title, which no index serves',
    index: undefined,
  });
});

describe("conditions in an index's own words", () => {
  const open = { columns: ['owner_id', '-created_at', '-id'], where: `"status" <> 'done'  and "due_at" is not null` } as const;
  const inWords = inIndexWords("this.status <> 'done' and this.due_at is not null") as Where<Columns>;
  const order = ['-created_at', '-id'];

  test('are served by that index, in its order', () => {
    expect(read({ and: [OWNER, inWords] }, order, [open])).toBe(served);
    expect(read({ and: [OWNER, inWords] }, order, [open], 'postgres')).toBe(served);
  });

  test.each<[string, Where<Columns>, ModelIndex<keyof Columns>[]]>([
    ['no index has the words', { and: [OWNER, inWords] }, [{ columns: open.columns }]],
    ['the index begins with another column', { and: [{ title: 'x' }, inWords] }, [open]],
    ['another condition is left', { and: [OWNER, inWords, { title: { contains: 'x' } }] }, [open]],
    ['the words are negated', { and: [OWNER, notTrue(inWords)] }, [open]],
    ['two conditions are in words', { and: [OWNER, inWords, inIndexWords('this.due_at is null')] }, [open]],
    [
      'the same text is not said to be an index condition',
      { and: [OWNER, whereSql("this.status <> 'done' and this.due_at is not null")] },
      [open],
    ],
  ])('are not served where %s', (_name, where, indexes) => {
    expect(read(where, order, indexes)).toBeDefined();
  });
});
