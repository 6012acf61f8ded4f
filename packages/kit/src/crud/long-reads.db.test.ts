import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Authenticator } from '../auth/request/authenticator.ts';
import { createTable, migration, model, t, type Database } from '../db/index.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { describeDatabases, testApp, type TestApp } from '../testing/index.ts';
import { count, CrudController, resource } from './index.ts';

const books = model(
  'books',
  { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(80), pages: t.int() },
  { indexes: [{ columns: ['owner_id', '-id'] }] },
);
const bookResource = resource(books, { owner: 'owner_id' });
class BookController extends CrudController(bookResource, {
  permission: isAuthenticated,
  search: ['title'],
  filters: { title: ['contains'], pages: ['eq'] },
  ordering: { by: ['pages'] },
  stats: { metrics: { books: count() } },
  export: ['csv'],
}) {}

const OWNER = '00000000-0000-7000-8000-000000000001';
const byHeader: Authenticator = {
  name: 'header',
  securityScheme: {},
  authenticate: () => ({
    user: { id: OWNER, username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false },
    scheme: 'header',
    scopes: null,
  }),
};

const LONG = ['?search=a', '?title__contains=a', '?pages=3', '?ordering=pages', '/stats'];

describeDatabases('reads of generic CRUD that no index serves', (database) => {
  describe.runIf(database.dialect === 'postgres')('while the table is locked', () => {
    let kit: TestApp;
    let db: Database;
    let address: string;

    beforeAll(async () => {
      db = await database.open({ poolMax: 20 });
      kit = await testApp({
        database: db,
        authenticators: [byHeader],
        timeoutMs: 1_500,
        modules: [
          {
            name: 'books',
            models: [books],
            migrations: [migration('0001_initial', [createTable('books', books.columns, { indexes: [{ columns: ['owner_id', '-id'] }] })])],
          },
        ],
        mount: { '/v1': { '/books': BookController } },
      });
      address = await kit.listen();
    });
    afterAll(async () => {
      await kit.close();
      await db.close();
    });

    const waiting = async () => {
      const text = `select query from pg_stat_activity where wait_event_type = 'Lock' and pid <> pg_backend_pid()`;
      return (await db.query<{ query: string }>(text)).map(({ query }) => query);
    };

    test('end on the server with the time of their route, and those of a closed client at once', async () => {
      await database.db.transaction(async (tx) => {
        await tx.query('lock table books in access exclusive mode');
        const answers = await Promise.all(LONG.map((path) => fetch(`${address}/v1/books${path}`)));
        expect(answers.map(({ status }) => status)).toEqual(LONG.map(() => 503));
        await vi.waitFor(async () => expect(await waiting()).toEqual([]), { timeout: 60_000 });
        const closing = new AbortController();
        const exported = fetch(`${address}/v1/books/export`, { signal: closing.signal }).catch(() => 'closed');
        await vi.waitFor(async () => expect(await waiting()).toHaveLength(1), { timeout: 60_000 });
        closing.abort();
        expect(await exported).toBe('closed');
        await vi.waitFor(async () => expect(await waiting()).toEqual([]), { timeout: 60_000 });
      });
      const after = await fetch(`${address}/v1/books?search=a`);
      expect(after.status).toBe(200);
      await vi.waitFor(() => expect(db.pool.used).toBe(0), { timeout: 60_000 });
    });
  });
});
