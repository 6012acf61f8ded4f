import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { startShop, type ShopApp } from '../../test/crud/shop.ts';
import { createTable, type Db, insert, migration, model, t } from '../db/index.ts';
import { countQueries } from '../db/engine/query-observer.ts';
import { isAuthenticated, isOwner } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController, crudOf, many, one, resource, visibleTo } from './index.ts';

const shelves = model('shelves', { id: t.uuidv7().pk(), name: t.text(40) });
const bookColumns = {
  id: t.uuidv7().pk(),
  shelf_id: t.ref('shelves').nullable(),
  owner_id: t.uuid().readOnly(),
  title: t.text(40),
  mine: t.text(40).nullable().dbDefault('m'),
};
const books = model('books', { ...bookColumns, shelf_id: t.ref(() => shelves).nullable() });
const loanColumns = { id: t.uuidv7().pk(), book_id: t.ref('books') };
const loans = model('loans', { ...loanColumns, book_id: t.ref(() => books) });
const tables = [createTable('shelves', shelves.columns), createTable('books', bookColumns), createTable('loans', loanColumns)];
const module = { name: 'library', models: [shelves, books, loans], migrations: [migration('0001_initial', tables)] };

/** Loans of books, in one statement: what a page needs. */
async function loansOf(db: Db, ids: readonly string[]): Promise<number[]> {
  const list = ids.map((_, index) => `$${index + 1}`).join(', ');
  const found = await db.query<{ book_id: string; n: number | string }>(
    `select book_id, count(*) as n from loans where book_id in (${list}) group by book_id`,
    ids,
  );
  const counts = new Map(found.map(({ book_id, n }) => [book_id, Number(n)]));
  return ids.map((id) => counts.get(id) ?? 0);
}

let isShort = false;
const bookResource = resource(books, {
  owner: { column: 'owner_id', unless: isAuthenticated },
  relations: { shelf: one(() => shelves, 'shelf_id') },
  fields: { mine: visibleTo(isOwner(), { hidden: 'null' }) },
  computed: {
    first: { requires: ['title'], response: z.string(), value: ({ title }) => title.slice(0, 1) },
    loans: {
      requires: ['id'],
      response: z.int(),
      load: (rows, { db }) =>
        isShort
          ? []
          : loansOf(
              db,
              rows.map(({ id }) => id),
            ),
    },
    place: {
      requires: ['shelf.name', 'title'],
      response: z.string(),
      load: (rows, { now }) => rows.map(({ shelf, title }) => `${title} in ${shelf?.name ?? 'no shelf'} ${now.getTime() > 0}`),
    },
  },
  shown: { mine: { requires: [], response: z.string().nullable(), load: (rows) => rows.map(({ mine }) => mine?.toUpperCase() ?? null) } },
});
const shelfResource = resource(shelves, { unscoped: true, relations: { books: many(() => books, 'shelf_id') } });
class Books extends CrudController(bookResource, {
  permission: isAuthenticated,
  filters: { title: ['eq'] },
  bulk: { create: true },
  export: ['jsonl'],
}) {}
class Shelves extends CrudController(shelfResource, { permission: isAuthenticated, expand: ['books'] }) {}
const NO_ID = '01890000-0000-7000-8000-000000000000';

describeDatabases('fields that are loaded for a page', (database) => {
  let shop: ShopApp;
  let shelf: string;
  const ids: string[] = [];
  beforeAll(async () => {
    shop = await startShop({ database: database.db, mount: { '/v1': { '/books': Books, '/shelves': Shelves } }, modules: [module] });
    shelf = (await shop.call('ann', 'POST', 'shelves', { name: 'top' })).body.id;
    for (const title of ['a', 'b', 'c']) {
      const { body } = await shop.call(title === 'c' ? 'bob' : 'ann', 'POST', 'books', { title, shelf_id: title === 'b' ? null : shelf });
      ids.push(body.id as string);
      expect(body).toMatchObject({ loans: 0, first: title, place: `${title} in ${title === 'b' ? 'no shelf' : 'top'} true` });
    }
    for (const id of [ids[0], ids[0], ids[2]]) await insert(database.db, loans, { book_id: id as string });
  });
  afterAll(() => shop.close());
  const loansIn = (items: readonly { title: string; loans: number }[]) =>
    Object.fromEntries(items.map(({ title, loans: n }) => [title, n]));

  test('a page takes one statement more, however many rows it has, and none when the field is not asked for', async () => {
    const listed = async (url: string) => (await countQueries(() => shop.call('ann', 'GET', url))).queries.length;
    await listed('books');
    const whole = await listed('books?limit=2');
    expect(await listed('books?limit=2&fields=title')).toBe(whole - 1);
    const { body } = await shop.call('ann', 'GET', 'books');
    expect(loansIn(body.items)).toEqual({ a: 2, b: 0, c: 1 });
    expect(Object.keys(body.items[0] as object)).toEqual(['id', 'shelf_id', 'owner_id', 'title', 'mine', 'first', 'loans', 'place']);
  });

  test('every path has it: one record, QUERY, an expansion, a file, bulk, programs', async () => {
    expect((await shop.call('ann', 'GET', `books/${ids[0]}`)).body).toMatchObject({ loans: 2, place: 'a in top true' });
    expect((await shop.call('ann', 'QUERY', 'books', { where: { title: 'c' } })).body.items).toMatchObject([{ loans: 1 }]);
    const { queries } = await countQueries(async () => {
      const expanded = (await shop.call('ann', 'GET', `shelves/${shelf}?expand=books`)).body;
      expect(loansIn(expanded.books)).toEqual({ a: 2, c: 1 });
    });
    expect(queries.filter(({ sql }) => sql.includes('from loans'))).toHaveLength(1);
    const file = (await shop.inject({ method: 'GET', url: '/v1/books/export', headers: { 'x-user': 'ann' } })).body;
    expect(
      loansIn(
        file
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line)),
      ),
    ).toEqual({ a: 2, b: 0, c: 1 });
    expect((await shop.call('ann', 'PATCH', `books/${ids[0]}`, { title: 'a' })).body.loans).toBe(2);
    const user = { id: NO_ID, username: 'x', email: null, is_active: true, is_staff: false, is_superuser: false };
    const programs = crudOf(shop.app, bookResource).as({ user, tenant: null });
    expect(await programs.present(await programs.find(ids[0] as string))).toMatchObject({ loans: 2 });
    const bulk = (await shop.call('ann', 'POST', 'books/bulk', { items: [{ title: 'd' }, { title: 'e' }] })).body.items;
    expect(loansIn(bulk)).toEqual({ d: 0, e: 0 });
  });

  test('a rule about a row of the required columns holds: what is loaded is set on admitted rows only', async () => {
    const of = async (person: 'ann' | 'bob') => (await shop.call(person, 'GET', `books/${ids[2]}`)).body.mine as unknown;
    expect([await of('ann'), await of('bob')]).toEqual([null, 'M']);
  });

  test('a list of another length is an error of the application, not a wrong value', async () => {
    isShort = true;
    expect((await shop.call('ann', 'GET', 'books')).status).toBe(500);
    isShort = false;
    expect(JSON.stringify(shop.records)).toContain('load of \\"loans\\" must return a list with one value per row');
  });
});

describe('fields that do not start', () => {
  test.each([{}, { value: () => 1, load: () => [1] }])('one with %o is neither computed nor loaded', (how) => {
    const computed = { made: { requires: [], response: z.int(), ...how } };
    expect(() => resource(books, { owner: 'owner_id', computed } as never)).toThrow(
      /computed.made is .*; use either value, for each row, or load/,
    );
  });
});
