import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { board as boardModule, boardResource, cardResource, cards, commentResource, told } from '../../../test/crud/board.ts';
import { people, startShop, type Person, type ShopApp } from '../../../test/crud/shop.ts';
import { observeQueries } from '../../db/engine/query-observer.ts';
import { isAuthenticated, isStaff } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { CrudController, one, resource, writableBy } from '../index.ts';

const bulk = { create: true, update: true, destroy: true } as const;
const UNKNOWN = '01890000-0000-7000-8000-000000000000';

class Boards extends CrudController(boardResource, { permission: isAuthenticated, bulk, restore: true, expand: ['cards'] }) {}
class Partial extends CrudController(boardResource, { permission: isAuthenticated, bulk: { ...bulk, mode: 'partial' } }) {}
class Strict extends CrudController(boardResource, { permission: isAuthenticated, bulk, etag: 'required' }) {}
class Cards extends CrudController(cardResource, { permission: isAuthenticated, bulk, expand: ['board'] }) {}
class Below extends CrudController(cardResource, { permission: isAuthenticated, bulk, parent: { relation: 'board' } }) {}
class Comments extends CrudController(commentResource, { permission: isAuthenticated }) {}

const mount = {
  '/v1': {
    '/boards': Boards,
    '/partial': Partial,
    '/strict': Strict,
    '/cards': Cards,
    '/boards/:board_id/cards': Below,
    '/comments': Comments,
  },
};

// oxlint-disable-next-line typescript/no-explicit-any -- a response of any shape
type Json = any;

describeDatabases('bulk operations', (database) => {
  let shop: ShopApp;
  beforeAll(async () => {
    shop = await startShop({ database: database.db, mount, modules: [boardModule] });
  });
  beforeEach(() => {
    for (const list of Object.values(told)) list.length = 0;
  });
  afterAll(() => shop.close());

  const post = (path: string, body: object, person: Person = 'ann') => shop.call(person, 'POST', path, body);
  const make = async (person: Person = 'ann', more: object = {}) =>
    (await post('boards', { title: 'b', ...more }, person)).body.id as string;
  const many = async (count: number) => Promise.all(Array.from({ length: count }, () => make()));
  const count = async () =>
    Number((await database.db.query<{ count: number }>('select count(*) as count from boards where deleted_at is null'))[0]?.count);
  /** Statements that change or read tables, without those around them. */
  const statements = async (work: () => Promise<unknown>) => {
    const texts: string[] = [];
    await observeQueries(({ sql }) => texts.push(sql), work);
    return texts.filter((text) => /^\s*(insert|update|delete|select)/i.test(text));
  };

  test('69, 91: 100 rows are one INSERT, one audit and one event statement; results are in the order of the request', async () => {
    const items = Array.from({ length: 100 }, (_, index) => ({ title: `row ${index}`, ...(index % 2 === 0 ? { color: 'red' } : {}) }));
    let made: Awaited<ReturnType<typeof post>> | undefined;
    const run = await statements(async () => (made = await post('boards/bulk', { items })));
    expect([made?.status, run.length]).toEqual([201, 3]);
    expect(run.filter((text) => text.startsWith('insert into "boards"'))).toHaveLength(1);
    const rows = made?.body.items as { title: string; color: string; owner_id: string; created_by: string; version: number }[];
    expect(rows.map(({ title, color }) => [title, color])).toEqual(items.map(({ title, color }) => [title, color ?? 'white']));
    expect(new Set(rows.map(({ owner_id, created_by, version }) => `${owner_id} ${created_by} ${version}`))).toEqual(
      new Set([`${people.ann.id} ${people.ann.id} 1`]),
    );
    expect([told.changes.length, told.audited.length, told.published.length]).toEqual([100, 100, 100]);
    expect(new Set(told.changes.map(({ operation, via }) => `${operation} ${via}`))).toEqual(new Set(['create bulk']));
  });

  test('69: 101 items, none, an unknown member and a fault in one item are 422 with its place, and nothing is written', async () => {
    const before = await count();
    const items: Record<string, unknown>[] = Array.from({ length: 50 }, () => ({ title: 'x' }));
    items[37] = { title: '' };
    const fault = await post('boards/bulk', { items });
    expect([fault.status, fault.body.errors[0].location]).toEqual([422, ['body', 'items', 37, 'title']]);
    const unknown = await post('boards/bulk', { items: [{ title: 'x' }, { title: 'y', owner_id: people.bob.id }] });
    expect([unknown.status, unknown.body.errors]).toMatchObject([
      422,
      [{ location: ['body', 'items', 1, 'owner_id'], code: 'unknown_field' }],
    ]);
    const missing = await post('boards/bulk', { items: [{ title: 'x' }, {}] });
    expect(missing.body.errors).toMatchObject([{ location: ['body', 'items', 1, 'title'], code: 'required' }]);
    for (const body of [{ items: Array.from({ length: 101 }, () => ({ title: 'x' })) }, { items: [] }, {}, { items: 'x' }, { items: [7] }])
      expect([JSON.stringify(body).slice(0, 30), (await post('boards/bulk', body)).status]).toEqual([
        JSON.stringify(body).slice(0, 30),
        422,
      ]);
    expect(await count()).toBe(before);
    expect(told.changes).toEqual([]);
  });

  test('43, 5: a value that is taken, and a reference to what the caller does not see, are at their item', async () => {
    const slug = `s${Math.random()}`;
    const taken = await post('boards/bulk', { items: [{ title: 'a' }, { title: 'b', slug }, { title: 'c', slug }] });
    expect([taken.status, taken.body.code, taken.body.errors[0].location.slice(0, 3)]).toEqual([409, 'conflict', ['body', 'items', 2]]);
    expect(taken.text).not.toMatch(/constraint|duplicate key|sqlite|index "/i);
    const [own, foreign] = [await make(), await make('bob')];
    const refused = await post('cards/bulk', {
      items: [
        { board_id: own, title: 'a' },
        { board_id: foreign, title: 'b' },
        { board_id: UNKNOWN, title: 'c' },
      ],
    });
    expect([refused.status, refused.body.errors]).toMatchObject([
      422,
      [
        { location: ['body', 'items', 1, 'board_id'], code: 'unknown_reference' },
        { location: ['body', 'items', 2, 'board_id'], code: 'unknown_reference' },
      ],
    ]);
    expect((await shop.call('ann', 'GET', 'cards')).body.items.filter((row: { board_id: string }) => row.board_id === own)).toEqual([]);
  });

  test('70: different values and the same values; a duplicate is 422, a foreign, deleted or malformed id is 404, nothing is written', async () => {
    const ids = await many(4);
    const different = await post('boards/bulk-update', { items: ids.toReversed().map((id, index) => ({ id, title: `t${index}` })) });
    expect([different.status, different.body.items.map(({ id, title, version }: Record<string, unknown>) => [id, title, version])]).toEqual(
      [200, ids.toReversed().map((id, index) => [id, `t${index}`, 2])],
    );
    let same: Awaited<ReturnType<typeof post>> | undefined;
    const run = await statements(async () => (same = await post('boards/bulk-update', { ids, changes: { color: 'blue' } })));
    expect([same?.status, run.length]).toEqual([200, 4]);
    expect(same?.body.items.map(({ id, color, version, updated_by }: Record<string, unknown>) => [id, color, version, updated_by])).toEqual(
      ids.map((id) => [id, 'blue', 3, people.ann.id]),
    );
    const twice = await post('boards/bulk-update', { items: [{ id: ids[0], title: 'x' }, { id: ids[1] }, { id: ids[0]?.toUpperCase() }] });
    expect([twice.status, twice.body.errors.map(({ location, code }: Record<string, unknown>) => [location, code])]).toEqual([
      422,
      [0, 2].map((index) => [['body', 'items', index, 'id'], 'duplicate']),
    ]);
    const gone = await make();
    await shop.call('ann', 'DELETE', `boards/${gone}`);
    for (const id of [await make('bob'), UNKNOWN, gone, 'not-a-uuid']) {
      const refused = await post('boards/bulk-update', { ids: [ids[0], id], changes: { color: 'green' } });
      expect([refused.status, refused.body.code, refused.body.errors.map(({ location }: { location: unknown }) => location)]).toEqual([
        404,
        'not_found',
        [['body', 'ids', 1]],
      ]);
    }
    expect((await shop.call('ann', 'GET', `boards/${ids[0]}`)).body).toMatchObject({ color: 'blue', version: 3 });
  });

  test('versions: a stale one is 412 at its item; under required a missing one is 428; If-Match does not apply', async () => {
    const ids = await many(2);
    const stale = await post('boards/bulk-update', {
      items: [
        { id: ids[0], title: 'x', version: 1 },
        { id: ids[1], title: 'x', version: 9 },
      ],
    });
    expect([stale.status, stale.body.code, stale.body.errors[0].location]).toEqual([
      412,
      'precondition_failed',
      ['body', 'items', 1, 'version'],
    ]);
    expect((await shop.call('ann', 'GET', `boards/${ids[0]}`)).body.version).toBe(1);
    expect((await post('strict/bulk-update', { ids, changes: { title: 'x' } })).status).toBe(428);
    expect((await post('strict/bulk-delete', { ids })).status).toBe(428);
    const items = ids.map((id) => ({ id, version: 1 }));
    const applied = await shop.call(
      'ann',
      'POST',
      'strict/bulk-update',
      { items: items.map((item) => ({ ...item, title: 'y' })) },
      { 'if-match': '"77"' },
    );
    expect(applied.status).toBe(200);
    expect((await post('strict/bulk-delete', { items })).status).toBe(412);
    expect((await post('strict/bulk-delete', { items: items.map(({ id }) => ({ id, version: 2 })) })).status).toBe(204);
  });

  test('bulk deletion: 204 and gone; each row is restored on its own; one that is not there deletes none', async () => {
    const ids = await many(3);
    const [cardOf] = (await post('cards/bulk', { items: ids.map((id) => ({ board_id: id, title: 'c' })) })).body.items;
    expect((await post('boards/bulk-delete', { ids: [...ids, UNKNOWN] })).status).toBe(404);
    expect((await shop.call('ann', 'GET', `boards/${ids[0]}`)).status).toBe(200);
    for (const list of Object.values(told)) list.length = 0;
    expect((await post('boards/bulk-delete', { ids })).status).toBe(204);
    expect(told.changes.map(({ operation, via }) => `${operation} ${via}`).toSorted()).toEqual([
      ...Array.from({ length: 3 }, () => 'destroy bulk'),
      ...Array.from({ length: 3 }, () => 'destroy cascade'),
    ]);
    expect(told.published).toHaveLength(3);
    expect((await post(`boards/${ids[0]}/restore`, {})).status).toBe(200);
    expect((await shop.call('ann', 'GET', `cards/${cardOf.id}`)).status).toBe(200);
    expect((await shop.call('ann', 'GET', `boards/${ids[1]}`)).status).toBe(404);
  });

  test('71: partial answers 207 with a result per item, keeps the faults of each, and saves the good rows', async () => {
    const slug = `s${Math.random()}`;
    const mixed = await post('partial/bulk', {
      items: [{ title: 'good', slug }, { title: '', nope: 1 }, { title: 'taken', slug }, { title: 'fine' }],
    });
    expect([mixed.status, mixed.headers['x-bulk-failed']]).toEqual([207, '2']);
    expect(mixed.body.results.map(({ index, status, code }: Record<string, unknown>) => [index, status, code])).toEqual([
      [0, 201, undefined],
      [1, 422, 'validation_error'],
      [2, 409, 'conflict'],
      [3, 201, undefined],
    ]);
    expect(mixed.body.results[1].errors.map(({ location }: { location: unknown[] }) => location.join('.')).toSorted()).toEqual([
      'body.items.1.nope',
      'body.items.1.title',
    ]);
    expect(mixed.body.results[2].errors[0].location.slice(0, 3)).toEqual(['body', 'items', 2]);
    const { id } = mixed.body.results[0].data as { id: string };
    expect((await shop.call('ann', 'GET', `boards/${id}`)).body.title).toBe('good');
    expect([told.changes.length, told.audited.length, told.published.length]).toEqual([2, 2, 2]);
    const all = await post('partial/bulk', { items: [{ title: 'one' }] });
    expect([all.status, all.headers['x-bulk-failed']]).toEqual([207, '0']);
    const foreign = await make('bob');
    const updated = await post('partial/bulk-update', {
      items: [{ id, title: 'new' }, { id: foreign, title: 'x' }, { id: 'nope', title: 'x' }, { title: 'x' }],
    });
    expect(updated.body.results.map(({ status }: { status: number }) => status)).toEqual([200, 404, 404, 422]);
    const [, unseen, malformed] = updated.body.results.map(({ detail, errors: [{ message }] = [{}] }: Json) => [detail, message]);
    expect(malformed).toEqual(unseen);
    const stale = await post('partial/bulk-update', { items: [{ id, title: 'newer', version: 1 }] });
    const place = { location: ['body', 'items', 0, 'version'], code: 'precondition_failed', message: 'The row has version 2 now.' };
    expect(stale.body.results[0]).toMatchObject({ status: 412, code: 'precondition_failed', errors: [place] });
    const removed = await post('partial/bulk-delete', { ids: [foreign, id] });
    expect(removed.body.results.map(({ status }: { status: number }) => status)).toEqual([404, 204]);
  });

  test('72: overlapping bulk updates in opposite order do not deadlock', async () => {
    const ids = await many(20);
    const rounds = await Promise.all(
      Array.from({ length: 12 }, (_, round) =>
        post(round % 3 === 0 ? 'partial/bulk-update' : 'boards/bulk-update', {
          items: (round % 2 === 0 ? ids : ids.toReversed()).map((id) => ({ id, title: `round ${round}` })),
        }),
      ),
    );
    expect(rounds.map(({ status }) => status).filter((status) => status !== 200 && status !== 207)).toEqual([]);
    const { body } = await shop.call('ann', 'GET', `boards/${ids[0]}`);
    expect(body.version).toBe(13);
  });

  test('below a parent: rows get it; a parent the caller does not see is 404 for the whole request', async () => {
    const [own, foreign] = [await make(), await make('bob')];
    const made = await post(`boards/${own}/cards/bulk`, { items: [{ title: 'a' }, { title: 'b' }] });
    expect([made.status, made.body.items.map((row: { board_id: string }) => row.board_id)]).toEqual([201, [own, own]]);
    expect((await post(`boards/${foreign}/cards/bulk`, { items: [{ title: 'a' }] })).status).toBe(404);
    const other = await make();
    const ids = made.body.items.map(({ id }: { id: string }) => id);
    expect((await post(`boards/${other}/cards/bulk-delete`, { ids })).status).toBe(404);
    expect((await post(`boards/${own}/cards/bulk-delete`, { ids })).status).toBe(204);
  });

  test('expansions of a bulk answer are read in one statement', async () => {
    const id = await make();
    const { body } = await post('cards/bulk?expand=board&fields=title,board.title', {
      items: [
        { board_id: id, title: 'a' },
        { board_id: id, title: 'b' },
      ],
    });
    expect(body.items.map(({ id: _id, ...rest }: Record<string, unknown>) => rest)).toEqual([
      { title: 'a', board: { title: 'b' } },
      { title: 'b', board: { title: 'b' } },
    ]);
  });
});

describeDatabases('bulk operations with hooks and rules about fields', (database) => {
  const hooked = resource(cards, {
    rows: () => ({ board: { is: {} } }),
    relations: { board: one(() => boardResource.model, 'board_id') },
    softDelete: false,
    fields: { points: writableBy(isStaff) },
    hooks: {
      async create({ input }, next) {
        if (input.title === 'refused') throw new Error('no');
        return next({ ...input, title: `${input.title}!` });
      },
    },
  });
  class Cards2 extends CrudController(hooked, { permission: isAuthenticated, bulk }) {}
  class Lone extends CrudController(resource(boardResource.model, { owner: 'owner_id' }), { permission: isAuthenticated }) {}
  let shop: ShopApp;
  beforeAll(async () => {
    shop = await startShop({ database: database.db, mount: { '/v1': { '/boards': Lone, '/cards': Cards2 } }, modules: [boardModule] });
  });
  afterAll(() => shop.close());

  test('45: hooks run per row; one that throws writes nothing', async () => {
    const board_id = (await shop.call('ann', 'POST', 'boards', { title: 'b' })).body.id;
    const made = await shop.call('ann', 'POST', 'cards/bulk', {
      items: [
        { board_id, title: 'a' },
        { board_id, title: 'b' },
      ],
    });
    expect([made.status, made.body.items.map((row: { title: string }) => row.title)]).toEqual([201, ['a!', 'b!']]);
    expect(
      (
        await shop.call('ann', 'POST', 'cards/bulk', {
          items: [
            { board_id, title: 'c' },
            { board_id, title: 'refused' },
          ],
        })
      ).status,
    ).toBe(500);
    expect((await shop.call('ann', 'GET', 'cards')).body.count).toBe(2);
    const ids = made.body.items.map(({ id }: { id: string }) => id);
    expect((await shop.call('ann', 'POST', 'cards/bulk-delete', { ids })).status).toBe(204);
    expect(await database.db.query('select 1 from cards')).toEqual([]);
  });

  test('35: a field the caller may not write is 403 with its name, on bulk create and bulk update', async () => {
    const board_id = (await shop.call('ann', 'POST', 'boards', { title: 'b' })).body.id;
    const { id } = (await shop.call('ann', 'POST', 'cards', { board_id, title: 'a' })).body;
    for (const [path, body] of [
      ['cards/bulk', { items: [{ board_id, title: 'b', points: 3 }] }],
      ['cards/bulk-update', { items: [{ id, points: 3 }] }],
      ['cards/bulk-update', { ids: [id], changes: { points: 3 } }],
    ] as const) {
      const refused = await shop.call('ann', 'POST', path, body);
      expect([path, refused.status, refused.body.code, refused.body.fields]).toEqual([path, 403, 'permission_denied', ['points']]);
    }
  });
});
