import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createApp } from '../app/create-app.ts';
import { migrateApp } from '../app/index.ts';
import type { App } from '../app/module.ts';
import { audit, sealEntries } from '../contrib/audit/index.ts';
import { webhooks } from '../contrib/webhooks/index.ts';
import { createEndpoint } from '../contrib/webhooks/endpoints/create-endpoint.ts';
import { createTable, currentTransaction, type Db, migration, model, observeQueries, t, timestamps } from '../db/index.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController } from './index.ts';

const OWNER = '00000000-0000-7000-8000-000000000001';
const authenticator = {
  name: 'test',
  securityScheme: { type: 'http', scheme: 'none' },
  authenticate: () => ({
    user: { id: OWNER, username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false },
    scheme: 'test',
    scopes: null,
  }),
};
const columns = {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  name: t.text(40).unique(),
  price: t.decimal(10, 2).nullable(),
  due: t.timestamp().nullable(),
  state: t.enum(['open', 'closed']).dbDefault('open'),
  note: t.text(40).nullable(),
  details: t.json().nullable(),
  ...timestamps(),
};
const parcels = model('parcels', columns);
const plainParcels = model('plain_parcels', columns);

/** The row, its audit entry and its event are one transaction, and on PostgreSQL one round trip, made before the database has said what it stored. */
describeDatabases('a create that is audited and announced', (database) => {
  let app: App;
  const onPostgres = database.dialect === 'postgres';
  class ParcelController extends CrudController(parcels, { owner: 'owner_id', permission: isAuthenticated, events: true }) {}
  class PlainParcelController extends CrudController(plainParcels, { owner: 'owner_id', permission: isAuthenticated, audit: false }) {}

  beforeAll(async () => {
    app = createApp({
      database: database.db,
      modules: [
        {
          name: 'parcels',
          models: [parcels, plainParcels],
          migrations: [migration('0001_initial', [createTable('parcels', columns), createTable('plain_parcels', columns)])],
        },
        audit(),
        webhooks({ secretKeys: [`${Buffer.alloc(32, 7).toString('base64url')}=`] }),
      ],
      mount: { '/v1': { '/parcels': ParcelController, '/plain': PlainParcelController } },
      authenticators: [authenticator],
      log: { level: 'silent' },
    });
    await migrateApp(app);
    await app.ready();
    await database.db.transaction((tx) => createEndpoint(tx, { owner: OWNER, url: 'https://example.com/', events: ['parcel.*'] }));
  });
  afterAll(() => app.close());

  const call = async (method: 'GET' | 'POST', url: string, payload?: object, headers: Record<string, string> = {}) => {
    const response = await app.fastify.inject({ method, url, headers, ...(payload === undefined ? {} : { payload }) });
    const isReplayed = response.headers['idempotent-replayed'] === 'true';
    return { status: response.statusCode, body: JSON.parse(response.body) as Record<string, never>, isReplayed, text: response.body };
  };
  const create = async (payload: object, headers?: Record<string, string>, path = '/v1/parcels') => {
    const texts: string[] = [];
    const response = await observeQueries(
      ({ sql }) => void texts.push(sql),
      () => call('POST', path, payload, headers),
    );
    const inserts = texts.filter((text) => /insert into "?(?:plain_)?parcels/.test(text));
    return { ...response, asked: inserts.map((text) => text.includes('returning "id", "owner_id"')) };
  };
  const recorded = async () => {
    await sealEntries(database.db, { wait: true });
    const [entries, events, deliveries] = await Promise.all([
      database.db.query<{ target_id: string; after: Record<string, unknown> }>(
        `select target_id, after from audit_entries where target_type = 'parcel' order by seq`,
      ),
      database.db.query<{ data: string }>('select data from webhook_events order by id'),
      database.db.query('select event_id from webhook_deliveries'),
    ]);
    return { entries, events: events.map(({ data }) => JSON.parse(data) as { object: Record<string, unknown> }), deliveries };
  };
  /** What the response said is what is stored, recorded and announced, once. */
  const isOneTruth = async (response: { readonly status: number; readonly body: Record<string, never> }) => {
    expect(response.status).toBe(201);
    const { body } = await call('GET', `/v1/parcels/${response.body['id']}`);
    expect(response.body).toEqual(body);
    const { entries, events, deliveries } = await recorded();
    expect(entries).toEqual([{ target_id: body['id'], after: body }]);
    expect(events.map(({ object }) => object)).toEqual([body]);
    expect(deliveries).toHaveLength(1);
    return body as Record<string, unknown>;
  };

  beforeEach(async () => {
    await recorded();
    for (const statement of [
      'delete from webhook_deliveries',
      'delete from webhook_events',
      'delete from parcels',
      'delete from plain_parcels',
      'delete from audit_entries',
    ])
      await database.db.query(statement);
    await database.db.query(
      `update audit_chain set length = 0, pruned_through = 0, hash = '${'0'.repeat(64)}', pruned_hash = '${'0'.repeat(64)}'`,
    );
  });

  test('says, records and announces the row that is stored, and does not wait for it', async () => {
    const response = await create({ name: 'first', price: '1.5', due: '2026-02-28T10:00:00.5Z' });
    expect(response.asked).toEqual([false]);
    const row = await isOneTruth(response);
    expect(row).toMatchObject({
      name: 'first',
      price: '1.50',
      due: '2026-02-28T10:00:00.500Z',
      state: 'open',
      note: null,
      owner_id: OWNER,
    });
  });

  test('a row with a JSON value is waited for on PostgreSQL, which has its own order of members', async () => {
    const response = await create({ name: 'detailed', details: { long: 1, b: [1.0, { z: 1, a: 2 }] } });
    expect(response.asked).toEqual([onPostgres]);
    await isOneTruth(response);
  });

  test('a value that is taken is a fault of its field, and nothing is recorded or announced', async () => {
    await create({ name: 'taken' });
    const response = await create({ name: 'taken', price: '2.00' });
    expect(response.status).toBe(409);
    expect(JSON.stringify(response.body)).toContain('name');
    const { entries, events, deliveries } = await recorded();
    expect([entries.length, events.length, deliveries.length]).toEqual([1, 1, 1]);
    // That says nothing about the table: the next one is not waited for either.
    expect((await create({ name: 'free' })).asked).toEqual([false]);
  });

  test('with an idempotency key, too: recorded or not, its response is the row, and is replayed', async () => {
    for (const [path, sku] of [
      ['/v1/parcels', 'a'],
      ['/v1/plain', 'b'],
    ] as const) {
      const headers = { 'idempotency-key': `key-${sku}` };
      const payload = { name: `keyed ${sku}`, price: '7.1', due: '2026-02-28T10:00:00.5Z' };
      const first = await create(payload, headers, path);
      expect([path, first.status, first.asked]).toEqual([path, 201, [false]]);
      expect((await call('GET', `${path}/${first.body['id']}`)).body).toEqual(first.body);
      const again = await create(payload, headers, path);
      expect([again.status, again.isReplayed, again.text, again.asked]).toEqual([201, true, first.text, []]);
    }
    expect((await recorded()).entries).toHaveLength(1);
  });

  test('with an idempotency key, a value that is taken is a fault of its field, kept and replayed', async () => {
    for (const path of ['/v1/parcels', '/v1/plain']) {
      await create({ name: 'twice' }, undefined, path);
      const headers = { 'idempotency-key': `taken-${path}` };
      const refused = await create({ name: 'twice' }, headers, path);
      expect([refused.status, refused.isReplayed]).toEqual([409, false]);
      expect(refused.text).toContain('"name"');
      const again = await create({ name: 'twice' }, headers, path);
      expect([again.status, again.isReplayed, again.text]).toEqual([409, true, refused.text]);
    }
    expect((await recorded()).entries).toHaveLength(1);
  });

  // SQLite makes known rows only where the table is as its model has it: see known-insertion.db.test.ts.
  const alter = async (statements: readonly string[], work: () => Promise<void>, undo: readonly string[]) => {
    for (const statement of statements) await database.db.query(statement);
    try {
      await work();
    } finally {
      for (const statement of undo) await database.db.query(statement);
      // As a migration does.
      const { engine } = (database.db as unknown as { readonly context: { readonly engine: { forgetStatements(): void } } }).context;
      engine.forgetStatements();
    }
  };
  const trigger = (body: string) => [
    `create function alter_parcel() returns trigger language plpgsql as $$ begin ${body} end $$`,
    'create trigger alter_parcel before insert on parcels for each row execute function alter_parcel()',
  ];
  const dropTrigger = ['drop trigger alter_parcel on parcels', 'drop function alter_parcel()'];

  test.runIf(onPostgres)('a trigger of the table that changes the row is noticed: the row is asked for, then and later', () =>
    alter(
      trigger('new.name := upper(new.name); return new;'),
      async () => {
        const response = await create({ name: 'loud' });
        expect(response.asked).toEqual([false, true]);
        expect(await isOneTruth(response)).toMatchObject({ name: 'LOUD' });
        expect((await create({ name: 'louder' })).asked).toEqual([true]);
      },
      dropTrigger,
    ),
  );

  test.runIf(onPostgres)('a column that the model has a default for, and the table another one, is noticed', () =>
    alter(
      [`alter table parcels alter state set default 'closed'`],
      async () => {
        const response = await create({ name: 'shut' });
        expect(response.asked).toEqual([false, true]);
        expect(await isOneTruth(response)).toMatchObject({ state: 'closed' });
      },
      [`alter table parcels alter state set default 'open'`],
    ),
  );

  test.runIf(onPostgres)('a default of the table that the model does not know is noticed', () =>
    alter(
      [`alter table parcels alter note set default 'from the table'`],
      async () => expect(await isOneTruth(await create({ name: 'noted' }))).toMatchObject({ note: 'from the table' }),
      ['alter table parcels alter note drop default'],
    ),
  );

  test.runIf(onPostgres)('a number that is equal and spelt in another way is noticed', () =>
    alter(
      ['alter table parcels alter price type numeric(10, 4)'],
      async () => expect((await create({ name: 'exact', price: '1.50' })).asked).toEqual([false, true]),
      ['alter table parcels alter price type numeric(10, 2)'],
    ),
  );

  test.runIf(onPostgres)('a table that drops the row leaves no entry and no event', () =>
    alter(
      trigger('return null;'),
      async () => {
        expect((await create({ name: 'gone' })).status).toBe(500);
        const { entries, events, deliveries } = await recorded();
        expect([entries, events, deliveries]).toEqual([[], [], []]);
      },
      dropTrigger,
    ),
  );

  test.runIf(onPostgres)('a trigger that refuses a row refuses that one, and the next is not waited for', () =>
    alter(
      trigger(`if new.name = 'bad' then raise exception 'no' using errcode = '22023'; end if; return new;`),
      async () => {
        expect((await create({ name: 'bad' })).status).toBe(500);
        expect((await create({ name: 'good' })).asked).toEqual([false]);
      },
      dropTrigger,
    ),
  );
});

/** What an application provides instead of the toolkit's modules is its own code. */
describeDatabases('a create that an application records itself', (database) => {
  let app: App;
  const seen: unknown[] = [];
  class ParcelController extends CrudController(parcels, { owner: 'owner_id', permission: isAuthenticated }) {}

  beforeAll(async () => {
    const record = async (tx: Db): Promise<void> => {
      const running = await database.db.query<{ state: string }>('select state from kit_idempotency');
      seen.push([currentTransaction() === tx, running.map(({ state }) => state)]);
    };
    app = createApp({
      database: database.db,
      modules: [
        { name: 'parcels', models: [parcels], migrations: [migration('0001_initial', [createTable('parcels', columns)])] },
        { name: 'recorder', provides: () => ({ audit: { record } }) },
      ],
      mount: { '/v1': { '/parcels': ParcelController } },
      authenticators: [authenticator],
      log: { level: 'silent' },
    });
    await migrateApp(app);
    await app.ready();
  });
  afterAll(() => app.close());

  test('has its transaction as the current one, and its key is claimed before', async () => {
    for (const headers of [{}, { 'idempotency-key': 'own-recorder' }]) {
      const payload = { name: `recorded ${Object.keys(headers).length}` };
      expect((await app.fastify.inject({ method: 'POST', url: '/v1/parcels', headers, payload })).statusCode).toBe(201);
    }
    expect(seen).toEqual([
      [true, []],
      [true, ['running']],
    ]);
  });
});
