import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import { createTable, insert, migration, model, remove, t, update } from '../db/index.ts';
import { Controller } from '../http/compile/controller.ts';
import { route } from '../http/declare/route.ts';
import { allowAny } from '../permissions/built-ins.ts';
import { describeDatabases } from '../testing/databases.ts';
import { createApp } from './assemble/create-app.ts';
import { migrateApp } from './data/migration-modules.ts';
import type { App } from './declare/module.ts';

const authors = model('authors', { id: t.int().pk(), email: t.text(40).unique() });
const books = model(
  'books',
  {
    id: t.int().pk(),
    author_id: t.ref<number>(() => authors),
    shelf: t.text(10),
    place: t.int(),
    state: t.enum(['new', 'old']).default('new'),
    title: t.text(20),
  },
  { indexes: [{ columns: ['shelf', 'place'], unique: true }], checks: { place_positive: 'place > 0' } },
);
const library = {
  name: 'library',
  models: [authors, books],
  migrations: [
    migration('0001_initial', [
      createTable('authors', authors.columns),
      createTable(
        'books',
        { ...books.columns, author_id: t.ref<number>('authors', { type: t.int() }) },
        { indexes: [{ columns: ['shelf', 'place'], unique: true }], checks: { place_positive: 'place > 0' } },
      ),
    ]),
  ],
};
const Body = z.record(z.string(), z.unknown());
const Key = z.object({ id: z.coerce.number() });

class BookController extends Controller {
  create = route.post(
    '/',
    { body: Body, status: 201, permission: allowAny },
    async ({ db, body }) => void (await insert(db, books, body as never)),
  );
  author = route.post(
    '/authors',
    { body: Body, status: 201, permission: allowAny },
    async ({ db, body }) => void (await insert(db, authors, body as never)),
  );
  change = route.patch(
    '/:id',
    { params: Key, body: Body, permission: allowAny },
    async ({ db, body, params }) => void (await db.transaction((tx) => update(tx, books, params.id, body))),
  );
  destroy = route.delete(
    '/authors/:id',
    { params: Key, permission: allowAny },
    async ({ db, params }) => void (await remove(db, authors, params.id)),
  );
  byHand = route.post('/by-hand', { body: Body, permission: allowAny }, async ({ db, body }) => {
    await db.query('insert into authors (id, email) values ($1, $2)', [body['id'], body['email']]);
  });
}

describeDatabases('a rule of the database that a handler broke', (database) => {
  let app: App;
  beforeAll(async () => {
    app = createApp({
      database: database.url,
      modules: [library],
      mount: { '/v1': { '/books': BookController } },
      log: { level: 'silent' },
    });
    await migrateApp(app);
    await app.ready();
    expect((await call('POST', '/v1/books/authors', { id: 1, email: 'a@b.c' })).status).toBe(201);
    expect((await call('POST', '/v1/books', { id: 1, author_id: 1, shelf: 'a', place: 1, title: 'one' })).status).toBe(201);
  });
  afterAll(() => app.close());

  const call = async (method: 'POST' | 'PATCH' | 'DELETE', url: string, payload?: object) => {
    const response = await app.inject({ method, url, ...(payload === undefined ? {} : { payload }) });
    return { status: response.statusCode, text: response.body, body: response.body === '' ? undefined : response.json<object>() };
  };
  const book = { id: 2, author_id: 1, shelf: 'b', place: 1, title: 'two' };

  test.each([
    ['a value that another row has', 'POST', '/v1/books/authors', { id: 2, email: 'a@b.c' }, 409, 'conflict', [['email', 'not_unique']]],
    ['the same in SQL by hand', 'POST', '/v1/books/by-hand', { id: 3, email: 'a@b.c' }, 409, 'conflict', [['email', 'not_unique']]],
    ['a key that another row has', 'POST', '/v1/books/authors', { id: 1, email: 'x' }, 409, 'conflict', [['id', 'not_unique']]],
    [
      'a pair that another row has',
      'POST',
      '/v1/books',
      { ...book, shelf: 'a' },
      409,
      'conflict',
      [
        ['shelf', 'not_unique'],
        ['place', 'not_unique'],
      ],
    ],
    [
      'a reference to no row',
      'POST',
      '/v1/books',
      { ...book, author_id: 9 },
      422,
      'validation_error',
      [['author_id', 'unknown_reference']],
    ],
    ['the same in a transaction', 'PATCH', '/v1/books/1', { author_id: 9 }, 422, 'validation_error', [['author_id', 'unknown_reference']]],
    ['a missing value', 'POST', '/v1/books/by-hand', { id: 4 }, 422, 'validation_error', [['email', 'required']]],
  ] as const)('%s is a fault at the field', async (_name, method, url, payload, status, code, fields) => {
    const answer = await call(method, url, payload);
    expect(answer).toMatchObject({ status, body: { code } });
    expect((answer.body as { errors: unknown }).errors).toEqual(
      fields.map(([name, fault]) => ({ location: ['body', name], code: fault, message: expect.any(String) })),
    );
    expect(answer.text).not.toMatch(/constraint|insert into|sqlite|postgres|email_unique|place_unique|_fkey|_pkey|a@b/i);
  });

  test('a check of the table is a 422, and a row that others refer to stays, with a 409', async () => {
    expect(await call('POST', '/v1/books', { ...book, place: -1 })).toMatchObject({ status: 422, body: { errors: [{ code: 'invalid' }] } });
    const answer = await call('DELETE', '/v1/books/authors/1');
    expect(answer).toMatchObject({ status: 409, body: { code: 'still_referenced' } });
    expect(answer.text).not.toMatch(/constraint|foreign key|_fkey/i);
  });

  test('of ten requests at once with one value one is stored, the others are 409', async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) => call('POST', '/v1/books/authors', { id: 100 + index, email: 'race' })),
    );
    expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([201, ...Array.from({ length: 9 }, () => 409)]);
  });
});
