import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ann, mounted, requestBy, sue } from '../../../test/crud/mounted.ts';
import { model, t } from '../../db/index.ts';
import { isStaff } from '../../permissions/index.ts';
import { compileWhere } from '../../db/sql/where/compile-where.ts';
import { filter, many, one, resource, visibleTo } from '../index.ts';
import type { QueryValues } from '../../http/input/query-string.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import { ListQueryReader, type ListRequest } from './list-query.ts';

const folders = model('folders', { id: t.uuidv7().pk(), title: t.text(40) });
const papers = model('papers', {
  id: t.uuidv7().pk(),
  folder_id: t.ref(() => folders),
  title: t.text(40),
  pages: t.int(),
  margin: t.int().nullable(),
});
const lines = model('lines', { id: t.uuidv7().pk(), paper_id: t.ref(() => papers) });
const beside = [resource(folders, { unscoped: true }), resource(lines, { unscoped: true })];
const declared = resource(papers, {
  unscoped: true,
  fields: { margin: visibleTo(isStaff) },
  relations: { folder: one(() => folders, 'folder_id'), lines: many(() => lines, 'paper_id', { limit: 5 }) },
});
const options = {
  filters: {
    title: ['eq', 'in', 'contains'],
    pages: ['gte', 'lte'],
    margin: ['gte'],
    'folder.title': ['eq'],
    long: filter(z.enum(['yes']), () => ({ pages: { gt: 100 } })),
  },
  search: ['title'],
  ordering: { by: ['title', 'pages', 'margin'], default: ['-pages'] },
  expand: ['folder', 'lines'],
  page: { default: 10, max: 20 },
  limits: { listValues: 3, filters: 4 },
};

async function reader(user: typeof ann = ann, more: object = {}): Promise<ListQueryReader> {
  const of = mounted(declared, { ...options, ...more }, beside);
  const request = requestBy(user);
  return new ListQueryReader(of.list, request, await of.view(request));
}
const read = async (given: QueryValues, user = ann): Promise<ListRequest> => (await reader(user)).readGet(given);
async function faults(work: Promise<unknown>): Promise<string[]> {
  const errors = await work.then(
    () => [],
    (error: { errors?: readonly FieldError[] }) => error.errors ?? [],
  );
  return errors.map(({ location, code }) => `${location.join('.')} ${code}`);
}
const refused = async (given: QueryValues, user = ann) => faults(read(given, user));

describe('the parameters of a list', () => {
  test('become conditions, an order, a page and a shape; nothing is asked of a database', async () => {
    const list = await read({
      pages__gte: '3',
      folder__title: 'a',
      long: 'yes',
      search: 'red lamp',
      ordering: '-title',
      limit: '5',
      fields: 'id,title',
      expand: 'folder',
    });
    expect(list.where.slice(0, 3)).toEqual([{ pages: { gte: 3 } }, { folder: { is: { title: { eq: 'a' } } } }, { pages: { gt: 100 } }]);
    expect(list.where).toHaveLength(4);
    expect(list.ordering.map(({ column, descending }) => [column, descending])).toEqual([['title', true]]);
    expect([list.limit, list.fields, list.expand, list.isDeleted]).toEqual([5, ['id', 'title'], ['folder'], false]);
  });

  test('that are absent leave what is declared: its order, its page, every field', async () => {
    const list = await read({});
    expect(list.where).toEqual([]);
    expect(list.ordering.map(({ column, descending }) => [column, descending])).toEqual([['pages', true]]);
    expect([list.limit, list.fields, list.expand]).toEqual([10, undefined, []]);
  });

  test('bind a cursor to filters and search, in any order, and to nothing else', async () => {
    const one = await read({ title: 'a', pages__gte: '1', limit: '5' });
    const same = await read({ pages__gte: '1', title: 'a', limit: '7', fields: 'id' });
    const other = await read({ title: 'b', pages__gte: '1' });
    expect(same.binding).toBe(one.binding);
    expect(other.binding).not.toBe(one.binding);
  });

  test('have all their faults at once, each at its place', async () => {
    expect(
      (
        await refused({
          nope: '1',
          pages__gte: 'x',
          title__in: 'a,b,c,d'.split(','),
          ordering: 'nope',
          limit: '21',
          expand: 'nope',
          fields: 'nope',
        })
      ).toSorted(),
    ).toEqual([
      'query.expand unknown_field',
      'query.fields unknown_field',
      'query.limit invalid',
      'query.nope unknown_field',
      'query.ordering unknown_field',
      'query.pages__gte invalid',
      'query.title__in too_many',
    ]);
  });

  test.each([
    [{ title: ['a', 'b'] }, 'query.title duplicate'],
    [{ search: ['a', 'b'] }, 'query.search duplicate'],
    [{ search: 'x'.repeat(201) }, 'query.search too_long'],
    [{ search: 'a b c d e f g h i j k' }, 'query.search too_many'],
    [{ search: 'a\0' }, 'query.search invalid'],
    [{ long: 'no' }, 'query.long '],
    [{ ordering: 'title,,pages' }, 'query.ordering required'],
    [{ fields: ',' }, 'query.fields required'],
    [{ expand: 'folder,' }, 'query.expand required'],
    [{ ordering: 'title,title' }, 'query.ordering '],
    // A parameter of the other style does not exist here.
    [{ offset: '1' }, 'query.offset unknown_field'],
    [{ limit: '0' }, 'query.limit '],
    [{ limit: '-1' }, 'query.limit '],
    [{ limit: '1.5' }, 'query.limit '],
    [{ limit: 'x' }, 'query.limit '],
    [{ limit: '' }, 'query.limit '],
    [{ limit: ['1', '2'] }, 'query.limit '],
    [{ cursor: ['a', 'b'] }, 'query.cursor '],
    [{ title: 'a', title__contains: 'b', pages__gte: '1', pages__lte: '2', long: 'yes' }, 'query.long too_many'],
  ] as [QueryValues, string][])('%j is refused: %s', async (given, fault) => {
    expect(await refused(given)).toEqual([expect.stringContaining(fault)]);
  });

  test('hidden, misspelt and prototype names are refused alike, and are there for those who see the column', async () => {
    for (const [hidden, unknown] of [
      [{ margin__gte: '1' }, { nopexy__gte: '1' }],
      [{ ordering: 'margin' }, { ordering: 'nopexy' }],
      [{ ordering: '__proto__' }, { ordering: 'nopexy' }],
    ] as [QueryValues, QueryValues][]) {
      const codes = async (given: QueryValues) => (await refused(given)).map((fault) => fault.split(' ')[1]);
      expect(await codes(hidden)).toEqual(await codes(unknown));
      expect(await codes(unknown)).toEqual(['unknown_field']);
    }
    expect(await refused({ margin__gte: '1', ordering: 'margin' }, sue)).toEqual([]);
  });
});

describe('lists without pages', () => {
  test('refuse what pages are asked by as unknown, one fault each, whatever is in it', async () => {
    for (const given of [{ limit: '0' }, { limit: 'x' }, { cursor: ['a', 'b'] }] as QueryValues[])
      expect(await faults((await reader()).readExport(given, ['csv']))).toEqual([`query.${Object.keys(given)[0]} unknown_field`]);
    expect(await faults((await reader()).readLive({ limit: '1' }))).toEqual(['query.limit unknown_field']);
  });

  test('an export has a format, and expands to-one relations alone', async () => {
    expect(await (await reader()).readExport({ title: 'a' }, ['csv', 'jsonl'])).toMatchObject({ format: 'csv' });
    expect(await faults((await reader()).readExport({ format: 'xml', expand: 'lines' }, ['csv', 'jsonl']))).toEqual([
      'query.format invalid',
      'query.expand unknown_field',
    ]);
  });

  test('a statistic reads filters and search, with the parameters of its own', async () => {
    expect(await (await reader()).readRows({ pages__lte: '3', metrics: 'n' }, ['metrics'], [])).toEqual([{ pages: { lte: 3 } }]);
    expect(await faults((await reader()).readRows({ ordering: 'title', fields: 'id' }, ['metrics'], []))).toEqual([
      'query.ordering unknown_field',
      'query.fields unknown_field',
    ]);
  });
});

describe('the body of QUERY', () => {
  test('has a tree of conditions, and its faults are in the body', async () => {
    const list = await (
      await reader()
    ).readQuery({}, { where: { or: [{ title: 'a' }, { pages: { gte: 3 } }] }, ordering: ['title'], limit: 3 });
    const values: unknown[] = [];
    const text = compileWhere(papers, { and: list.where }).append('sqlite', 't', values);
    expect([text.replaceAll(/"|t\.|[()]/g, ''), values, list.limit]).toEqual(['title = $1 or pages >= $2', ['a', 3], 3]);
    expect(
      await faults(
        (await reader()).readQuery({ title: 'a' }, { where: { nope: 1, margin: { gte: 1 }, title: { starts: 'a' } }, ordering: [''] }),
      ),
    ).toEqual([
      'query.title unknown_field',
      'body.where.nope unknown_field',
      'body.where.margin unknown_field',
      expect.stringMatching(/^body\.where\.title/),
      'body.ordering required',
    ]);
  });
});

test('a single row takes `fields` and `expand` alone', async () => {
  expect((await reader()).readShape({ fields: 'id,title,id', expand: 'lines' })).toEqual({ fields: ['id', 'title'], expand: ['lines'] });
  expect(await faults(Promise.resolve().then(async () => (await reader()).readShape({ limit: '1', title: 'a' })))).toEqual([
    'query.limit unknown_field',
    'query.title unknown_field',
  ]);
});
