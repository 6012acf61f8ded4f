import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { Follower, type LiveApp, send, startLive } from '../../../test/crud/live.ts';
import type { Person } from '../../../test/crud/shop.ts';
import type { Module } from '../../app/declare/module.ts';
import { coreTables, migrateApp, pendingOf } from '../../app/data/migration-modules.ts';
import { createTable, type Database, migration, model, t } from '../../db/index.ts';
import { migrate } from '../../db/migrations/migrate.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { CrudController, resource, touched } from '../index.ts';
import { policiesOf } from '../policy/policies.ts';
import type { Policy } from '../policy/policy.ts';
import { priorRow } from '../write/change-log.ts';

const PATIENCE = { timeout: 10_000, interval: 20 };

const meters = model('meters', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  name: t.text(80),
  state: t.enum(['on', 'off']).dbDefault('on'),
  level: t.int().nullable(),
  total: t.bigint().dbDefault(0n),
  price: t.decimal(12, 2).nullable(),
  share: t.float().nullable(),
  checked: t.bool().dbDefault(false),
  seen_at: t.timestamp().nullable(),
  day: t.date().nullable(),
  extra: t.json().nullable(),
  secret: t.text(40).nullable().sensitive(),
});
const meterResource = resource(meters, { owner: 'owner_id', changes: 'trigger' });
const counters = model('counters', { number: t.int().pk(), room: t.text(20) });
const counterResource = resource(counters, { unscoped: true, changes: 'trigger' });

const filters = {
  state: ['eq'],
  level: ['gte'],
  total: ['gte'],
  price: ['lt'],
  share: ['gt'],
  checked: ['eq'],
  seen_at: ['gt'],
  day: ['eq'],
} as const;
class MeterController extends CrudController(meterResource, { permission: isAuthenticated, filters, live: true, page: { max: 1000 } }) {}
class CounterController extends CrudController(counterResource, { permission: isAuthenticated, live: true }) {}
class PlainMeterController extends CrudController(meterResource, { permission: isAuthenticated }) {}

const meterModule: Module = {
  name: 'meters',
  models: [meters, counters],
  migrations: [migration('0001_meters', [createTable('meters', meters.columns), createTable('counters', counters.columns)])],
};
const mount = { '/v1': { '/tickets': MeterController, '/counters': CounterController } };

describeDatabases('a live list of rows that programs write', (database) => {
  let db: Database;
  let live: LiveApp;
  const open: Follower[] = [];

  beforeAll(async () => {
    db = database.db;
    await migrate(db, [coreTables, meterModule]);
  });
  afterAll(async () => {
    await live?.app.close();
  });
  afterEach(async () => {
    for (const each of open.splice(0)) await each.disconnect();
  });

  const ids = { ann: '', bob: '' };
  async function follow(person: Person, query = '', url = live.url): Promise<Follower> {
    const follower = await new Follower(person, query).connect(url);
    open.push(follower);
    await vi.waitFor(() => expect(follower.batches).toBe(1), PATIENCE);
    return follower;
  }
  const ownerOf = async (person: Person): Promise<string> => {
    const { body } = await send(live.url, person, 'POST', { name: 'first' });
    const [row] = await db.query<{ owner_id: string }>('select owner_id from meters where id = $1', [body.id]);
    await db.query('delete from meters where id = $1', [body.id]);
    return row?.owner_id ?? '';
  };
  const insert = async (owner: string, values: Readonly<Record<string, unknown>> = {}): Promise<string> => {
    const row = { id: crypto.randomUUID(), owner_id: owner, name: 'by sql', ...values };
    const names = Object.keys(row);
    await db.query(
      `insert into meters (${names.join(', ')}) values (${names.map((_, index) => `$${index + 1}`).join(', ')})`,
      Object.values(row),
    );
    return row.id;
  };

  test('does not start until kit migrate has created the triggers, and says so', async () => {
    await expect(startLive(db, { mount, modules: [meterModule] })).rejects.toThrow(
      /triggers that log the changes of "meters" are missing.*/s,
    );
  });

  test('kit migrate creates the triggers while a list is live, and removes them afterwards', async () => {
    const { createApp } = await import('../../app/assemble/create-app.ts');
    const make = (controllers: object) =>
      createApp({ database: db, mount: controllers as typeof mount, modules: [meterModule], log: { level: 'silent' } });
    const [with_, without] = [make(mount), make({ '/v1': { '/meters': PlainMeterController } })];
    expect(await pendingOf(without)).toEqual([]);
    expect(await pendingOf(with_)).toEqual(['kit/changes of counters', 'kit/changes of meters']);
    expect(Object.keys((await migrateApp(with_, { dryRun: true })).statements)).toEqual(['kit/changes']);
    expect((await migrateApp(with_)).applied).toEqual(['kit/changes of counters', 'kit/changes of meters']);
    expect(await pendingOf(with_)).toEqual([]);
    expect((await migrateApp(with_)).applied).toEqual([]);
    expect((await migrateApp(without)).applied.toSorted()).toEqual(['kit/changes of counters', 'kit/changes of meters']);
    await db.query(`insert into counters (number, room) values (1, 'unlogged')`);
    expect(await db.query('select position from kit_changes')).toEqual([]);
    await migrateApp(with_);
    live = await startLive(db, { mount, modules: [meterModule] });
    ids.ann = await ownerOf('ann');
    ids.bob = await ownerOf('bob');
  });

  test('shows rows that SQL creates, changes, moves out and deletes, and no rows of others', async () => {
    const follower = await follow('ann', '?state=on');
    const id = await insert(ids.ann);
    await vi.waitFor(() => expect(follower.rows.get(id)).toMatchObject({ name: 'by sql' }), PATIENCE);
    await db.query(`update meters set name = 'renamed' where owner_id in ($1, $2)`, [ids.ann, ids.bob]);
    await vi.waitFor(() => expect(follower.rows.get(id)).toMatchObject({ name: 'renamed' }), PATIENCE);
    await insert(ids.bob);
    await db.query(`update meters set name = name, extra = '{"a":1}' where owner_id = $1`, [ids.bob]);
    await db.query(`update meters set state = 'off'`);
    await vi.waitFor(() => expect(follower.rows.size).toBe(0), PATIENCE);
    await db.query(`update meters set state = 'on' where id = $1`, [id]);
    await vi.waitFor(() => expect(follower.rows.has(id)).toBe(true), PATIENCE);
    await db.query('delete from meters');
    await vi.waitFor(() => expect(follower.rows.size).toBe(0), PATIENCE);
    expect(follower.log.map(({ event }) => event).filter((event) => event !== 'ready')).toEqual([
      'upsert',
      'upsert',
      'remove',
      'upsert',
      'remove',
    ]);
  });

  test('tells a list only changes of the columns that it shows, also of those whose values are not logged', async () => {
    const id = await insert(ids.ann, { extra: '{"a":1}' });
    const follower = await follow('ann', '?fields=id,extra');
    await db.query(`update meters set name = 'other', secret = 'other', level = 9 where id = $1`, [id]);
    await db.query(`update meters set extra = $1, share = 2 where id = $2`, ['{"a":1}', id]);
    // The first of several changes says how the row was; each says which columns it changed.
    await db.transaction(async (tx) => {
      await tx.query(`update meters set name = 'another' where id = $1`, [id]);
      await tx.query(`update meters set extra = '{"a":2}' where id = $1`, [id]);
      await tx.query(`update meters set name = 'a third' where id = $1`, [id]);
    });
    await vi.waitFor(() => expect(follower.rows.get(id)).toEqual({ id, extra: { a: 2 } }), PATIENCE);
    expect(follower.log.slice(2)).toEqual([
      { event: 'upsert', data: { key: id, item: { id, extra: { a: 2 } } } },
      { event: 'ready', data: {} },
    ]);
    await db.query('delete from meters');
  });

  test('logs a change once, whoever writes it, and none where nothing changes', async () => {
    await db.query('delete from kit_changes');
    const { body } = await send(live.url, 'ann', 'POST', { name: 'by http' });
    await send(`${live.url}/${body.id}`, 'ann', 'PATCH', { name: 'changed' });
    await db.query(`update meters set name = name`);
    await db.transaction((tx) => touched(tx, meterResource, [body.id]));
    await send(`${live.url}/${body.id}`, 'ann', 'DELETE');
    expect((await db.query<{ kind: string }>('select kind from kit_changes order by position')).map(({ kind }) => kind)).toEqual([
      'created',
      'changed',
      'changed',
    ]);
  });

  test.for([
    ['?level__gte=7', { level: 8 }, { level: 6 }],
    ['?total__gte=9007199254740993', { total: 9_007_199_254_740_993n }, { total: 9_007_199_254_740_992n }],
    ['?price__lt=2.10', { price: '2.05' }, { price: '2.10' }],
    ['?share__gt=0.1', { share: 0.1 + Number.EPSILON }, { share: 0.1 }],
    ['?checked=true', { checked: true }, { checked: false }],
    [
      '?seen_at__gt=2026-01-01T00:00:00.100Z',
      { seen_at: new Date('2026-01-01T00:00:00.101Z') },
      { seen_at: new Date('2026-01-01T00:00:00.100Z') },
    ],
    ['?day=2026-02-28', { day: '2026-02-28' }, { day: '2026-03-01' }],
  ] as const)('decides by the logged value of a column what left the list: %s', async ([query, inside, outside]) => {
    const follower = await follow('ann', query);
    const id = await insert(ids.ann, inside);
    const never = await insert(ids.ann, outside);
    await vi.waitFor(() => expect([...follower.rows.keys()]).toEqual([id]), PATIENCE);
    const [name] = Object.keys(outside) as [string];
    await db.query(`update meters set ${name} = $1 where id in ($2, $3)`, [Object.values(outside)[0], id, never]);
    await vi.waitFor(() => expect(follower.rows.size).toBe(0), PATIENCE);
    await db.query(`update meters set ${name} = null where id in ($1, $2) and ${name} is null`, [id, never]);
    await db.query('delete from meters');
    const last = await insert(ids.ann, inside);
    await vi.waitFor(() => expect(follower.rows.has(last)).toBe(true), PATIENCE);
    expect(follower.log.filter(({ event }) => event === 'remove' || event === 'reset')).toEqual([{ event: 'remove', data: { key: id } }]);
    await db.query('delete from meters');
  });

  test('keeps nothing of sensitive columns, JSON and bytes in the log', async () => {
    const id = await insert(ids.ann, { secret: 'do-not-log', extra: '{"note":"do-not-log"}' });
    await db.query(`update meters set secret = 'do-not-log-either' where id = $1`, [id]);
    await db.query('delete from meters where id = $1', [id]);
    const rows = await db.query<{ prior: unknown }>('select prior from kit_changes');
    expect(rows.length).toBeGreaterThan(2);
    expect(JSON.stringify(rows)).not.toContain('do-not-log');
  });

  test('has prior values that the same code reads as those that the pipeline logs', async () => {
    await db.query('delete from kit_changes');
    const values = { level: -3, total: 5n, price: '7.50', share: 0.1, checked: true, seen_at: new Date(1e12 + 7), day: '2026-02-28' };
    const id = await insert(ids.ann, { ...values, name: `quote " back \\ slash ' \u{1f600} \t` });
    await db.query('delete from meters where id = $1', [id]);
    const [, logged] = await db.query<{ prior: Record<string, unknown>; key: string }>(
      'select prior, key from kit_changes order by position',
    );
    const policy = policiesOf(live.app).find(meters as never) as Policy;
    expect(priorRow(policy, logged?.prior as never, true)).toEqual({
      ...values,
      id,
      owner_id: ids.ann,
      name: `quote " back \\ slash ' \u{1f600} \t`,
      state: 'on',
    });
    expect(logged?.key).toBe(JSON.stringify(id));
  });

  test('follows keys that are numbers', async () => {
    const follower = await follow('ann', '', live.url.replace('tickets', 'counters'));
    await db.query(`insert into counters (number, room) values (7, 'hall'), (8, 'roof')`);
    await vi.waitFor(() => expect(follower.rows.has(8 as never)).toBe(true), PATIENCE);
    await db.query('update counters set number = 9 where number = 7');
    await vi.waitFor(() => expect([follower.rows.has(7 as never), follower.rows.has(9 as never)]).toEqual([false, true]), PATIENCE);
  });

  test('thousands of changed rows of one table do not reset the lists of another', async () => {
    const [busy, quiet] = [await follow('ann', '', live.url.replace('tickets', 'counters')), await follow('ann')];
    const numbers = Array.from({ length: 5_100 }, (_, index) => index + 100);
    await db.transaction(async (tx) => {
      const rows = tx.dialect === 'postgres' ? 'unnest($1::int[]) n' : 'json_each($1) n';
      const value = tx.dialect === 'postgres' ? 'n' : 'n.value';
      await tx.query(`insert into counters (number, room) select ${value}, 'many' from ${rows}`, [
        tx.dialect === 'postgres' ? numbers : JSON.stringify(numbers),
      ]);
    });
    const id = await insert(ids.ann, { name: 'after' });
    await vi.waitFor(() => expect(quiet.rows.has(id)).toBe(true), PATIENCE);
    expect(quiet.log.filter(({ event }) => event === 'reset')).toEqual([]);
    // More rows than a list can have.
    await vi.waitFor(() => expect(busy.ended).toMatchObject({ data: { code: 'live_too_many_rows' } }), PATIENCE);
    await db.query('delete from counters where number >= 100');
  });

  test('ten thousand rows are imported beside a list: it begins again, and is right', async () => {
    const off = [await insert(ids.ann, { state: 'off' })];
    const [follower, others] = [await follow('ann', '?state=off'), await follow('bob', '?state=off')];
    const id = `'00000000-0000-4000-8000-' ||`;
    await db.query(
      db.dialect === 'postgres'
        ? `insert into meters (id, owner_id, name) select (${id} lpad(n::text, 12, '0'))::uuid, $1, 'imported' from generate_series(1, 10000) n`
        : `with recursive s(n) as (select 1 union all select n + 1 from s where n < 10000)
           insert into meters (id, owner_id, name) select ${id} printf('%012d', n), $1, 'imported' from s`,
      [ids.ann],
    );
    off.push(await insert(ids.ann, { state: 'off' }));
    await vi.waitFor(() => expect([...follower.rows.keys()].toSorted()).toEqual(off.toSorted()), PATIENCE);
    await db.query('delete from meters');
    await vi.waitFor(() => expect(follower.rows.size).toBe(0), PATIENCE);
    expect([follower.ended, others.ended, others.rows.size]).toEqual([undefined, undefined, 0]);
  });

  describe('on PostgreSQL', () => {
    test('begins again when the table is emptied by truncate', async ({ skip }) => {
      if (db.dialect === 'sqlite') skip();
      const follower = await follow('ann');
      await insert(ids.ann);
      await vi.waitFor(() => expect(follower.rows.size).toBeGreaterThan(0), PATIENCE);
      await db.query('truncate meters');
      await vi.waitFor(() => expect(follower.rows.size).toBe(0), PATIENCE);
    });
  });
});
