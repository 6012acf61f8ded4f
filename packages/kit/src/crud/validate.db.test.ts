import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { people, startShop, type ShopApp } from '../../test/crud/shop.ts';
import { createTable, insert, migration, model, t } from '../db/index.ts';
import { all, hasRule, isAuthenticated, isStaff } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { crudOf, CrudController, many, one, resource, writableBy } from './index.ts';

const trips = model('trips', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  code: t.text(20).unique(),
  seats: t.int({ min: 1 }),
  starts_at: t.timestamp(),
  ends_at: t.timestamp(),
  note: t.text(20).default(''),
});
const stops = model('stops', { id: t.uuidv7().pk(), trip_id: t.ref('trips'), place: t.text(20) });
/** Every call, to see that a rule is not asked without need. */
const asked: { readonly input: object; readonly before: unknown; readonly user: string | undefined; readonly isInTransaction: boolean }[] =
  [];

const stopResource = resource(stops, {
  rows: () => ({ trip: { is: {} } }),
  relations: { trip: one(() => trips, 'trip_id') },
  validate: ({ input }) =>
    input.place === 'nowhere' ? [{ location: ['body', 'place'], code: 'no_place', message: 'There is no such place.' }] : [],
});
const tripResource = resource(trips, {
  owner: 'owner_id',
  relations: { stops: many(() => stops, 'trip_id', { limit: 50 }) },
  nested: { stops: { input: ['place'] } },
  fields: { note: writableBy(isStaff) },
  validate: ({ input, before, caller, db }) => {
    asked.push({ input, before: before?.code ?? null, user: caller.user?.id, isInTransaction: db.isTransaction });
    const { starts_at = before?.starts_at, ends_at = before?.ends_at, seats } = input;
    return [
      ...(starts_at !== undefined && ends_at !== undefined && ends_at <= starts_at
        ? [{ location: ['body', 'ends_at'], code: 'before_start', message: 'A trip ends after its start.' }]
        : []),
      ...(seats === 13 ? [{ location: ['body', 'seats'], code: 'unlucky', message: 'Give another number.' }] : []),
    ];
  },
  admin: { rows: true },
});
const options = {
  permission: isAuthenticated,
  bulk: { create: true, update: true, mode: 'atomic' },
  import: { formats: ['jsonl'], by: 'code' },
} as const;
class TripController extends CrudController(tripResource, options) {}
class EachTripController extends CrudController(tripResource, { ...options, bulk: { create: true, update: true, mode: 'partial' } }) {}
const isMine = hasRule(({ user }, row) => (row === undefined ? 'unknown' : (row as { owner_id: string }).owner_id === user?.id), {
  rows: ({ user }) => (user === null ? false : { owner_id: user.id }),
});
class RuledController extends CrudController(
  resource(trips, {
    unscoped: true,
    validate: ({ before }) => (asked.push({ input: {}, before, user: undefined, isInTransaction: false }), []),
  }),
  { permission: all(isAuthenticated, isMine), operations: { create: false, update: false } },
) {}
describeDatabases('validate of a resource', (database) => {
  let app: ShopApp;
  let count = 0;
  beforeAll(async () => {
    app = await startShop({
      database: database.db,
      mount: { '/v1': { '/trips': TripController, '/each': EachTripController } },
      modules: [
        {
          name: 'trips',
          resources: [stopResource],
          models: [trips, stops],
          migrations: [migration('0001_initial', [createTable('trips', trips.columns), createTable('stops', stops.columns)])],
        },
      ],
    });
  });
  beforeEach(() => void (asked.length = 0));
  afterAll(() => app.close());
  const day = (number: number) => `2030-01-0${number}T00:00:00.000Z`;
  const trip = (more: object = {}) => ({ code: `t${(count += 1)}`, seats: 4, starts_at: day(2), ends_at: day(3), ...more });
  const send = async (method: string, path: string, body?: unknown) => {
    const { status, body: answer } = await app.call('ann', method, path, body);
    const faults = (answer?.errors ?? []).map(
      ({ location, code }: { location: unknown[]; code: string }) => `${location.join('.')} ${code}`,
    );
    return { status, answer, faults: faults.toSorted() as string[] };
  };
  const made = async (more: object = {}) => (await send('POST', 'trips', trip(more))).answer;
  const rows = async () => (await database.db.query('select code from trips')).length;

  test('422 with its errors; nothing is written', async () => {
    const before = await rows();
    const { status, faults } = await send('POST', 'trips', trip({ ends_at: day(1), seats: 13 }));
    expect([status, faults]).toEqual([422, ['body.ends_at before_start', 'body.seats unlucky']]);
    expect(await rows()).toBe(before);
    expect(asked).toMatchObject([{ before: null, user: people.ann.id, isInTransaction: true, input: { ends_at: new Date(day(1)) } }]);
  });

  test('its errors come together with those of the schema, about what the schema accepts', async () => {
    const wrong = { code: 7, seats: 13, ends_at: day(1), starts_at: day(2), extra: 1 };
    const expected = ['body.code invalid_type', 'body.ends_at before_start', 'body.extra unknown_field', 'body.seats unlucky'];
    expect(await send('POST', 'trips', wrong)).toMatchObject({ status: 422, faults: expected });
    const { id } = await made();
    for (const method of ['PATCH', 'PUT'])
      expect(await send(method, `trips/${id}`, wrong)).toMatchObject({ status: 422, faults: expected });
    // What the schema refuses, the rule does not see.
    expect((await send('POST', 'trips', trip({ seats: 0, ends_at: day(1) }))).faults).toEqual([
      'body.ends_at before_start',
      'body.seats too_small',
    ]);
  });

  test('an update is judged with the row as it is, which is locked', async () => {
    const { id, code } = await made();
    asked.length = 0;
    expect((await send('PATCH', `trips/${id}`, { starts_at: day(4) })).faults).toEqual(['body.ends_at before_start']);
    expect((await send('PATCH', `trips/${id}`, { starts_at: day(1) })).status).toBe(200);
    expect(asked).toMatchObject([
      { before: code, isInTransaction: true },
      { before: code, isInTransaction: true },
    ]);
    expect((await send('PUT', `trips/${id}`, trip({ ends_at: day(1) }))).faults).toEqual(['body.ends_at before_start']);
    expect((await send('DELETE', `trips/${id}`)).status).toBe(204);
  });

  test('a row that the caller does not see, or may not write, is not judged', async () => {
    const foreign = await insert(database.db, trips, {
      owner_id: people.bob.id,
      code: 'bob',
      seats: 1,
      starts_at: new Date(day(2)),
      ends_at: new Date(day(3)),
    });
    expect((await send('PATCH', `trips/${foreign.id}`, { starts_at: day(4) })).status).toBe(404);
    expect(await send('PATCH', `trips/${foreign.id}`, { starts_at: day(4), code: 7 })).toMatchObject({
      status: 422,
      faults: ['body.code invalid_type'],
    });
    expect(asked).toEqual([]);
    const { id } = await made();
    asked.length = 0;
    expect((await send('PATCH', `trips/${id}`, { note: 'mine', seats: 13 })).status).toBe(403);
    expect(asked).toEqual([]);
  });

  test('bulk: each item at its place, also where the schema refuses another', async () => {
    const items = [trip(), trip({ seats: 13 }), trip({ ends_at: day(1) })];
    expect((await send('POST', 'trips/bulk', { items })).faults).toEqual([
      'body.items.1.seats unlucky',
      'body.items.2.ends_at before_start',
    ]);
    expect((await send('POST', 'trips/bulk', { items: [...items, trip({ code: 7, seats: 13 })] })).faults).toEqual([
      'body.items.1.seats unlucky',
      'body.items.2.ends_at before_start',
      'body.items.3.code invalid_type',
      'body.items.3.seats unlucky',
    ]);
    const [first, second] = [await made(), await made()];
    const update = (more: object) => send('POST', 'trips/bulk-update', more);
    expect(
      (
        await update({
          items: [
            { id: first.id, starts_at: day(4) },
            { id: second.id, seats: 13, code: 7 },
          ],
        })
      ).faults,
    ).toEqual(['body.items.0.ends_at before_start', 'body.items.1.code invalid_type', 'body.items.1.seats unlucky']);
    expect((await update({ ids: [first.id, second.id], changes: { seats: 13 } })).faults).toEqual([
      'body.changes.seats unlucky',
      'body.changes.seats unlucky',
    ]);
  });

  test('partial bulk: an item has all of its errors, the others are written', async () => {
    const { id } = await made();
    const results = async (path: string, items: readonly object[]) => {
      const { answer } = await send('POST', path, { items });
      return answer.results.map(({ status, errors = [] }: { status: number; errors?: { location: unknown[]; code: string }[] }) => [
        status,
        errors.map(({ location, code }) => `${String(location.at(-1))} ${code}`).toSorted(),
      ]);
    };
    expect(await results('each/bulk', [trip({ seats: 13 }), trip(), trip({ seats: 13, code: 7 })])).toEqual([
      [422, ['seats unlucky']],
      [201, []],
      [422, ['code invalid_type', 'seats unlucky']],
    ]);
    expect(await results('each/bulk-update', [{ id, starts_at: day(4), code: 7 }])).toEqual([
      [422, ['code invalid_type', 'ends_at before_start']],
    ]);
  });

  test.each(['create', 'upsert'])(
    'import, also as a dry run: every row of the file, with the errors of the schema: mode=%s',
    async (mode) => {
      const { code } = await made();
      const lines = [
        trip(),
        trip({ seats: 13 }),
        trip({ seats: 'x' }),
        mode === 'upsert' ? { ...trip({ starts_at: day(4) }), code } : trip({ ends_at: day(1) }),
      ];
      for (const dryRun of ['true', 'false']) {
        const { statusCode, payload } = await app.inject({
          method: 'POST',
          url: `/v1/trips/import?mode=${mode}&dry_run=${dryRun}`,
          headers: { 'x-user': 'ann', 'content-type': 'application/x-ndjson' },
          payload: lines.map((line) => JSON.stringify(line)).join('\n'),
        });
        const places = JSON.parse(payload).errors.map(
          ({ location, code: found }: { location: unknown[]; code: string }) => `${location.join('.')} ${found}`,
        );
        expect([statusCode, places.toSorted()]).toEqual([
          422,
          ['body.2.seats unlucky', 'body.3.seats invalid_type', 'body.4.ends_at before_start'],
        ]);
      }
    },
  );

  test('nested rows are judged by their own resource, at their places', async () => {
    const { faults } = await send('POST', 'trips', trip({ stops: [{ place: 'Rome' }, { place: 'nowhere' }] }));
    expect(faults).toEqual(['body.stops.1.place no_place']);
  });

  test('programs and the admin site are judged, too', async () => {
    const { id } = await made();
    const user = { id: people.ann.id, username: 'ann', email: null, is_active: true, is_staff: true, is_superuser: true };
    const own = crudOf(app.app, tripResource).as({ user, tenant: null }).write();
    await expect(own.update(id, { seats: 13 })).rejects.toMatchObject({ code: 'validation_error', errors: [{ code: 'unlucky' }] });
    const { AdminAccess } = await import('./staff/admin-access.ts');
    const admin = new AdminAccess(app.app, tripResource, { user, tenant: null });
    await expect(admin.update(id, { seats: 13 }, { sent: ['seats'] })).rejects.toMatchObject({
      errors: [{ location: ['body', 'seats'], code: 'unlucky' }],
    });
  });

  describe('beside a permission about the row', () => {
    test('a caller who may not change the row learns nothing of it from the rules', async () => {
      await using site = await startShop({
        database: database.db,
        mount: { '/v1': { '/ruled': RuledController } },
        modules: [{ name: 'trips', models: [trips, stops], migrations: [] }],
      });
      const [foreign] = await database.db.query<{ id: string }>("select id from trips where code = 'bob'");
      asked.length = 0;
      const { status, body } = await site.call('ann', 'PATCH', `ruled/${foreign!.id}`, { starts_at: day(4), code: 7 });
      expect([status, body.errors.map(({ code }: { code: string }) => code)]).toEqual([422, ['invalid_type']]);
      expect((await site.call('ann', 'PATCH', `ruled/${foreign!.id}`, { starts_at: day(4) })).status).toBe(403);
      expect(asked).toEqual([]);
    });
  });
});
