import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { people, startShop, type ShopApp } from '../../test/crud/shop.ts';
import type { ReferenceTarget } from '../db/declare/column.ts';
import { createTable, migration, model, softDelete, t, versioned } from '../db/index.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { CrudController, many, one, resource } from './index.ts';
import { purgeDeleted, softDeletedModels } from './write/purge.ts';

/** Folders in folders, soft-deleted with what is in them; places in places, which are deleted. */
const folders = model('folders', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  name: t.text(20),
  parent_id: t.ref((): ReferenceTarget => folders).nullable(),
  ...versioned(),
  ...softDelete(),
});
const places = model('places', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  name: t.text(20),
  parent_id: t.ref((): ReferenceTarget => places).nullable(),
});

const changes: string[] = [];
const folderResource = resource(folders, {
  owner: 'owner_id',
  version: 'version',
  softDelete: { cascade: ['children'] },
  relations: { parent: one(() => folders, 'parent_id'), children: many(() => folders, 'parent_id', { limit: 20 }) },
  hooks: {
    // A hook that copies a row passes on more than the caller sent.
    create: ({ input }, next) => next(input.name === 'copied' ? Object.assign({}, input, { version: 9 }) : input),
  },
  onChange: ({ operation, via, before, after }) => void changes.push(`${operation} ${(after ?? before)?.name} ${via}`),
});
const placeResource = resource(places, {
  owner: 'owner_id',
  relations: { parent: one(() => places, 'parent_id'), children: many(() => places, 'parent_id', { limit: 20, order: ['name'] }) },
  nested: { children: { input: ['name'], missing: 'delete', max: 5 } },
});
class FolderController extends CrudController(folderResource, {
  permission: isAuthenticated,
  restore: true,
  bulk: { create: true, destroy: true },
}) {}
class PlaceController extends CrudController(placeResource, {
  permission: isAuthenticated,
  bulk: { destroy: true },
  expand: ['children'],
}) {}
/** Authors would like to say that a row is visible below visible rows: no statement can have such a rule. */
const dots = model('dots', { id: t.uuidv7().pk(), name: t.text(20).nullable(), ...softDelete() });
const circles = model('circles', { id: t.uuidv7().pk(), dot_id: t.ref(() => dots).nullable() });
const circleResource = resource(circles, { rows: () => ({ dot: { is: {} } }), relations: { dot: one(() => dots, 'dot_id') } });
const dotResource = resource(dots, {
  rows: () => ({ or: [{ name: null }, { circles: { some: {} } }] }),
  relations: { circles: many(() => circles, 'dot_id', { limit: 5 }) },
});
class CircleController extends CrudController(circleResource, { permission: isAuthenticated }) {}
class DotController extends CrudController(dotResource, { permission: isAuthenticated, restore: true }) {}

const tables = migration('0001_initial', [
  createTable('folders', { ...folders.columns, parent_id: t.ref('folders').nullable() }),
  createTable('places', { ...places.columns, parent_id: t.ref('places').nullable() }),
  createTable('dots', dots.columns),
  createTable('circles', { ...circles.columns, dot_id: t.ref('dots').nullable() }),
]);

describeDatabases('rows that refer to rows of their own table', (database) => {
  let app: ShopApp;
  const clock = fakeClock();
  beforeAll(async () => {
    app = await startShop({
      database: database.db,
      clock,
      mount: { '/v1': { '/folders': FolderController, '/places': PlaceController, '/circles': CircleController, '/dots': DotController } },
      modules: [{ name: 'trees', models: [folders, places, circles, dots], migrations: [tables] }],
    });
  });
  beforeEach(() => {
    changes.length = 0;
  });
  afterAll(() => app.close());

  const call = (method: string, path: string, body?: object) => app.call('ann', method, path, body);
  const make = async (path: string, name: string, parent_id: string | null = null): Promise<string> => {
    const made = await call('POST', path, { name, parent_id });
    expect([made.status, made.text]).toEqual([201, made.text]);
    return made.body.id as string;
  };
  const put = async (path: string, id: string, parent_id: string) =>
    expect((await call('PATCH', `${path}/${id}`, { parent_id })).status).toBe(200);
  const stored = async (table: string) =>
    (await database.db.query<{ id: string }>(`select id from ${table} where owner_id = $1`, [people.ann.id])).map(({ id }) => id);

  test('a row that refers to itself is restored', async () => {
    const id = await make('folders', 'self');
    await put('folders', id, id);
    expect((await call('DELETE', `folders/${id}`)).status).toBe(204);
    changes.length = 0;
    expect((await call('POST', `folders/${id}/restore`)).status).toBe(200);
    expect(changes).toEqual(['restore self single']);
  });

  test('rows that refer to each other in a circle are restored together, from each of them; rows below them are not restored alone', async () => {
    const [a, b] = [await make('folders', 'a'), await make('folders', 'b')];
    const below = await make('folders', 'below', b);
    await put('folders', a, b);
    await put('folders', b, a);
    for (const id of [a, b]) {
      expect((await call('DELETE', `folders/${a}`)).status).toBe(204);
      const refused = await call('POST', `folders/${below}/restore`);
      expect([refused.status, refused.body.code]).toEqual([409, 'deleted_with_parent']);
      expect((await call('POST', `folders/${id}/restore`)).status).toBe(200);
      for (const each of [a, b, below]) expect((await call('GET', `folders/${each}`)).status).toBe(200);
    }
  });

  test('purge removes trees and circles once, and counts each row once', async () => {
    await database.db.execute('update folders set parent_id = null');
    await database.db.execute('delete from folders');
    const root = await make('folders', 'root');
    const child = await make('folders', 'child', root);
    await make('folders', 'grandchild', child);
    const self = await make('folders', 'self');
    await put('folders', self, self);
    const a = await make('folders', 'a');
    const b = await make('folders', 'b', a);
    await put('folders', a, b);
    const live = await make('folders', 'live');
    for (const id of [root, self, a]) expect((await call('DELETE', `folders/${id}`)).status).toBe(204);
    clock.advance(1000);
    const report = await purgeDeleted(database.db, softDeletedModels(app.app).get('folders')!, clock.now());
    expect(report).toEqual({ removed: 6, related: 0, kept: 0 });
    expect(await stored('folders')).toEqual([live]);
  });

  test('44: rows that refer to each other are deleted together, whatever their order', async () => {
    for (const isReversed of [false, true]) {
      const a = await make('places', 'a');
      const b = await make('places', 'b', a);
      const c = await make('places', 'c', b);
      const ids = [a, b, c];
      const deleted = await call('POST', 'places/bulk-delete', { ids: isReversed ? ids.toReversed() : ids });
      expect([deleted.status, deleted.text]).toEqual([204, '']);
    }
    const [one, two] = [await make('places', 'one'), await make('places', 'two')];
    await put('places', one, two);
    await put('places', two, one);
    expect((await call('DELETE', `places/${one}`)).body.code).toBe('still_referenced');
    expect((await call('POST', 'places/bulk-delete', { ids: [one, two] })).status).toBe(204);
    expect(await stored('places')).toEqual([]);
  });

  test('44: of rows that refer to each other, the one that another row refers to has the error, and none is changed', async () => {
    const a = await make('places', 'a');
    const b = await make('places', 'b', a);
    const outside = await make('places', 'outside', b);
    const refused = await call('POST', 'places/bulk-delete', { ids: [a, b] });
    expect([refused.status, refused.body.code]).toEqual([409, 'still_referenced']);
    expect(refused.body.errors).toMatchObject([{ location: ['body', 'ids', 1], code: 'still_referenced' }]);
    expect((await call('GET', `places/${b}`)).body.parent_id).toBe(a);
    const root = await make('places', 'root');
    await put('places', a, root);
    await make('places', 'other', root);
    // Below a parent the rows are found by it: the references of the rows that go are removed first, and the place stays known.
    const nested = await call('PATCH', `places/${root}`, { children: [] });
    expect([nested.status, nested.body.errors?.[0]?.location]).toEqual([409, ['body', 'children']]);
    expect((await call('POST', 'places/bulk-delete', { ids: [outside, a, b] })).status).toBe(204);
  });

  test('12: rules about rows that lead back to themselves are 500 with the path in the log, and read nothing', async () => {
    const unknown = '01890000-0000-7000-8000-000000000000';
    const requests = [
      ['GET', 'dots'],
      ['GET', 'dots?deleted=only'],
      ['GET', `circles/${unknown}`],
      ['POST', `dots/${unknown}/restore`],
      ['POST', 'circles', {}],
    ] as const;
    for (const [method, path, body] of requests) expect([path, (await call(method, path, body)).status]).toEqual([path, 500]);
    const messages = app.records.map(({ err }) => (err as { message?: string } | undefined)?.message ?? '');
    expect(messages).toContainEqual(expect.stringContaining('leads back to its own rows: "dot" → "circle" → "dot".'));
    expect(messages).toContainEqual(expect.stringContaining('"circle" → "dot" → "circle".'));
  });

  test('a hook does not decide the version of a new row', async () => {
    const made = await call('POST', 'folders', { name: 'copied' });
    expect([made.body.version, made.headers['etag']]).toEqual([1, '"1"']);
    const { items } = (await call('POST', 'folders/bulk', { items: [{ name: 'copied' }, { name: 'copied' }] })).body as {
      items: { version: number }[];
    };
    expect(items.map(({ version }) => version)).toEqual([1, 1]);
  });
});
