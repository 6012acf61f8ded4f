import { afterAll, beforeAll, expect, test } from 'vitest';
import { byName } from '../../../test/crud/shop.ts';
import { createTable, insertMany, migration, model, t } from '../../db/index.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { whereSql } from '../../db/sql/where/where-sql.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { testApp, type TestApp } from '../../testing/test-app.ts';
import { CrudController, resource, type AccessPage, type AccessWrite, type RowAccess } from '../index.ts';

const notes = model('notes', {
  id: t.uuidv7().pk(),
  text: t.text(40),
  /** Who may what, as text: `bob:view,bob:change`. */
  allows: t.text(200).dbDefault(''),
  status: t.enum(['draft', 'sent']).dbDefault('draft'),
});

const pages: AccessPage[] = [];
const writes: Pick<AccessWrite, 'operation' | 'before' | 'after'>[] = [];
let narrowing: { where: Where; isComplete: boolean } | undefined;

const ACTIONS: Readonly<Record<string, string | null>> = {
  list: 'view',
  query: 'view',
  retrieve: 'view',
  transitions: 'view',
  create: null,
  update: 'change',
  partialUpdate: 'change',
  destroy: 'delete',
  send: 'send',
};

const access: RowAccess = {
  name: 'allows',
  actionOf: (operation) => ACTIONS[operation],
  condition: ({ caller }, action) => whereSql('this.allows like $1', [`%${caller.user?.username}:${action}%`]) as Where,
  page: async (_context, page) => {
    pages.push(page);
    return narrowing;
  },
  written: async ({ db, operation, before, after, caller }) => {
    writes.push({ operation, before, after });
    if (operation === 'create')
      await db.query('update notes set allows = $2 where id = $1', [after?.['id'], `${caller.user?.username}:view`]);
  },
};

const noteResource = resource(notes, {
  access,
  input: ['text'],
  state: 'status',
  transitions: { send: { from: ['draft'], to: 'sent' } },
});
class NoteController extends CrudController(noteResource, { permission: isAuthenticated }) {}

const shop = {
  name: 'notes',
  models: [notes],
  migrations: [migration('0001_initial', [createTable('notes', notes.columns)])],
};

describeDatabases('rows given by an access rule', (database) => {
  let app: TestApp;
  let ids: readonly string[];
  const call = async (method: string, path: string, payload?: object) => {
    const response = await app.inject({
      method: method as 'GET',
      url: `/v1/notes${path}`,
      headers: { 'x-user': 'bob' },
      ...(payload && { payload }),
    });
    return { status: response.statusCode, body: response.body === '' ? undefined : JSON.parse(response.body) };
  };
  beforeAll(async () => {
    app = await testApp({
      authenticators: [byName],
      database: database.db,
      mount: { '/v1': { '/notes': NoteController } },
      modules: [shop],
    });
    const rows = await insertMany(database.db, notes, [
      { text: 'hidden' },
      { text: 'seen', allows: 'bob:view' },
      { text: 'changed', allows: 'bob:view,bob:change,bob:send,bob:delete' },
      { text: 'blind', allows: 'bob:change,bob:delete,bob:send' },
    ]);
    ids = rows.map(({ id }) => id);
  });
  afterAll(() => app.close());

  test('92: 404 without view, 403 that names the action with view alone, and the write with both', async () => {
    writes.length = 0;
    const [hidden, seen, changed, blind] = ids;
    const writesOf = (id: string | undefined) => [
      call('PATCH', `/${id}`, { text: 'new' }),
      call('PUT', `/${id}`, { text: 'new' }),
      call('DELETE', `/${id}`),
      call('POST', `/${id}/send`),
    ];
    for (const id of [hidden, blind]) {
      const missing = await call('PATCH', '/01890000-0000-7000-8000-000000000000', { text: 'new' });
      for (const answer of await Promise.all(writesOf(id))) {
        expect(answer.status).toBe(404);
        expect({ ...answer.body, request_id: '' }).toEqual({ ...missing.body, request_id: '' });
      }
    }
    const refused = await Promise.all(writesOf(seen));
    expect(refused.map(({ status, body }) => [status, body.code, body.action])).toEqual([
      [403, 'permission_denied', 'change'],
      [403, 'permission_denied', 'change'],
      [403, 'permission_denied', 'delete'],
      [403, 'permission_denied', 'send'],
    ]);
    expect((await call('GET', `/${seen}/transitions`)).body).toEqual({ items: [] });
    expect((await call('GET', `/${changed}/transitions`)).body).toEqual({ items: [{ name: 'send', to: 'sent' }] });
    expect((await call('PATCH', `/${changed}`, { text: 'new' })).body).toEqual({
      id: changed,
      text: 'new',
      allows: 'bob:view,bob:change,bob:send,bob:delete',
      status: 'draft',
    });
    expect((await call('POST', `/${changed}/send`)).status).toBe(200);
    expect((await call('DELETE', `/${changed}`)).status).toBe(204);
    expect(writes.map(({ operation }) => operation)).toEqual(['update', 'update', 'destroy']);
  });

  test('the access hears of a new row before the row is checked to be visible', async () => {
    const made = await call('POST', '', { text: 'mine' });
    expect(made.status).toBe(201);
    expect((await call('GET', `/${made.body.id}`)).status).toBe(200);
  });

  test('92: a list is filtered in SQL: a page is read by the narrowing, asked for again when it comes out short, and then read without it', async () => {
    pages.length = 0;
    const all = (await call('GET', '')).body.items.map(({ text }: { text: string }) => text);
    expect(all).toEqual(['mine', 'seen']);
    expect(pages).toEqual([{ limit: 51, isFiltered: false, byKey: { descending: true } }]);
    narrowing = { where: { text: 'mine' } as Where, isComplete: true };
    expect((await call('GET', '')).body.items.map(({ text }: { text: string }) => text)).toEqual(['mine']);
    narrowing = { where: { text: 'mine' } as Where, isComplete: false };
    pages.length = 0;
    expect((await call('GET', '')).body.items.map(({ text }: { text: string }) => text)).toEqual(all);
    expect(pages.map(({ isRetry }) => isRetry)).toEqual([undefined, true]);
    narrowing = { where: { text: 'hidden' } as Where, isComplete: true };
    expect((await call('GET', '')).body.items).toEqual([]);
    narrowing = undefined;
  });

  test('an operation without an action fails at start-up', async () => {
    const partial = { ...access, actionOf: (operation: string) => (operation === 'send' ? undefined : ACTIONS[operation]) };
    const Partial = CrudController(resource(notes, { ...noteResource.options, access: partial } as never), { permission: isAuthenticated });
    await expect(
      (async () =>
        testApp({ authenticators: [byName], mount: { '/v1': { '/notes': class Notes extends Partial {} } }, modules: [shop] }))(),
    ).rejects.toThrow(/E024.*the operation "send" is not mapped to an action/s);
  });
});
