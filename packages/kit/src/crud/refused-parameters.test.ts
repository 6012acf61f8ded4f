import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startShop, type ShopApp } from '../../test/crud/shop.ts';
import { createTable, type Database, migration, model, openDatabase, t } from '../db/index.ts';
import { insert } from '../db/rows/repository.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { count, CrudController, many, one, resource } from './index.ts';

const shelves = model('shelves', { id: t.uuidv7().pk(), name: t.text(20) });
const books = model('books', { id: t.uuidv7().pk(), shelf_id: t.ref(() => shelves) });
const names = model('names', { id: t.uuidv7().pk(), title: t.text(20), author: t.text(20), shelf_id: t.ref(() => shelves) });
const tables = migration('0001_initial', [
  createTable('shelves', shelves.columns),
  createTable('names', { ...names.columns, shelf_id: t.ref('shelves') }),
  createTable('books', { id: t.uuidv7().pk(), shelf_id: t.ref('shelves') }),
]);
const common = { permission: isAuthenticated, export: ['csv'], stats: { metrics: { n: count() } } } as const;
const bookResource = resource(books, { unscoped: true });
const shelfResource = resource(shelves, { unscoped: true, relations: { books: many(() => books, 'shelf_id', { limit: 5 }) } });
class ShelfController extends CrudController(shelfResource, { ...common, expand: ['books'] }) {}
const nameResource = resource(names, { unscoped: true, relations: { shelf: one(() => shelves, 'shelf_id') } });
class NameController extends CrudController(nameResource, {
  permission: isAuthenticated,
  ordering: { by: ['title', 'author'] },
  filters: { title: ['eq'] },
  export: ['csv'],
  stats: { by: ['title', 'author'], metrics: { n: count() } },
  expand: ['shelf'],
}) {}
class BookController extends CrudController(bookResource, { ...common, sparse: false, bulk: { create: true } }) {}

describe('a parameter that is refused', () => {
  let db: Database;
  let app: ShopApp;
  let id: string;

  beforeAll(async () => {
    db = await openDatabase('sqlite::memory:');
    app = await startShop({
      database: db,
      mount: { '/v1': { '/shelves': ShelfController, '/books': BookController, '/names': NameController } },
      modules: [{ name: 'library', models: [shelves, books, names], migrations: [tables] }],
    });
    ({ id } = await insert(db, shelves, { name: 'a' }));
    ({ id } = await insert(db, books, { shelf_id: id }));
  });
  afterAll(async () => {
    await app.close();
    await db.close();
  });

  const refused = async (url: string, method = 'GET', body?: object) => {
    const answer = await app.call('ann', method, url, body);
    expect([url, answer.status]).toEqual([url, 422]);
    return (answer.body as { errors: { location: string[]; code: string; message: string }[] }).errors;
  };

  test.each(['', '/:id', '/export', '/stats'])('as unknown is one fault, whatever is in it: books%s', async (path) => {
    for (const query of ['expand=x', 'expand=', 'expand=a.b.c.d', 'fields=x', 'fields='])
      expect([query, await refused(`books${path.replace(':id', id)}?${query}`)]).toEqual([
        query,
        [{ location: ['query', query.split('=')[0]], code: 'unknown_field', message: 'Unknown parameter.' }],
      ]);
  });

  test('of a statistic because there are no pages is one fault', async () => {
    for (const query of ['limit=0', 'cursor=a&cursor=b'])
      expect(await refused(`books/stats?${query}`)).toEqual([
        { location: ['query', query.split('=')[0]], code: 'unknown_field', message: 'Unknown parameter.' },
      ]);
  });

  test('of a write is one fault', async () => {
    const unknown = [{ location: ['query', 'expand'], code: 'unknown_field', message: 'Unknown parameter.' }];
    expect(await refused('books?expand=x', 'POST', { shelf_id: id })).toEqual(unknown);
    expect(await refused('books/bulk?expand=x', 'POST', { items: [{ shelf_id: id }] })).toEqual(unknown);
    expect(await refused(`books/${id}?expand=x`, 'PATCH', {})).toEqual(unknown);
  });

  test('each has its fault', async () => {
    const found = await refused('books/export?limit=0&expand=x&fields=x&nope=1&format=x');
    expect(found.map(({ location }) => location[1]).toSorted((a = '', b = '') => a.localeCompare(b))).toEqual([
      'expand',
      'fields',
      'format',
      'limit',
      'nope',
    ]);
  });

  test.each([',', 'title,,author', 'title,', ',title', 'title&NAME='])('because a name is empty says so: %s', async (list) => {
    for (const [path, name] of [
      ['names', 'ordering'],
      ['names', 'fields'],
      ['names', 'expand'],
      ['names/export', 'ordering'],
      ['names/stats', 'ordering'],
      ['names/stats', 'group_by'],
      ['names/stats', 'metrics'],
    ] as const) {
      const errors = await refused(`${path}?${name}=${list.replace('NAME', name)}`);
      const ofEmpty = errors.filter(({ code }) => code === 'required');
      expect([path, name, ofEmpty]).toEqual([
        path,
        name,
        [
          {
            location: ['query', name],
            code: 'required',
            message: expect.stringMatching(
              list === ',' ? /^Give at least one (name|column)\.$/ : /^A (name|column) is empty\. Remove the extra comma\.$/,
            ),
          },
        ],
      ]);
    }
    expect(await refused('names', 'QUERY', { ordering: list.replace('&NAME=', ',').split(',') })).toMatchObject([
      { location: ['body', 'ordering'], code: 'required' },
    ]);
  });

  test('where nothing can be chosen says so, and names nothing', async () => {
    // Only relations to one can be exported.
    expect(await refused('shelves/export?expand=books')).toEqual([
      {
        location: ['query', 'expand'],
        code: 'unknown_field',
        message: 'Cannot be expanded: "books". There is nothing to choose from here.',
      },
    ]);
    expect(await refused('books/stats?group_by=x')).toEqual([
      { location: ['query', 'group_by'], code: 'unknown_field', message: 'Unknown: "x". There is nothing to choose from here.' },
    ]);
  });
});
