import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createTable, insert, migration, model, t } from '../db/index.ts';
import { route } from '../http/index.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { testApp, type TestApp } from '../testing/test-app.ts';
import { CrudController, many, one, resource } from './index.ts';

const ann = { id: '01890000-0000-7000-8000-0000000000a1' };
const bob = { id: '01890000-0000-7000-8000-0000000000b2' };
const shelves = model('shelves', { id: t.int().pk(), name: t.text(40) });
const partColumns = {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  sku: t.text(40),
  shelf_id: t.ref<number>('shelves', { type: t.int() }).nullable(),
  spare_shelf_id: t.ref<number>('shelves', { type: t.int() }).nullable(),
};
const parts = model('parts', partColumns, { indexes: [{ columns: ['owner_id', 'sku'], unique: true }] });

const boxColumns = {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  name: t.text(200),
  // A table that refers to itself does so by name.
  box_id: t.ref('boxes').nullable(),
};
const boxes = model('boxes', boxColumns, { indexes: [{ columns: ['box_id'] }] });
const boxResource = resource(boxes, {
  owner: 'owner_id',
  relations: { box: one(() => boxes, 'box_id'), boxes: many(() => boxes, 'box_id', { limit: 10 }) },
});
class BoxController extends CrudController(boxResource, {
  permission: isAuthenticated,
  bulk: { create: true, update: true },
  import: { formats: ['jsonl'] },
  ordering: { by: ['name'] },
  expand: ['box', 'boxes'],
}) {}

const seatColumns = {
  hall: t.int(),
  number: t.int(),
  owner_id: t.uuid().readOnly(),
  ticket: t.text(40).unique(),
  note: t.text(40).nullable(),
  box_id: t.ref(() => boxes).nullable(),
};
const seatOptions = { primaryKey: ['hall', 'number'] } as const;
const seats = model('seats', seatColumns, seatOptions);
const seatResource = resource(seats, { owner: 'owner_id', relations: { box: one(() => boxes, 'box_id') } });
class SeatController extends CrudController(seatResource, {
  permission: isAuthenticated,
  lookup: 'ticket',
  bulk: { create: true, update: true, destroy: true },
  expand: ['box'],
  meta: true,
  import: { formats: ['jsonl'], by: 'ticket' },
}) {
  free = route.get('/free', { permission: isAuthenticated }, () => undefined);
}

const shelfResource = resource(shelves, {
  unscoped: true,
  relations: { parts: many(() => parts, 'shelf_id', { order: ['sku'], limit: 10 }) },
  nested: { parts: { input: ['sku', 'spare_shelf_id'] } },
});
const partResource = resource(parts, {
  owner: 'owner_id',
  computed: {
    read_at: {
      requires: ['sku'],
      response: z.string(),
      value: (_row, { clock, now }) => (clock.now() === now ? 'the same moment' : 'another'),
    },
  },
});
class ShelfController extends CrudController(shelfResource, { permission: isAuthenticated, operations: { create: false } }) {}
class PartController extends CrudController(partResource, { permission: isAuthenticated, bulk: { create: true } }) {}

const tables = [
  createTable('shelves', shelves.columns),
  createTable('boxes', boxColumns, { indexes: [{ columns: ['box_id'] }] }),
  createTable('seats', { ...seatColumns, box_id: t.ref('boxes').nullable() }, seatOptions),
  createTable('parts', partColumns, { indexes: [{ columns: ['owner_id', 'sku'], unique: true }] }),
];
const module = { name: 'storage', models: [shelves, parts, boxes, seats], migrations: [migration('0001_initial', tables)] };

describeDatabases('rows with plain keys', (database) => {
  let app: TestApp;
  beforeAll(async () => {
    app = await testApp({
      database: database.db,
      modules: [module],
      mount: { '/v1': { '/shelves': ShelfController, '/parts': PartController, '/boxes': BoxController, '/seats': SeatController } },
    });
    await insert(database.db, shelves, { id: 1, name: 'low' });
  });
  afterAll(() => app.close());

  test('a row has one address: other spellings of its number are the 404 of a missing row', async () => {
    const client = app.as(ann);
    expect((await client.get('/v1/shelves/1')).statusCode).toBe(200);
    const missing = (await client.get('/v1/shelves/2')).json<object>();
    for (const key of ['1.0', '01', '1e0', '+1', '0x1', '%201', '2147483648', '99999999999999999999', 'NaN', '%00', '-0']) {
      const response = await client.get(`/v1/shelves/${key}`);
      expect([key, response.statusCode, { ...response.json<object>(), request_id: null }]).toEqual([
        key,
        404,
        { ...missing, request_id: null },
      ]);
    }
  });

  test('PUT needs no key in its body, and takes only that of the row', async () => {
    const client = app.as(ann);
    for (const body of [{ name: 'low' }, { id: 1, name: 'low' }]) expect((await client.put('/v1/shelves/1', body)).statusCode).toBe(200);
    const other = await client.put('/v1/shelves/1', { id: 2, name: 'other' });
    expect([other.statusCode, other.json<{ errors: object[] }>().errors]).toEqual([
      422,
      [{ location: ['body', 'id'], code: 'invalid', message: 'The key of a row cannot be changed.' }],
    ]);
    expect((await client.get('/v1/shelves/1')).json()).toEqual({ id: 1, name: 'low' });
  });

  test('If-Match names no row without a version: 412 without a tag, which `*` passes', async () => {
    const client = app.as(ann);
    const etag = String((await client.get('/v1/shelves/1')).headers['etag']);
    for (const tag of [etag, '"undefined"', '"1"']) {
      const refused = await client.patch('/v1/shelves/1', { name: 'other' }, { 'if-match': tag });
      expect([tag, refused.statusCode, refused.headers['etag'], refused.json<{ etag?: string }>().etag]).toEqual([
        tag,
        412,
        undefined,
        undefined,
      ]);
    }
    expect((await client.patch('/v1/shelves/1', { name: 'low' }, { 'if-match': '*' })).statusCode).toBe(200);
  });

  test('without an ordering lists are newest first where the key is time-ordered, and by ascending key otherwise', async () => {
    const client = app.as(ann);
    await insert(database.db, shelves, { id: 30, name: 'high' });
    await insert(database.db, shelves, { id: 7, name: 'middle' });
    const keys = async (url: string) => (await client.get(url)).json<{ items: { id: string | number }[] }>().items.map(({ id }) => id);
    expect(await keys('/v1/shelves')).toEqual([1, 7, 30]);
    const made: string[] = [];
    for (const name of ['first', 'second', 'third']) made.push((await client.post('/v1/boxes', { name })).json<{ id: string }>().id);
    expect(await keys('/v1/boxes?limit=3')).toEqual(made.toReversed());
  });

  test('13: a list that is ordered by text is walked whatever its characters are: none makes a cursor too long', async () => {
    const client = app.as(bob);
    const names = ['a', '"', '\u0001', 'é', '字', '😀'].map((character) => character.repeat(200));
    for (const name of names) expect((await client.post('/v1/boxes', { name })).statusCode).toBe(201);
    const found: string[] = [];
    for (let next: string | null = '?ordering=-name&limit=1'; next !== null;) {
      const response = await client.get(`/v1/boxes${next}`);
      expect(response.statusCode).toBe(200);
      const page = response.json<{ items: { name: string }[]; next: string | null }>();
      found.push(...page.items.map(({ name }) => name));
      next = page.next;
    }
    expect(found.filter((name) => name.length >= 200).toSorted()).toEqual(names.toSorted());
  });

  test('43: a conflict is at the columns that the client sent, not at the owner that the index begins with', async () => {
    const client = app.as(ann);
    expect((await client.post('/v1/parts', { sku: 'A1' })).statusCode).toBe(201);
    const errors = (response: { json: () => unknown }) =>
      (response.json() as { errors: { location: unknown; code: string }[] }).errors.map(({ location, code }) => [location, code]);
    expect(errors(await client.post('/v1/parts', { sku: 'A1' }))).toEqual([[['body', 'sku'], 'not_unique']]);
    const other = (await client.post('/v1/parts', { sku: 'B1' })).json<{ id: string }>();
    expect(errors(await client.patch(`/v1/parts/${other.id}`, { sku: 'A1' }))).toEqual([[['body', 'sku'], 'not_unique']]);
    const bulk = await client.post('/v1/parts/bulk', { items: [{ sku: 'C1' }, { sku: 'A1' }] });
    expect([bulk.statusCode, JSON.stringify(errors(bulk)).includes('owner_id')]).toEqual([409, false]);
    expect(errors(await client.post('/v1/parts', { sku: 'D1', shelf_id: 77 }))).toEqual([[['body', 'shelf_id'], 'unknown_reference']]);
  });

  test('an unknown reference is at its own column where a row has several, also in a nested row and in one of many', async () => {
    const client = app.as(ann);
    const errors = (response: { json: () => unknown }) =>
      (response.json() as { errors: { location: unknown; code: string }[] }).errors.map(({ location, code }) => [location, code]);
    const part = { sku: 'F1', shelf_id: 1, spare_shelf_id: 77 };
    expect(errors(await client.post('/v1/parts', part))).toEqual([[['body', 'spare_shelf_id'], 'unknown_reference']]);
    const nested = await client.patch('/v1/shelves/1', { parts: [{ sku: 'F2', spare_shelf_id: 77 }] });
    expect(errors(nested)).toEqual([[['body', 'parts', 0, 'spare_shelf_id'], 'unknown_reference']]);
    const bulk = await client.post('/v1/parts/bulk', { items: [{ sku: 'F3', shelf_id: 1, spare_shelf_id: 1 }, part] });
    expect(errors(bulk)).toEqual([[['body', 'items', 1, 'spare_shelf_id'], 'unknown_reference']]);
    const made = (await client.post('/v1/parts', { ...part, spare_shelf_id: 1 })).json<{ id: string }>();
    const patched = await client.patch(`/v1/parts/${made.id}`, { shelf_id: 1, spare_shelf_id: 77 });
    expect(errors(patched)).toEqual([[['body', 'spare_shelf_id'], 'unknown_reference']]);
  });

  describe('a key of several columns, with a unique column in the address', () => {
    type Seat = { hall: number; number: number; ticket: string; note: string | null; box: { name: string } | null };
    const seat = (number: number, ticket: string) => ({ hall: 1, number, ticket });
    const stored = async () =>
      database.db.query<Seat>('select hall, number, ticket, note from seats order by hall, number', []) as Promise<Partial<Seat>[]>;
    beforeEach(async () => {
      await database.db.execute('delete from seats');
      for (const body of [seat(1, 'a1'), seat(2, 'a2'), seat(3, 'a3')])
        expect((await app.as(ann).post('/v1/seats', body)).statusCode).toBe(201);
      expect((await app.as(bob).post('/v1/seats', seat(4, 'b4'))).statusCode).toBe(201);
    });

    test('lists are walked without gaps although rows share a part of the key', async () => {
      const found: string[] = [];
      for (let next: string | null = '?limit=1'; next !== null;) {
        const response: Awaited<ReturnType<TestApp['inject']>> = await app.as(ann).get(`/v1/seats${next}`);
        const page = response.json<{ items: Seat[]; next: string | null }>();
        found.push(...page.items.map(({ ticket }) => ticket));
        next = page.next;
      }
      expect(found).toEqual(['a1', 'a2', 'a3']);
    });

    test('a change, a bulk change and a bulk deletion reach the rows that are named, and no other that shares a part of the key', async () => {
      const box = (await app.as(ann).post('/v1/boxes', { name: 'left' })).json<{ id: string }>();
      const changed = (await app.as(ann).patch('/v1/seats/a2?expand=box', { note: 'x', box_id: box.id })).json<Seat>();
      expect(changed).toMatchObject({ number: 2, ticket: 'a2', note: 'x', box: { name: 'left' } });
      const same = await app.as(ann).post('/v1/seats/bulk-update', { ids: ['a1', 'a3'], changes: { note: 'y' } });
      expect(same.json<{ items: Seat[] }>().items.map(({ ticket, note }) => [ticket, note])).toEqual([
        ['a1', 'y'],
        ['a3', 'y'],
      ]);
      expect((await stored()).map(({ note }) => note)).toEqual(['y', 'x', 'y', null]);
      expect((await app.as(ann).post('/v1/seats/bulk-delete', { ids: ['a1'] })).statusCode).toBe(204);
      expect((await app.as(ann).delete('/v1/seats/a2')).statusCode).toBe(204);
      expect((await stored()).map(({ ticket }) => ticket)).toEqual(['a3', 'b4']);
    });

    test('a key that no address can have is refused', async () => {
      // Those of other operations, too: GET /meta, and a route of the controller. POST /bulk is not at the URL of a record.
      for (const ticket of ['', '.', '..', 'meta', 'free']) {
        const refused = await app.as(ann).post('/v1/seats', seat(9, ticket));
        expect([refused.statusCode, refused.json<{ errors: { location: string[] }[] }>().errors.map(({ location }) => location)]).toEqual([
          422,
          [['body', 'ticket']],
        ]);
        const many = await app.as(ann).post('/v1/seats/bulk', { items: [seat(8, 'a8'), seat(9, ticket)] });
        expect([many.statusCode, many.json<{ errors: { location: unknown[] }[] }>().errors.map(({ location }) => location)]).toEqual([
          422,
          [['body', 'items', 1, 'ticket']],
        ]);
        const headers = { 'content-type': 'application/x-ndjson' };
        const payload = JSON.stringify(seat(9, ticket));
        const file = await app.as(ann).inject({ method: 'POST', url: '/v1/seats/import', headers, payload });
        expect([file.statusCode, file.json<{ errors: { location: unknown[] }[] }>().errors.map(({ location }) => location)]).toEqual([
          422,
          [['body', 1, 'ticket']],
        ]);
      }
      expect((await stored()).length).toBe(4);
      const bulk = await app.as(ann).post('/v1/seats', seat(9, 'bulk'));
      expect([bulk.statusCode, (await app.as(ann).get('/v1/seats/bulk')).statusCode]).toEqual([201, 200]);
    });

    test('no part of the key is changed by an import: it takes the key of the row, and rejects another at its place', async () => {
      const client = app.as(ann);
      const headers = { 'content-type': 'application/x-ndjson' };
      const send = (rows: readonly object[]) =>
        client.inject({
          method: 'POST',
          url: '/v1/seats/import?mode=upsert',
          headers,
          payload: rows.map((row) => JSON.stringify(row)).join('\n'),
        });
      expect((await send([{ hall: 71, number: 1, ticket: 'kept', note: 'first' }])).json()).toMatchObject({ created: 1, updated: 0 });
      expect((await send([{ hall: 71, number: 1, ticket: 'kept', note: 'second' }])).json()).toMatchObject({ created: 0, updated: 1 });
      const other = await send([
        { hall: 72, number: 1, ticket: 'new' },
        { hall: 71, number: 2, ticket: 'kept', note: 'third' },
      ]);
      expect([other.statusCode, other.json<{ errors: object[] }>().errors]).toEqual([
        422,
        [{ location: ['body', 2, 'number'], code: 'invalid', message: 'The key of a row cannot be changed.' }],
      ]);
      expect((await client.get('/v1/seats/kept')).json()).toMatchObject({ hall: 71, number: 1, note: 'second' });
      expect((await client.get('/v1/seats/new')).statusCode).toBe(404);
    });

    test('no part of the key is changed: PATCH refuses it, PUT takes it only as it is', async () => {
      for (const body of [{ hall: 9 }, { number: 9 }, { ticket: 'z' }])
        expect((await app.as(ann).patch('/v1/seats/a1', body)).statusCode).toBe(422);
      const items = [{ ticket: 'a1', hall: 9 }];
      expect((await app.as(ann).post('/v1/seats/bulk-update', { items })).statusCode).toBe(422);
      const other = await app.as(ann).put('/v1/seats/a1', { hall: 9, number: 1, ticket: 'z', note: 'put' });
      const { errors } = other.json<{ errors: { location: string[]; code: string }[] }>();
      expect([other.statusCode, errors.map(({ location }) => location)]).toEqual([
        422,
        [
          ['body', 'hall'],
          ['body', 'ticket'],
        ],
      ]);
      expect((await stored())[0]?.note).toBeNull();
      for (const body of [{ note: 'put' }, { ...seat(1, 'a1'), note: 'put' }])
        expect((await app.as(ann).put('/v1/seats/a1', body)).json<Seat>()).toMatchObject({ ...seat(1, 'a1'), note: 'put' });
      expect((await stored()).map(({ hall, number }) => [hall, number])).toEqual([1, 2, 3, 4].map((number) => [1, number]));
    });
  });

  test('5: a reference by the name of the table is checked like any other: a row of another owner is unknown, on every path', async () => {
    const [own, foreign] = await Promise.all(
      [ann, bob].map(async (user) => (await app.as(user).post('/v1/boxes', { name: 'outer' })).json<{ id: string }>().id),
    );
    const client = app.as(ann);
    const inner = (await client.post('/v1/boxes?expand=box', { name: 'inner', box_id: own })).json<{ id: string; box: { id: string } }>();
    expect(inner.box.id).toBe(own);
    const lines = JSON.stringify({ name: 'x', box_id: foreign });
    const answers = await Promise.all([
      client.post('/v1/boxes', { name: 'x', box_id: foreign }),
      client.put(`/v1/boxes/${inner.id}`, { name: 'x', box_id: foreign }),
      client.patch(`/v1/boxes/${inner.id}`, { box_id: foreign }),
      client.post('/v1/boxes/bulk', { items: [{ name: 'x', box_id: foreign }] }),
      client.post('/v1/boxes/bulk-update', { ids: [inner.id], changes: { box_id: foreign } }),
      client.inject({ method: 'POST', url: '/v1/boxes/import', headers: { 'content-type': 'application/x-ndjson' }, payload: lines }),
    ]);
    for (const response of answers) {
      const { errors } = response.json<{ errors?: { location: string[]; code: string }[] }>();
      expect([response.statusCode, errors?.[0]?.code, errors?.[0]?.location.at(-1)]).toEqual([422, 'unknown_reference', 'box_id']);
    }
  });

  test('a computed field gets the moment of the request, as a date and as a clock', async () => {
    const made = await app.as(ann).post('/v1/parts', { sku: 'E1' });
    expect(made.json<{ read_at: string }>().read_at).toBe('the same moment');
  });
});
