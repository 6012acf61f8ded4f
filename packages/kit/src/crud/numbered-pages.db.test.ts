import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { people, startShop, type ShopApp } from '../../test/crud/shop.ts';
import { toolOf } from '../contrib/mcp/tools/tool.ts';
import { toolRequest } from '../contrib/mcp/calls/tool-request.ts';
import { createTable, insertMany, migration, model, t } from '../db/index.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { countQueries } from '../db/engine/query-observer.ts';
import { count, CrudController, filter, resource } from './index.ts';

const books = model('books', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(20), pages: t.int() });
const bookResource = resource(books, { owner: 'owner_id', rows: () => ({ pages: { gt: 0 } }) });
class BookController extends CrudController(bookResource, {
  permission: isAuthenticated,
  page: { style: 'page', default: 50, max: 100 },
  filters: { pages: ['eq', 'gte'], thick: filter(z.enum(['yes']), () => ({ pages: { gte: 100 } })) },
  search: ['title'],
  ordering: { by: ['pages'], default: ['-pages'] },
  export: ['jsonl'],
  stats: { metrics: { books: count() } },
  meta: true,
  limits: { offset: 110 },
}) {}

describeDatabases('pages with numbers', (database) => {
  let app: ShopApp;
  beforeAll(async () => {
    app = await startShop({
      database: database.db,
      mount: { '/v1': { '/books': BookController } },
      modules: [{ name: 'books', models: [books], migrations: [migration('0001_initial', [createTable('books', books.columns)])] }],
    });
    const of = (owner: string, pages: number) => ({ owner_id: owner, title: `book ${pages}`, pages });
    await insertMany(database.db, books, [
      ...Array.from({ length: 120 }, (_, index) => of(people.ann.id, index + 1)),
      of(people.ann.id, 0),
      of(people.bob.id, 7),
    ]);
  });
  afterAll(() => app.close());
  const list = async (query = '') => {
    const { status, body, headers } = await app.call('ann', 'GET', `books${query}`);
    expect([query, status, Object.keys(body)]).toEqual([query, 200, ['items', 'count']]);
    return { pages: body.items.map(({ pages }: { pages: number }) => pages) as number[], count: body.count as number, headers };
  };

  test('a page has `items` and `count` only; a larger size is capped', async () => {
    const sizes = async (query: string) => {
      const { pages, count } = await list(query);
      return [pages.length, pages[0], count];
    };
    expect(await sizes('')).toEqual([50, 120, 120]);
    expect(await sizes('?page=3')).toEqual([20, 20, 120]);
    expect(await sizes('?page=4')).toEqual([0, undefined, 120]);
    expect(await sizes('?page=2147483647')).toEqual([0, undefined, 120]);
    expect(await sizes('?page_size=7&page=2')).toEqual([7, 113, 120]);
    expect(await sizes('?page_size=100000')).toEqual([100, 120, 120]);
    expect(await sizes('?page_size=100000&page=2')).toEqual([20, 20, 120]);
    expect(await sizes('?pages__gte=118')).toEqual([3, 120, 3]);
    expect(await sizes('?pages__gte=118&page=2')).toEqual([0, undefined, 3]);
    expect(await sizes('?thick=yes&page_size=20&page=2')).toEqual([1, 100, 21]);
    expect(await sizes('?search=book+11&ordering=pages&page_size=5')).toEqual([5, 11, 11]);
  });

  test('Link has the pages beside it, and X-Total-Count the number of rows', async () => {
    const { headers } = await list('?page_size=50&page=2');
    expect([headers['link'], headers['x-total-count']]).toEqual([
      '<?page_size=50>; rel="first", <?page=3&page_size=50>; rel="next", <?page=1&page_size=50>; rel="prev"',
      '120',
    ]);
    expect((await list('?pages=3')).headers['link']).toBeUndefined();
  });

  test.each([
    'page=0',
    'page=-1',
    'page=1.5',
    'page=x',
    'page=1e30',
    'page=2147483648',
    'page=',
    'page=1&page=2',
    'page_size=0',
    'page_size=x',
  ])('422 for %s', async (query) => {
    const { status, body } = await app.call('ann', 'GET', `books?${query}`);
    expect([status, body.errors.map(({ location }: { location: unknown }) => location)]).toEqual([422, [['query', query.split('=')[0]]]]);
  });

  test('parameters of other styles do not exist, also in the body of QUERY', async () => {
    for (const name of ['limit', 'offset', 'cursor']) {
      const { status, body } = await app.call('ann', 'GET', `books?${name}=1`);
      expect([status, body.errors[0].code]).toEqual([422, 'unknown_field']);
    }
    expect((await app.call('ann', 'POST', 'books/query', { limit: 1 })).status).toBe(422);
  });

  test('a page with rows behind the greatest offset is 422, and costs no read of the rows before it', async () => {
    const { status, body } = await app.call('ann', 'GET', 'books?page_size=10&page=13');
    expect([status, body]).toMatchObject([200, { items: [], count: 120 }]);
    const { count, result } = await countQueries(async () => app.call('ann', 'GET', 'books?page_size=1&page=113'));
    expect([result.status, result.body.errors]).toEqual([
      422,
      [{ location: ['query', 'page'], code: 'invalid', message: 'Enter an integer between 1 and 111. Use a filter to go further.' }],
    ]);
    expect(count).toBe(1);
  });

  test('QUERY takes the number and the size of the page, the size also in its body', async () => {
    const query = async (address: string, body: object) => {
      const answer = await app.call('ann', 'POST', `books/query${address}`, body);
      return [answer.status, Object.keys(answer.body), answer.body.items.length, answer.body.items[0]?.pages, answer.body.count];
    };
    expect(await query('?page=2&page_size=30', { where: { pages: { gte: 81 } } })).toEqual([200, ['items', 'count'], 10, 90, 40]);
    expect(await query('?page=2', { page_size: 4, ordering: ['pages'] })).toEqual([200, ['items', 'count'], 4, 5, 120]);
    expect(await query('', { page_size: 5_000 })).toEqual([200, ['items', 'count'], 100, 120, 120]);
  });

  test('export and stats are of all rows, whatever their pages', async () => {
    const { status, text } = await app.inject({ url: '/v1/books/export', headers: { 'x-user': 'ann' } }).then((answer) => ({
      status: answer.statusCode,
      text: answer.payload,
    }));
    expect([status, text.trim().split('\n').length]).toEqual([200, 120]);
    expect((await app.call('ann', 'GET', 'books/stats')).body.items).toEqual([{ books: 120 }]);
  });

  describe('what describes the list', () => {
    test('the document and /meta have the parameters, the sizes and the envelope', async () => {
      const { paths, components } = (await app.inject({ url: '/openapi.json' })).json();
      const shared = components.parameters as Record<string, { readonly name: string }>;
      const parameters = paths['/v1/books'].get.parameters.map((each: { $ref?: string }) =>
        each.$ref === undefined ? each : shared[each.$ref.split('/').at(-1)!],
      );
      expect(parameters.find(({ name }: { name: string }) => name === 'page').schema).toEqual({
        type: 'integer',
        minimum: 1,
        maximum: 2_147_483_647,
        default: 1,
      });
      const size = parameters.find(({ name }: { name: string }) => name === 'page_size');
      expect([size.schema, size.description]).toEqual([
        { type: 'integer', minimum: 1, default: 50 },
        'Rows per page. Values above 100 are treated as 100.',
      ]);
      const envelope = components.schemas.BookPage;
      expect([Object.keys(envelope.properties), envelope.required, envelope.properties.count.type]).toEqual([
        ['items', 'count'],
        ['items', 'count'],
        'integer',
      ]);
      const { body } = await app.call('ann', 'GET', 'books/meta');
      expect([body.limits.page, body.limits.page_max]).toEqual([50, 100]);
    });

    test('a tool asks for few rows unless the agent says how many', () => {
      const route = app.app.routes.find(({ operationId }) => operationId === 'book_list')!;
      const tool = toolOf(route);
      expect(tool.entry.inputSchema).toMatchObject({ properties: { page: { type: 'integer' }, page_size: { default: 20 } } });
      expect(toolRequest(tool, { page: 2 }).url).toBe('/v1/books?page=2&page_size=20');
      expect(toolRequest(tool, { page_size: 100 }).url).toBe('/v1/books?page_size=100');
    });
  });
});
