import { afterAll, beforeAll, expect, test } from 'vitest';
import { board as boardModule, boardResource, cardResource, commentResource } from '../../test/crud/board.ts';
import { startShop, type Person, type ShopApp } from '../../test/crud/shop.ts';
import { createTable, migration, model, t } from '../db/index.ts';
import { allowAny, isAuthenticated, Permission } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController, resource, visibleTo } from './index.ts';

const bulk = { create: true } as const;
class Boards extends CrudController(boardResource, {
  permission: isAuthenticated,
  restore: true,
  bulk,
  import: { formats: ['csv'] },
}) {}
class Required extends CrudController(boardResource, { permission: isAuthenticated, idempotency: 'required' }) {}
class Off extends CrudController(boardResource, { permission: isAuthenticated, idempotency: false }) {}
class Cards extends CrudController(cardResource, { permission: isAuthenticated }) {}
const notes = model('notes', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(80), color: t.text(20).nullable() });
const noteModule = { name: 'notes', models: [notes], migrations: [migration('0001_notes', [createTable('notes', notes.columns)])] };
const gate = { isOpen: true, showsColor: true };
const isOpen = new Permission({ name: 'isOpen', evaluate: () => gate.isOpen });
const seesColor = new Permission({ name: 'seesColor', evaluate: () => gate.showsColor });
class Gated extends CrudController(resource(notes, { owner: 'owner_id', fields: { color: visibleTo(seesColor) } }), {
  permission: isAuthenticated.and(isOpen),
}) {}
class Comments extends CrudController(commentResource, { permission: allowAny }) {}

let made = 0;
const newKey = () => `crud-${(made += 1)}-${Math.random()}`;

describeDatabases('idempotency of generic operations', (database) => {
  let shop: ShopApp;
  beforeAll(async () => {
    const mount = {
      '/v1': { '/boards': Boards, '/required': Required, '/off': Off, '/cards': Cards, '/comments': Comments, '/gated': Gated },
    };
    shop = await startShop({ database: database.db, mount, modules: [boardModule, noteModule] });
  });
  afterAll(() => shop.close());
  const send = (key: string, method: string, path: string, body?: object, person: Person = 'ann') =>
    shop.call(person, method, path, body, { 'idempotency-key': key });
  const titled = (title: string) => database.db.query('select 1 from boards where title = $1', [title]);

  test('56, 57: twenty creates with one key make one row; a replay has the body, ETag and Location of the first', async () => {
    const key = newKey();
    const answers = await Promise.all(Array.from({ length: 20 }, () => send(key, 'POST', 'boards', { title: key })));
    expect(await titled(key)).toHaveLength(1);
    const first = answers.find(({ status, headers }) => status === 201 && headers['idempotent-replayed'] === undefined);
    const again = await send(key, 'POST', 'boards', { title: key });
    const facts = (answer: typeof again | undefined) => [
      answer?.status,
      answer?.text,
      answer?.headers['etag'],
      answer?.headers['location'],
    ];
    expect(facts(again)).toEqual(facts(first));
    expect([again.headers['idempotent-replayed'], again.headers['vary'], again.headers['cache-control']]).toEqual([
      'true',
      first?.headers['vary'],
      first?.headers['cache-control'],
    ]);
    expect((await send(key, 'POST', 'boards', { title: key }, 'bob')).headers['idempotent-replayed']).toBeUndefined();
  });

  test('bulk and restore take keys; a repeated DELETE replays its 204, before the row is looked up', async () => {
    const key = newKey();
    const items = { items: [{ title: key }, { title: key }] };
    const [first, second] = [await send(key, 'POST', 'boards/bulk', items), await send(key, 'POST', 'boards/bulk', items)];
    expect([first.status, second.text, second.headers['idempotent-replayed']]).toEqual([201, first.text, 'true']);
    expect(await titled(key)).toHaveLength(2);
    const { id } = first.body.items[0];
    const gone = newKey();
    expect((await send(gone, 'DELETE', `boards/${id}`)).status).toBe(204);
    expect((await send(gone, 'DELETE', `boards/${id}`)).status).toBe(204);
    expect((await send(newKey(), 'DELETE', `boards/${id}`)).status).toBe(404);
    const back = newKey();
    const [once, twice] = [await send(back, 'POST', `boards/${id}/restore`), await send(back, 'POST', `boards/${id}/restore`)];
    expect([once.status, twice.status, twice.text]).toEqual([200, 200, once.text]);
  });

  test('60: a 422 of a reference and a 409 of a unique value are replayed, and nothing stays of them', async () => {
    const key = newKey();
    const card = { board_id: '01890000-0000-7000-8000-000000000000', title: 'x' };
    const [first, second] = [await send(key, 'POST', 'cards', card), await send(key, 'POST', 'cards', card)];
    expect([first.status, second.status, second.text, second.headers['idempotent-replayed']]).toEqual([422, 422, first.text, 'true']);
    const [slug, taken] = [newKey(), newKey()];
    expect((await send(newKey(), 'POST', 'boards', { title: 'x', slug })).status).toBe(201);
    const refused = await send(taken, 'POST', 'boards', { title: taken, slug });
    expect([refused.status, (await send(taken, 'POST', 'boards', { title: taken, slug })).text]).toEqual([409, refused.text]);
    expect(await titled(taken)).toEqual([]);
  });

  test('an import takes keys: the same bytes are replayed and written once, other bytes are refused', async () => {
    const key = newKey();
    const file = (payload: string, query = '') =>
      shop.app.inject({
        method: 'POST',
        url: `/v1/boards/import${query}`,
        payload,
        headers: { 'x-user': 'ann', 'content-type': 'text/csv', 'idempotency-key': key },
      });
    const [first, second] = [await file(`title\n${key}\n`), await file(`title\n${key}\n`)];
    expect([first.statusCode, first.json<{ created: number }>().created]).toEqual([201, 1]);
    expect([second.statusCode, second.body, second.headers['idempotent-replayed']]).toEqual([201, first.body, 'true']);
    expect((await file('title\nother\n')).json()).toMatchObject({ status: 422, code: 'idempotency_key_reused' });
    expect((await file(`title\n${key}\n`, '?dry_run=true')).json()).toMatchObject({ status: 422, code: 'idempotency_key_reused' });
    expect(await titled(key)).toHaveLength(1);
    const many = newKey();
    const sent = Array.from({ length: 10 }, () =>
      shop.app.inject({
        method: 'POST',
        url: '/v1/boards/import',
        payload: `title\n${many}\n`,
        headers: { 'x-user': 'ann', 'content-type': 'text/csv', 'idempotency-key': many },
      }),
    );
    const statuses = (await Promise.all(sent)).map(({ statusCode }) => statusCode);
    expect(statuses.every((status) => status === 201 || status === 409)).toBe(true);
    expect(await titled(many)).toHaveLength(1);
  });

  test('412 and 403 are not kept: the same key works once the tag is right, and permissions are asked at every attempt', async () => {
    const { id, version } = (await shop.call('ann', 'POST', 'boards', { title: 'gone' })).body as { id: string; version: number };
    await shop.call('ann', 'DELETE', `boards/${id}`);
    const key = newKey();
    const restore = (tag: number) =>
      shop.call('ann', 'POST', `boards/${id}/restore`, undefined, { 'idempotency-key': key, 'if-match': `"${tag}"` });
    expect((await restore(version + 7)).status).toBe(412);
    expect((await restore(version + 1)).status).toBe(200);
    expect((await restore(version + 1)).headers['idempotent-replayed']).toBe('true');

    const closing = newKey();
    const make = () => send(closing, 'POST', 'gated', { title: closing, color: 'red' });
    expect((await make()).status).toBe(201);
    gate.isOpen = false;
    expect((await make()).status).toBe(403);
    gate.isOpen = true;
    expect((await make()).headers['idempotent-replayed']).toBe('true');
    // Who sees more or less than at the first attempt does not get its response.
    gate.showsColor = false;
    expect((await make()).body.code).toBe('response_not_kept');
    gate.showsColor = true;
    expect(await database.db.query('select 1 from notes where title = $1', [closing])).toHaveLength(1);
  });

  test('a key is required where the controller says so, ignored where it says no, and not offered to anonymous callers', async () => {
    expect((await shop.call('ann', 'POST', 'required', { title: 'x' })).body.code).toBe('idempotency_key_required');
    const key = newKey();
    expect((await send(key, 'POST', 'required', { title: 'x' })).status).toBe(201);
    await send(key, 'POST', 'off', { title: key });
    await send(key, 'POST', 'off', { title: key });
    expect(await titled(key)).toHaveLength(2);
    const routes = new Map(shop.app.routes.map((route) => [`${route.controller}.${route.field}`, route.idempotency !== undefined]));
    expect(
      ['Boards.create', 'Boards.destroy', 'Boards.import', 'Boards.update', 'Boards.list', 'Off.create', 'Comments.create'].map((name) =>
        routes.get(name),
      ),
    ).toEqual([true, true, true, false, false, false, false]);
  });
});
