import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createApp } from '../app/index.ts';
import { startShop, type ShopApp } from '../../test/crud/shop.ts';
import { createTable, insert, migration, model, remove, t } from '../db/index.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController, many, one, resource } from './index.ts';

const rooms = model('rooms', { id: t.uuidv7().pk(), name: t.text(20) });
const chairs = model(
  'chairs',
  { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), room_id: t.uuid().refersTo(() => rooms), name: t.text(20) },
  { indexes: [{ columns: ['room_id'] }] },
);
const roomResource = resource(rooms, { unscoped: true, relations: { chairs: many(() => chairs, 'room_id', { limit: 5 }) } });
const chairResource = resource(chairs, { owner: 'owner_id', relations: { room: one(() => rooms, 'room_id') } });
class Rooms extends CrudController(roomResource, { permission: isAuthenticated, expand: ['chairs'] }) {}
class Chairs extends CrudController(chairResource, { permission: isAuthenticated, expand: ['room'], filters: { 'room.name': ['eq'] } }) {}

describeDatabases('a reference without a constraint of the database', (database) => {
  let app: ShopApp;
  beforeAll(async () => {
    app = await startShop({
      database: database.db,
      mount: { '/v1': { '/rooms': Rooms, '/chairs': Chairs } },
      modules: [
        {
          name: 'furniture',
          models: [rooms, chairs],
          // As a table that exists: without a foreign key. The app would not start if the model differed from it.
          migrations: [
            migration('0001_initial', [
              createTable('rooms', rooms.columns),
              createTable('chairs', { ...chairs.columns, room_id: t.uuid() }, { indexes: [{ columns: ['room_id'] }] }),
            ]),
          ],
        },
      ],
    });
  });
  afterAll(() => app.close());
  const call = (method: string, path: string, body?: unknown) => app.call('ann', method, path, body);

  test('relations follow it in both directions, and filters cross it', async () => {
    const room = await insert(database.db, rooms, { name: 'kitchen' });
    const made = await call('POST', 'chairs', { room_id: room.id, name: 'stool' });
    expect(made.status).toBe(201);
    expect((await call('GET', `chairs/${made.body.id}?expand=room`)).body.room).toMatchObject({ id: room.id, name: 'kitchen' });
    expect((await call('GET', `rooms/${room.id}?expand=chairs`)).body.chairs).toMatchObject([{ id: made.body.id }]);
    expect((await call('GET', 'chairs?room__name=kitchen')).body.items).toMatchObject([{ name: 'stool' }]);
    expect((await call('GET', 'chairs?room__name=cellar')).body.items).toEqual([]);
  });

  test('422 unknown_reference for a row that is not there, also where callers see every row: the database would not notice', async () => {
    const { status, body } = await call('POST', 'chairs', { room_id: randomUUID(), name: 'stool' });
    expect([status, body.errors]).toMatchObject([422, [{ location: ['body', 'room_id'], code: 'unknown_reference' }]]);
  });

  test('the other row can be deleted; the relation is null then', async () => {
    const room = await insert(database.db, rooms, { name: 'attic' });
    const { body } = await call('POST', 'chairs', { room_id: room.id, name: 'bench' });
    await remove(database.db, rooms, room.id);
    expect((await call('GET', `chairs/${body.id}?expand=room`)).body).toMatchObject({ room_id: room.id, room: null });
  });
});

test('a reference without a constraint has the type of the key that it refers to', () => {
  const notes = model('notes', { id: t.uuidv7().pk(), room_id: t.text(40).refersTo(() => rooms) });
  class Notes extends CrudController(resource(notes, { unscoped: true }), { permission: isAuthenticated }) {}
  const common = { database: 'sqlite::memory:', log: { level: 'silent' }, docs: false } as const;
  expect(() => createApp({ ...common, resources: [resource(rooms, { unscoped: true })], mount: { '/v1': { '/notes': Notes } } })).toThrow(
    /E017 .*"room_id" refers to "rooms" and is text, but "id" there is uuid/,
  );
});
