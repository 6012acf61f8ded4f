import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { board as boardModule, boardResource, cardResource, commentResource } from '../../test/crud/board.ts';
import { startShop, type Person, type ShopApp } from '../../test/crud/shop.ts';
import { createTable, migration, model, t } from '../db/index.ts';
import { PostgresTransaction } from '../db/engine/postgres/transaction.ts';
import { SqliteTransaction } from '../db/engine/sqlite/transaction.ts';
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
const memo = { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(80), slug: t.text(120).nullable().unique() };
const memos = model('memos', memo);
const hookedMemos = model('hooked_memos', memo);
const memoModule = {
  name: 'memos',
  models: [memos, hookedMemos],
  migrations: [migration('0001_memos', [createTable('memos', memos.columns), createTable('hooked_memos', hookedMemos.columns)])],
};
/** A create of it calls no code. */
const memoResource = resource(memos, { owner: 'owner_id' });
class Memos extends CrudController(memoResource, { permission: isAuthenticated }) {}
const inHook: { run: (() => Promise<unknown>) | undefined } = { run: undefined };
const hooks = {
  create: async ({ input }: { input: object }, next: (values: never) => Promise<never>) => (await inHook.run?.(), next(input as never)),
};
class HookedMemos extends CrudController(resource(hookedMemos, { owner: 'owner_id', hooks: hooks as never }), {
  permission: isAuthenticated,
}) {}
/** Its create tries again without a slug when the slug is taken. */
class PatientMemos extends CrudController(memoResource, { permission: isAuthenticated }) {
  override create = this.wrap('create', {}, async (context, next) => {
    try {
      return await next();
    } catch {
      (context.body as { slug?: string }).slug = undefined as never;
      return next();
    }
  });
}
class Comments extends CrudController(commentResource, { permission: allowAny }) {}

let made = 0;
const newKey = () => `crud-${(made += 1)}-${Math.random()}`;

describeDatabases('idempotency of generic operations', (database) => {
  let shop: ShopApp;
  beforeAll(async () => {
    const mount = {
      '/v1': {
        '/boards': Boards,
        '/required': Required,
        '/off': Off,
        '/cards': Cards,
        '/comments': Comments,
        '/gated': Gated,
        '/memos': Memos,
        '/hooked': HookedMemos,
        '/patient': PatientMemos,
      },
    };
    shop = await startShop({ database: database.db, mount, modules: [boardModule, noteModule, memoModule] });
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

  const memosOf = (title: string) => database.db.query('select 1 from memos where title = $1', [title]);
  const recordsOf = (key: string) => database.db.query('select state, status from kit_idempotency where key = $1', [key]);
  const setRecord = (key: string, assignments: string, at: Date) =>
    database.db.execute(`update kit_idempotency set ${assignments} where key = $1`, [key, at]);
  const soon = () => new Date(Date.now() + 3_600_000);
  const before = () => new Date(Date.now() - 1000);
  const LOCK = database.dialect === 'sqlite' ? 'select 1' : 'lock table memos in exclusive mode';

  /** Opens a transaction that lets nobody write memos: on SQLite it holds the writer. Returns the function that ends it. */
  const openTransaction = async (): Promise<() => Promise<void>> => {
    const [open, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const other = database.db.transaction(async (tx) => {
      await tx.query(LOCK);
      open.resolve();
      await end.promise;
    });
    await open.promise;
    return () => (end.resolve(), other);
  };

  describe('one key', () => {
    test('56, 57: twenty creates at once that call no code make one row, also while another transaction is open', async () => {
      const [key, queued] = [newKey(), newKey()];
      const sendTwenty = (used: string) => Array.from({ length: 20 }, () => send(used, 'POST', 'memos', { title: used }));
      const endOther = await openTransaction();
      const behind = sendTwenty(queued);
      await endOther();
      const alone = await Promise.all(sendTwenty(key));
      for (const [used, answers] of [[key, alone] as const, [queued, await Promise.all(behind)] as const]) {
        expect(await memosOf(used)).toHaveLength(1);
        const fresh = answers.filter(({ status, headers }) => status === 201 && headers['idempotent-replayed'] === undefined);
        expect(fresh).toHaveLength(1);
        const others = answers.filter((each) => each !== fresh[0]).map(({ status, text }) => (status === 201 ? text : String(status)));
        expect([fresh[0]?.text, '409']).toEqual(expect.arrayContaining([...new Set(others)]));
        const again = await send(used, 'POST', 'memos', { title: used });
        expect([again.status, again.text, again.headers['etag'], again.headers['location'], again.headers['idempotent-replayed']]).toEqual([
          201,
          fresh[0]?.text,
          fresh[0]?.headers['etag'],
          fresh[0]?.headers['location'],
          'true',
        ]);
        expect((await send(used, 'POST', 'memos', { title: 'other' })).body.code).toBe('idempotency_key_reused');
        expect((await send(used, 'POST', 'memos', { title: used }, 'bob')).headers['idempotent-replayed']).toBeUndefined();
      }
    });

    test('60: a create that calls no code and is refused leaves no row; its 409 is replayed, before the row is tried again', async () => {
      const [key, taken] = [newKey(), newKey()];
      expect((await send(newKey(), 'POST', 'memos', { title: 'first', slug: taken })).status).toBe(201);
      const refused = await send(key, 'POST', 'memos', { title: key, slug: taken });
      expect([refused.status, await memosOf(key), await recordsOf(key)]).toEqual([409, [], [{ state: 'complete', status: 409 }]]);
      await database.db.query('delete from memos where slug = $1', [taken]);
      const again = await send(key, 'POST', 'memos', { title: key, slug: taken });
      expect([again.status, again.text, again.headers['idempotent-replayed']]).toEqual([409, refused.text, 'true']);
      expect(await memosOf(key)).toEqual([]);
      const invalid = newKey();
      for (const replayed of [undefined, 'true']) {
        const answer = await send(invalid, 'POST', 'memos', { title: 7 });
        expect([answer.status, answer.headers['idempotent-replayed']]).toEqual([422, replayed]);
      }
    });

    test('a running claim is 409, also for a create that calls no code; its lease over, or the record expired, the key is taken over', async () => {
      const key = newKey();
      const post = (title = key) => send(key, 'POST', 'memos', { title });
      await post();
      const running = `state = 'running', status = null, headers = null, body = null, lease_until = $2`;
      await setRecord(key, running, soon());
      const waiting = await post();
      expect([waiting.status, waiting.body.code, waiting.headers['retry-after']]).toEqual([409, 'request_in_progress', '5']);
      expect((await post('another')).body.code).toBe('idempotency_key_reused');
      await setRecord(key, running, before());
      expect((await post('another')).body.code).toBe('idempotency_key_reused');
      expect((await post()).headers['idempotent-replayed']).toBeUndefined();
      expect((await post()).headers['idempotent-replayed']).toBe('true');
      expect(await memosOf(key)).toHaveLength(2);
      await setRecord(key, 'expires_at = $2', before());
      const free = await post('another');
      expect([free.status, free.headers['idempotent-replayed']]).toEqual([201, undefined]);
      expect((await post('another')).text).toBe(free.text);
    });
  });

  test('a create with a hook claims its key first: others see it running while the hook works', async () => {
    const key = newKey();
    const seen: unknown[] = [];
    inHook.run = async () => void seen.push(...(await recordsOf(key)));
    expect((await send(key, 'POST', 'hooked', { title: key })).status).toBe(201);
    inHook.run = undefined;
    expect([seen, await recordsOf(key)]).toEqual([[{ state: 'running', status: null }], [{ state: 'complete', status: 201 }]]);
  });

  test('a replay does not look at the row again, and the key of another request is rejected', async () => {
    const [key, slug] = [newKey(), newKey()];
    const first = await send(key, 'POST', 'memos', { title: key, slug });
    const other = newKey();
    expect((await send(key, 'POST', 'memos', { title: other })).body.code).toBe('idempotency_key_reused');
    expect(await memosOf(other)).toEqual([]);
    await database.db.execute('delete from memos where slug = $1', [slug]);
    const replayed = await send(key, 'POST', 'memos', { title: key, slug });
    expect([replayed.status, replayed.text, replayed.headers['idempotent-replayed']]).toEqual([201, first.text, 'true']);
    expect(await memosOf(key)).toEqual([]);
  });

  test('an audited create with a key needs no savepoint; one that code is wrapped around has it, so that the code may try again', async () => {
    const savepoints = vi.spyOn((database.dialect === 'sqlite' ? SqliteTransaction : PostgresTransaction).prototype, 'savepoint');
    const [slug, key] = [newKey(), newKey()];
    expect((await send(newKey(), 'POST', 'memos', { title: 'first', slug })).status).toBe(201);
    expect((await send(newKey(), 'POST', 'hooked', { title: 'first' })).status).toBe(201);
    expect(savepoints).not.toHaveBeenCalled();
    expect((await send(key, 'POST', 'patient', { title: key, slug })).status).toBe(201);
    expect(savepoints).toHaveBeenCalled();
    savepoints.mockRestore();
    expect([await memosOf(key), await recordsOf(key)]).toEqual([[expect.anything()], [{ state: 'complete', status: 201 }]]);
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

  test('a key is required where the controller says so, refused where it says no, and not offered to anonymous callers', async () => {
    expect((await shop.call('ann', 'POST', 'required', { title: 'x' })).body.code).toBe('idempotency_key_required');
    const key = newKey();
    expect((await send(key, 'POST', 'required', { title: 'x' })).status).toBe(201);
    expect((await send(key, 'POST', 'off', { title: key })).body.code).toBe('idempotency_not_supported');
    expect(await titled(key)).toHaveLength(0);
    const routes = new Map(shop.app.routes.map((route) => [`${route.controller}.${route.field}`, route.idempotency !== undefined]));
    expect(
      ['Boards.create', 'Boards.destroy', 'Boards.import', 'Boards.update', 'Boards.list', 'Off.create', 'Comments.create'].map((name) =>
        routes.get(name),
      ),
    ).toEqual([true, true, true, false, false, false, false]);
  });
});
