import { afterAll, beforeAll, expect, test } from 'vitest';
import { CrudController, resource } from '../src/crud/index.ts';
import { createTable, migration, model, openDatabase, t } from '../src/db/index.ts';
import { isAuthenticated } from '../src/permissions/index.ts';
import { audit } from '../src/contrib/audit/index.ts';
import { sealEntries } from '../src/contrib/audit/chain/seal.ts';
import { verifyChain } from '../src/contrib/audit/chain/verify-chain.ts';
import { createEndpoint, webhooks } from '../src/contrib/webhooks/index.ts';
import { createApp } from '../src/app/index.ts';
import { createSqliteDatabase, describeDatabases, testApp } from '../src/testing/index.ts';
import { people, startShop, type ShopApp } from './crud/shop.ts';
import { LOOPBACK } from './webhooks/outbox.ts';
import { z } from 'zod';
import { Controller, jsonSchema, route } from '../src/http/index.ts';

describeDatabases('changes in several databases', (database) => {
  const start = async (modules: ReturnType<typeof audit>[]) => {
    const place = await createSqliteDatabase();
    const shop = await openDatabase(place.url, { name: 'shop' });
    const app = await testApp({ database: { default: database.db, shop }, modules, mount: {} });
    const end = async () => {
      await app.close();
      await shop.close();
      await place.remove();
    };
    return { app: app.app, shop, [Symbol.asyncDispose]: end };
  };
  const endpoint = { owner: 'ann', url: 'http://127.0.0.1:9/', events: ['*'] };

  test('are recorded where they happen, each database with a chain of its own', async () => {
    const modules = [audit({ databases: ['default', 'shop'] }), webhooks({ databases: ['default', 'shop'], urlPolicy: LOOPBACK })];
    await using started = await start(modules);
    const { app, shop } = started;
    await shop.transaction(async (tx) => {
      const created = await createEndpoint(tx, endpoint);
      await app.registry.audit?.record(tx, [{ action: 'tried', target_type: 'endpoint', target_id: created.endpoint.id }]);
    });
    await sealEntries(shop, { wait: true });
    expect(await verifyChain(shop)).toMatchObject({ ok: true, checked: 1 });
    expect(await verifyChain(database.db)).toMatchObject({ ok: true, checked: 0 });
  });

  test('a change that cannot be recorded does not happen, and the reason says what to do', async () => {
    await using started = await start([audit(), webhooks({ databases: ['default', 'shop'], urlPolicy: LOOPBACK })]);
    const { app, shop } = started;
    const change = shop.transaction(async (tx) => {
      await createEndpoint(tx, endpoint);
      await app.registry.audit?.record(tx, [{ action: 'tried', target_type: 'endpoint', target_id: 'x' }]);
    });
    await expect(change).rejects.toThrow('Use audit({ databases: ["default","shop"] }).');
    expect(await shop.query('select id from webhook_endpoints')).toEqual([]);
  });

  test('a database that was opened under another name than the app uses is refused at start-up', () => {
    const make = () => createApp({ database: { default: database.db, shop: database.db }, mount: {} });
    expect(make).toThrow('The database passed as "shop" was opened as "default". openDatabase(url, { name: "shop" })');
  });

  test('invalid options, or no database at all, are refused', () => {
    expect(() => audit({ databases: [] })).toThrow('databases is empty');
    expect(() => audit({ database: 'shop' } as never)).toThrow('Did you mean "databases"?');
  });
});

const notes = model('notes', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  title: t.text(80),
  pin: t.text(20).nullable().sensitive(),
  code: t.text(20).dbDefault('A-1'),
});
const noteModule = { name: 'notes', models: [notes], migrations: [migration('0001_notes', [createTable('notes', notes.columns)])] };
class Notes extends CrudController(resource(notes, { owner: 'owner_id', events: true }), { permission: isAuthenticated }) {}

/** Another route marks a member that a column of the notes is called by. */
class Titles extends Controller {
  find = route.post(
    '/',
    { permission: isAuthenticated, body: z.object({ title: z.string().meta({ 'x-sensitive': true }) }), response: jsonSchema<object>({}) },
    () => ({}),
  );
}

describeDatabases('a create that only its records read', (database) => {
  let shop: ShopApp;
  beforeAll(async () => {
    const modules = [noteModule, audit(), webhooks({ urlPolicy: LOOPBACK })];
    shop = await startShop({ database: database.db, mount: { '/v1': { '/notes': Notes, '/titles': Titles } }, modules });
    await database.db.transaction((tx) => createEndpoint(tx, { owner: people.ann.id, url: 'http://127.0.0.1:9/', events: ['*'] }));
    await sealEntries(database.db, { wait: true });
  });
  afterAll(() => shop.close());
  const create = (title: string, headers: Record<string, string> = {}) =>
    shop.call('ann', 'POST', 'notes', { title, pin: 'pin-of-ann' }, headers);
  const count = async (table: string, where: string) =>
    Number((await database.db.query<{ count: number | bigint }>(`select count(*) as count from ${table} where ${where}`))[0]?.count);
  const counts = async () => [
    await count('notes', 'true'),
    // In one statement: entries move from one table to the other meanwhile.
    await count('(select action from audit_inbox union all select action from audit_entries) entries', `action = 'note.created'`),
    await count('webhook_events', `type = 'note.created'`),
    await count('webhook_deliveries', `event_type = 'note.created'`),
    await count('kit_idempotency', 'true'),
  ];

  test('has one audit entry, one event and one delivery, all of them with the row; a repetition under its key has no more', async () => {
    const before = await counts();
    const { status, body } = await create('one');
    expect(status).toBe(201);
    for (const replayed of [undefined, 'true'])
      expect((await create('two', { 'idempotency-key': 'two' })).headers['idempotent-replayed']).toBe(replayed);
    expect((await counts()).map((now, index) => now - (before[index] as number))).toEqual([2, 2, 2, 2, 1]);
    await sealEntries(database.db, { wait: true });
    expect(await verifyChain(database.db)).toMatchObject({ ok: true });
    const [entry] = await database.db.query(
      'select actor_id, actor_name, target_type, before, after from audit_entries where target_id = $1',
      [body.id],
    );
    expect(entry).toMatchObject({ actor_id: people.ann.id, actor_name: 'ann', target_type: 'note', before: null });
    // By its place in the model: a name that is sensitive elsewhere, or sounds so, is shown.
    const after = { id: body.id, owner_id: people.ann.id, title: 'one', pin: '[masked]', code: 'A-1' };
    expect((entry as { after: unknown }).after).toEqual(after);
    const [event] = await database.db.query<{ data: string }>('select data from webhook_events where ordering_key = $1', [
      `note:${body.id}`,
    ]);
    expect(JSON.parse(event?.data ?? '')).toMatchObject({ id: body.id, object: { title: 'one' } });
    expect(event?.data).not.toContain('pin-of-ann');
  });

  test.each(['audit_inbox', 'webhook_events', 'webhook_deliveries', 'kit_idempotency'])(
    'does not happen when nothing can be written to %s, with a key or without, and works when it can',
    async (table) => {
      const isSqlite = database.dialect === 'sqlite';
      if (!isSqlite)
        await database.db.query(
          `create or replace function no_room() returns trigger language plpgsql as $$ begin raise exception 'no room'; end $$`,
        );
      await database.db.query(
        isSqlite
          ? `create trigger no_room before insert on ${table} begin select raise(abort, 'no room'); end`
          : `create trigger no_room before insert on ${table} for each row execute function no_room()`,
      );
      const before = await counts();
      const plain = await create(table);
      expect(plain.status).toBe(table === 'kit_idempotency' ? 201 : 500);
      const added = table === 'kit_idempotency' ? [1, 1, 1, 1, 0] : [0, 0, 0, 0, 0];
      expect((await create(table, { 'idempotency-key': table })).status).toBe(500);
      expect((await counts()).map((now, index) => now - (before[index] as number))).toEqual(added);
      await database.db.query(isSqlite ? 'drop trigger no_room' : `drop trigger no_room on ${table}`);
      const retried = await create(table, { 'idempotency-key': table });
      expect([retried.status, retried.headers['idempotent-replayed']]).toEqual([201, undefined]);
    },
  );
});
