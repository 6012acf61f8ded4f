import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startShop, type ShopApp } from '../../test/crud/shop.ts';
import { createTable, migration, model, t } from '../db/index.ts';
import { defineErrors } from '../errors/catalog.ts';
import { coreErrors } from '../errors/core-errors.ts';
import { route } from '../http/declare/route.ts';
import { jsonSchema } from '../http/declare/json-schema.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController, crudOf, many, one, resource } from './index.ts';

const errors = defineErrors('shelves', {
  shelf_not_found: { status: 404, detail: 'There is no such shelf.', remedy: 'Check the id.' },
  book_not_found: { status: 404, detail: 'There is no such book.', remedy: 'Check the id.' },
  shelf_is_full: { status: 409, detail: 'The shelf is full.' },
});

const shelves = model('shelves', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), name: t.text(40) });
const bookColumns = {
  id: t.uuidv7().pk(),
  shelf_id: t.ref('shelves'),
  title: t.text(40),
  state: t.enum(['here', 'lent']).dbDefault('here'),
};
const books = model('books', { ...bookColumns, shelf_id: t.ref(() => shelves) });

const shelfResource = resource(shelves, {
  owner: 'owner_id',
  missing: errors.shelf_not_found,
  relations: { books: many(() => books, 'shelf_id') },
  nested: { books: { input: ['title'] } },
});
const bookResource = resource(books, {
  rows: () => ({ shelf: { is: {} } }),
  missing: errors.book_not_found,
  relations: { shelf: one(() => shelves, 'shelf_id') },
  state: 'state',
  transitions: { lend: { from: ['here'], to: 'lent' } },
});
const Name = jsonSchema<{ name: string }>({ type: 'object', properties: { name: { type: 'string' } }, required: ['name'] });
const bulk = { create: true, update: true, destroy: true } as const;
class Shelves extends CrudController(shelfResource, { permission: isAuthenticated, bulk }) {
  label = route.get('/:id/label', { params: this.keyParams, permission: isAuthenticated, response: Name }, async (context) => ({
    name: (await this.find(context, context.params.id)).name,
  }));
}
class Partly extends CrudController(shelfResource, { permission: isAuthenticated, bulk: { ...bulk, mode: 'partial' } }) {}
class Books extends CrudController(bookResource, { permission: isAuthenticated, parent: { relation: 'shelf' } }) {}

const tables = [createTable('shelves', shelves.columns), createTable('books', bookColumns)];
const module = { name: 'library', models: [shelves, books], migrations: [migration('0001_initial', tables)] };
const NO_ID = '01890000-0000-7000-8000-000000000000';

describeDatabases('the 404 of a resource', (database) => {
  let shop: ShopApp;
  /** Of ann; bob is the one who asks. */
  let foreign: string;
  let own: string;
  beforeAll(async () => {
    shop = await startShop({
      database: database.db,
      mount: { '/v1': { '/shelves': Shelves, '/partly': Partly, '/shelves/:shelf_id/books': Books } },
      modules: [module],
    });
    foreign = (await shop.call('ann', 'POST', 'shelves', { name: 'a' })).body.id;
    own = (await shop.call('bob', 'POST', 'shelves', { name: 'b' })).body.id;
  });
  afterAll(() => shop.close());

  test.each<[string, string, object?]>([
    ['GET', ''],
    ['GET', '/label'],
    ['PUT', '', { name: 'x' }],
    ['PATCH', '', { name: 'x' }],
    ['PATCH', '', { name: 'x', books: [] }],
    ['DELETE', ''],
  ])('%s /:id%s is its error for a malformed, an unknown and a foreign key alike', async (method, path, body) => {
    const found = [];
    for (const key of ['malformed', NO_ID, foreign]) {
      const { status, body: problem } = await shop.call('bob', method, `shelves/${key}${path}`, body);
      found.push([status, problem.code, problem.detail]);
    }
    expect(found).toEqual(Array.from({ length: 3 }, () => [404, 'shelf_not_found', 'There is no such shelf.']));
  });

  test('below a parent, a missing parent is the error of the parent, and a missing record that of the record', async () => {
    for (const [shelf, path, code] of [
      [foreign, '', 'shelf_not_found'],
      ['malformed', '', 'shelf_not_found'],
      // One statement reads the record and its parent.
      [foreign, `/${NO_ID}`, 'book_not_found'],
      ['malformed', `/${NO_ID}`, 'shelf_not_found'],
      [own, `/${NO_ID}`, 'book_not_found'],
      [own, '/malformed', 'book_not_found'],
      [own, `/${NO_ID}/transitions`, 'book_not_found'],
    ] as const)
      expect([shelf, path, (await shop.call('bob', 'GET', `shelves/${shelf}/books${path}`)).body.code]).toEqual([shelf, path, code]);
    expect((await shop.call('bob', 'POST', `shelves/${foreign}/books`, { title: 'x' })).body.code).toBe('shelf_not_found');
    expect((await shop.call('bob', 'POST', `shelves/${own}/books/${NO_ID}/lend`)).body.code).toBe('book_not_found');
  });

  test('bulk: the response and each item have its code, in both modes', async () => {
    for (const [path, item] of [
      ['bulk-update', { name: 'x' }],
      ['bulk-delete', {}],
    ] as const)
      for (const id of ['malformed', NO_ID, foreign]) {
        const items = [{ id, ...item }];
        const atomic = await shop.call('bob', 'POST', `shelves/${path}`, { items });
        expect([atomic.status, atomic.body.code, atomic.body.errors[0].code]).toEqual([404, 'shelf_not_found', 'shelf_not_found']);
        const partial = await shop.call('bob', 'POST', `partly/${path}`, { items });
        expect([partial.status, partial.body.results[0].status, partial.body.results[0].code]).toEqual([207, 404, 'shelf_not_found']);
      }
  });

  test('nested records of another parent stay faults of the body', async () => {
    const created = (await shop.call('ann', 'PATCH', `shelves/${foreign}`, { books: [{ title: 'one' }] })).body;
    expect(created.code).toBe(undefined);
    const [book] = (await shop.call('ann', 'GET', `shelves/${foreign}/books`)).body.items as { id: string }[];
    for (const id of [book?.id, NO_ID]) {
      const { status, body } = await shop.call('bob', 'PATCH', `shelves/${own}`, { books: [{ id, title: 'mine' }] });
      expect([id, status, body.code]).toEqual([id, 422, 'validation_error']);
    }
  });

  test('programs get it, too', async () => {
    const user = { id: NO_ID, username: 'x', email: null, is_active: true, is_staff: false, is_superuser: false };
    const programs = crudOf(shop.app, shelfResource).as({ user, tenant: null });
    await expect(programs.find(foreign)).rejects.toMatchObject({ code: 'shelf_not_found' });
    await expect(programs.write().update(foreign, { name: 'x' })).rejects.toMatchObject({ code: 'shelf_not_found' });
  });

  test('the document has its code', async () => {
    const document = (await shop.inject('/openapi.json')).json() as {
      readonly paths: Record<string, Record<string, { readonly responses: Record<string, { readonly $ref: string }> }>>;
      readonly components: { readonly responses: Record<string, object> };
    };
    for (const method of ['get', 'put', 'patch', 'delete']) {
      const name = document.paths['/v1/shelves/{id}']?.[method]?.responses['404']?.$ref.split('/').at(-1) ?? '';
      const response = JSON.stringify(document.components.responses[name]);
      expect(response).toContain('"shelf_not_found"');
    }
  });
});

describe('an error for missing rows that does not start', () => {
  test.each<[string, unknown]>([
    ['another status', errors.shelf_is_full],
    ['a code', 'shelf_not_found'],
    ['an error that was made', coreErrors.not_found()],
  ])('%s', (_, missing) => {
    expect(() => resource(shelves, { owner: 'owner_id', missing } as never)).toThrow(/missing is .*; use an error with status 404/);
  });
});
