import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { Follower, type LiveApp, send, startLive } from '../../../test/crud/live.ts';
import { people } from '../../../test/crud/shop.ts';
import { coreTables } from '../../app/data/migration-modules.ts';
import { createTable, type Database, migration, model, t } from '../../db/index.ts';
import { migrate } from '../../db/migrations/migrate.ts';
import { requestErasure } from '../../db/subjects/erasure-state.ts';
import type { Subject } from '../../db/subjects/subject.ts';
import { isAuthenticated, isStaff } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { CrudController, resource } from '../index.ts';
import { eraseSubject } from './erase-subject.ts';
import { retainedTables, retainRows } from './retained-tables.ts';

const PATIENCE = { timeout: 30_000, interval: 20 };
const MARKER = 'marker of bob';

const dated = { at: t.timestamp().readOnly().nullable() };
const letters = model(
  'letters',
  {
    id: t.uuidv7().pk(),
    org: t.text(20).readOnly(),
    owner_id: t.text(64).readOnly().person(),
    note: t.text(80).nullable().personal(),
    ...dated,
  },
  { retention: { after: '30 days', by: 'at', then: 'delete' } },
);
const bills = model(
  'bills',
  {
    id: t.uuidv7().pk(),
    owner_id: t.text(64).readOnly().person({ erase: 'anonymise', erased: 'erased' }),
    note: t.text(80).nullable().personal(),
    ...dated,
  },
  { retention: { after: '30 days', by: 'at', then: 'anonymise' } },
);
const ofSeats = {
  owner_id: t.text(64).readOnly().person(),
  place: t.text(80).personal(),
  note: t.text(80).nullable().personal(),
  id: t.uuidv7().unique(),
};
/** A key of two columns; the change log has the unique one. */
const seats = model('seats', ofSeats, { primaryKey: ['owner_id', 'place'] });
const ofCards = {
  shop: t.text(20),
  number: t.int(),
  owner_id: t.text(64).readOnly().person({ erase: 'anonymise', erased: 'erased' }),
  note: t.text(80).nullable().personal(),
  id: t
    .text(80)
    .personal({ erased: (key: string) => `erased ${key}` })
    .unique(),
};
/** An erasure replaces the column that the change log has. */
const cards = model('cards', ofCards, { primaryKey: ['shop', 'number'] });
const tables = migration('0001_initial', [
  createTable('letters', letters.columns),
  createTable('bills', bills.columns),
  createTable('seats', ofSeats, { primaryKey: ['owner_id', 'place'] }),
  createTable('cards', ofCards, { primaryKey: ['shop', 'number'] }),
]);

const owner = { column: 'owner_id', unless: isStaff } as const;
const live = { permission: isAuthenticated, live: true } as const;
const letterResource = resource(letters, { owner, tenant: 'org' });
class Letters extends CrudController(letterResource, live) {}
class Bills extends CrudController(resource(bills, { owner }), live) {}
class Seats extends CrudController(resource(seats, { owner }), { ...live, lookup: 'id' }) {}
class Cards extends CrudController(resource(cards, { owner }), { ...live, lookup: 'id' }) {}

describeDatabases('rows that are erased while lists are open', (database) => {
  let db: Database;
  let first: LiveApp;
  let second: LiveApp;
  let root: string;
  const open: Follower[] = [];

  beforeAll(async () => {
    db = database.db;
    const module = { name: 'post', models: [letters, bills, seats, cards], migrations: [tables] };
    await migrate(db, [coreTables, module]);
    const mount = { '/letters': Letters, '/bills': Bills, '/seats': Seats, '/cards': Cards };
    const parts = { mount: { '/v1': mount }, modules: [module] };
    first = await startLive(db, parts);
    second = await startLive(await database.open(), parts);
    root = first.url.slice(0, first.url.lastIndexOf('/'));
  });
  afterAll(async () => {
    await first?.app.close();
    await second?.app.close();
  });
  afterEach(async () => {
    for (const each of open.splice(0)) await each.disconnect();
  });

  async function follow(list: string): Promise<Follower[]> {
    const followers = [first, second].map(({ url }) => ({
      url: `${url.slice(0, url.lastIndexOf('/'))}/${list}`,
      follower: new Follower('sue'),
    }));
    for (const { url, follower } of followers) {
      open.push(await follower.connect(url));
      await vi.waitFor(() => expect(follower.batches).toBe(1), PATIENCE);
    }
    return followers.map(({ follower }) => follower);
  }
  /** A row with a prior value in the change log. */
  async function written(list: string, person: 'ann' | 'bob', values: object = {}): Promise<string> {
    const note = person === 'bob' ? MARKER : 'of ann';
    const { status, body } = await send(`${root}/${list}`, person, 'POST', { note, ...values });
    expect([status, body]).toMatchObject([201, {}]);
    const changed = await send(`${root}/${list}/${encodeURIComponent(body.id)}`, person, 'PATCH', { note: `${note}, changed` });
    expect([changed.status, changed.body]).toMatchObject([200, {}]);
    return body.id as string;
  }
  const log = async () =>
    JSON.stringify(await db.query('select resource, key, kind, prior from kit_changes'), (_key, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value,
    );
  async function erase(subject: Subject): Promise<void> {
    const { id } = await db.transaction((tx) => requestErasure(tx, subject, { dueAt: db.clock.now(), by: 'test' }));
    expect(await eraseSubject(first.app, id)).toBe('finished');
  }
  const hasNot = (followers: readonly Follower[], id: string) =>
    Promise.all(followers.map((each) => vi.waitFor(() => expect([...each.rows.keys()]).not.toContain(id), PATIENCE)));

  test('an erased person leaves every open list at once, and no prior value is left in the change log', async () => {
    const letter = await written('letters', 'bob');
    const kept = await written('letters', 'ann');
    const bill = await written('bills', 'bob');
    const seat = await written('seats', 'bob', { place: `${MARKER} here` });
    const card = await written('cards', 'bob', { shop: 'north', number: 1, id: `${MARKER} 1` });
    const lists = {
      letters: await follow('letters'),
      bills: await follow('bills'),
      seats: await follow('seats'),
      cards: await follow('cards'),
    };
    expect(lists.seats.map(({ rows }) => rows.has(seat))).toEqual([true, true]);
    const before = await log();
    for (const table of Object.keys(lists)) expect(before).toMatch(new RegExp(`${table}[^}]*${MARKER}`));

    await erase({ kind: 'person', id: people.bob.id });

    await hasNot(lists.letters, letter);
    await hasNot(lists.seats, seat);
    await hasNot(lists.cards, card);
    for (const { rows } of lists.letters) await vi.waitFor(() => expect(rows.has(kept)).toBe(true), PATIENCE);
    for (const each of lists.bills)
      await vi.waitFor(() => expect(each.rows.get(bill)).toMatchObject({ note: null, owner_id: 'erased' }), PATIENCE);
    for (const each of lists.cards) await vi.waitFor(() => expect(JSON.stringify([...each.rows])).toContain('erased north,1'), PATIENCE);
    const after = await log();
    expect(after).not.toContain(MARKER);
    expect(after).not.toContain(people.bob.id);
    expect(after).toContain('of ann');
  });

  test('rows whose retention is over leave open lists, and so do those of a tenant', async () => {
    const [letter, kept] = [await written('letters', 'bob'), await written('letters', 'ann')];
    const bill = await written('bills', 'bob');
    const [ofLetters, ofBills] = [await follow('letters'), await follow('bills')];
    const old = new Date(db.clock.now().getTime() - 40 * 86_400_000);
    for (const [table, id] of [
      ['letters', letter],
      ['bills', bill],
    ] as const)
      await db.query(`update ${table} set at = $1 where id = $2`, [old, id]);
    for (const table of retainedTables(first.app)) expect(await retainRows(first.app, table, { now: true })).toBe(1);
    await hasNot(ofLetters, letter);
    for (const each of ofBills) await vi.waitFor(() => expect(each.rows.get(bill)).toMatchObject({ note: null }), PATIENCE);
    expect(await log()).not.toContain(MARKER);

    for (const each of ofLetters) await vi.waitFor(() => expect(each.rows.has(kept)).toBe(true), PATIENCE);
    await erase({ kind: 'tenant', id: people.ann.tenant });
    await hasNot(ofLetters, kept);
  });
});
