import { afterAll, beforeAll, expect, test } from 'vitest';
import { byName, type Person } from '../../test/crud/shop.ts';
import type { Module } from '../app/declare/module.ts';
import { count, createTable, type Db, find, insert, migration, model, t, update, versioned } from '../db/index.ts';
import { defineErrors } from '../errors/index.ts';
import { hasRule, isAuthenticated, isStaff } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { testApp, type TestApp } from '../testing/test-app.ts';
import { CrudController, resource, writableBy } from './index.ts';

// The recipes of docs/guide/crud.md.

const rooms = model('rooms', { id: t.uuidv7().pk(), name: t.text(40) });
const bookings = model('bookings', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  room_id: t.ref(() => rooms),
  starts_at: t.timestamp(),
  ends_at: t.timestamp(),
  ...versioned(),
});
const counters = model('counters', { name: t.text(40).pk(), value: t.int() });
const invoices = model('invoices', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  number: t.int().readOnly().unique(),
  title: t.text(40),
  note: t.text(40).nullable(),
  status: t.enum(['draft', 'sent']).dbDefault('draft'),
  ...versioned(),
});
const errors = defineErrors('bookings', {
  room_taken: { status: 409, detail: 'The room is taken at this time.', remedy: 'Choose another time.' },
});

interface Time {
  readonly id?: string;
  readonly room_id: string;
  readonly starts_at: Date;
  readonly ends_at: Date;
}

/** With the room locked, one booking of it is written at a time: no other can come between the question and the write. */
async function requireFree(tx: Db, { id, room_id, starts_at, ends_at }: Time): Promise<void> {
  await find(tx, rooms, room_id, { lock: true });
  const others = id === undefined ? {} : { id: { ne: id } };
  if ((await count(tx, bookings, { room_id, starts_at: { lt: ends_at }, ends_at: { gt: starts_at }, ...others })) > 0)
    throw errors.room_taken();
}

const roomResource = resource(rooms, { unscoped: true });
const bookingResource = resource(bookings, {
  owner: 'owner_id',
  version: 'version',
  hooks: {
    async create({ input, tx }, next) {
      await requireFree(tx, input);
      return next(input);
    },
    async update({ before, input, tx }, next) {
      const { id, room_id, starts_at, ends_at } = before;
      const { room_id: room = room_id, starts_at: from = starts_at, ends_at: to = ends_at } = input;
      await requireFree(tx, { id, room_id: room, starts_at: from, ends_at: to });
      return next(input);
    },
  },
});

const isDraft = hasRule((_context, row) => (row === undefined ? 'unknown' : (row as { status: string }).status === 'draft'));
let isRefused = (_title: string) => false;
const invoiceResource = resource(invoices, {
  owner: 'owner_id',
  version: 'version',
  fields: { title: writableBy(isDraft) },
  state: 'status',
  transitions: { send: { from: ['draft'], to: 'sent' } },
  admin: { rows: true },
  hooks: {
    // The row of the counter stays locked until the transaction ends: an invoice that is not made gives its number back.
    async create({ input, tx }, next) {
      const counter = await find(tx, counters, 'invoice', { lock: true });
      const number = (counter?.value ?? 0) + 1;
      await update(tx, counters, 'invoice', { value: number });
      const made = await next({ ...input, number });
      if (isRefused(input.title)) throw errors.room_taken();
      return made;
    },
  },
});
const many = { bulk: { create: true, update: true, mode: 'partial' }, import: { formats: ['jsonl'] } } as const;
class BookingController extends CrudController(bookingResource, { permission: isAuthenticated, ...many }) {}
class InvoiceController extends CrudController(invoiceResource, { permission: isAuthenticated, ...many }) {}
class BackOffice extends CrudController(invoiceResource, { permission: isStaff, audience: 'staff' }) {}

const module: Module = {
  name: 'office',
  models: [rooms, bookings, counters, invoices],
  resources: [roomResource],
  migrations: [
    migration('0001_initial', [
      createTable('rooms', rooms.columns),
      createTable('bookings', { ...bookings.columns, room_id: t.ref('rooms') }),
      createTable('counters', counters.columns),
      createTable('invoices', invoices.columns),
    ]),
  ],
};

describeDatabases('rules over several rows, and fields frozen by state', (database) => {
  let started: TestApp;

  async function call(who: Person, method: 'GET' | 'POST' | 'PATCH' | 'PUT', path: string, payload?: object | string) {
    const response = await started.inject({
      method,
      url: `/v1/${path}`,
      headers: { 'x-user': who, ...(typeof payload === 'string' ? { 'content-type': 'application/x-ndjson' } : {}) },
      ...(payload === undefined ? {} : { payload }),
    });
    return { status: response.statusCode, body: response.body === '' ? undefined : JSON.parse(response.body) };
  }

  beforeAll(async () => {
    started = await testApp({
      database: database.db,
      authenticators: [byName],
      mount: { '/v1': { '/bookings': BookingController, '/invoices': InvoiceController, '/back-office': BackOffice } },
      modules: [module],
    });
    await insert(started.app.db, counters, { name: 'invoice', value: 0 });
  });
  afterAll(() => started.close());

  const at = (hour: number) => new Date(Date.UTC(2030, 0, 1, hour)).toISOString();
  const newRoom = async () => (await insert(started.app.db, rooms, { name: 'blue' })).id;
  const booking = (room_id: string, from: number, to: number) => ({ room_id, starts_at: at(from), ends_at: at(to) });

  test('of ten bookings of one time at once one is made; other rooms and other times are free', async () => {
    const [room, other] = [await newRoom(), await newRoom()];
    const all = await Promise.all(
      Array.from({ length: 10 }, (_, index) => call(index % 2 === 0 ? 'ann' : 'bob', 'POST', 'bookings', booking(room, 9, 11))),
    );
    expect(all.map(({ status }) => status).sort((a, b) => a - b)).toEqual([201, ...Array.from({ length: 9 }, () => 409)]);
    expect(all.find(({ status }) => status === 409)?.body).toMatchObject({ code: 'room_taken' });
    expect((await call('ann', 'POST', 'bookings', booking(room, 11, 12))).status).toBe(201);
    expect((await call('ann', 'POST', 'bookings', booking(other, 9, 11))).status).toBe(201);
  });

  test('a booking cannot be moved into another one, in bulk and by import as little; itself does not count', async () => {
    const room = await newRoom();
    const first = (await call('ann', 'POST', 'bookings', booking(room, 9, 10))).body;
    expect((await call('bob', 'POST', 'bookings', booking(room, 12, 13))).status).toBe(201);
    expect((await call('ann', 'PATCH', `bookings/${first.id}`, { ends_at: at(11) })).status).toBe(200);
    expect((await call('ann', 'PATCH', `bookings/${first.id}`, { ends_at: at(13) })).status).toBe(409);
    const bulk = await call('ann', 'POST', 'bookings/bulk', {
      items: [booking(room, 13, 14), booking(room, 13, 15), booking(room, 15, 16)],
    });
    expect(bulk.body.results.map(({ status }: { status: number }) => status)).toEqual([201, 409, 201]);
    const file = [booking(room, 17, 18), booking(room, 17, 19)].map((row) => JSON.stringify(row)).join('\n');
    expect((await call('ann', 'POST', 'bookings/import', file)).status).toBe(409);
    expect((await call('ann', 'POST', 'bookings', booking(room, 17, 18))).status).toBe(201);
  });

  test('numbers have no gaps, also where invoices made at the same time are rolled back', async () => {
    isRefused = (title) => title.startsWith('refused');
    const titles = Array.from({ length: 24 }, (_, index) => (index % 3 === 0 ? `refused ${index}` : `made ${index}`));
    const all = await Promise.all(titles.map((title) => call('ann', 'POST', 'invoices', { title })));
    expect(all.filter(({ status }) => status === 201)).toHaveLength(16);
    const bulk = await call('ann', 'POST', 'invoices/bulk', { items: [{ title: 'made' }, { title: 'refused' }, { title: 'made' }] });
    expect(bulk.body.results.map(({ status }: { status: number }) => status)).toEqual([201, 409, 201]);
    const { items } = (await call('ann', 'GET', 'invoices?limit=100')).body;
    expect(items.map(({ number }: { number: number }) => number).sort((a: number, b: number) => a - b)).toEqual(
      Array.from({ length: 18 }, (_, index) => index + 1),
    );
  });

  test('a field that a state freezes is written before it, and on no path after it', async () => {
    const made = async (title: string) => (await call('bob', 'POST', 'invoices', { title })).body.id;
    const [open, sent] = [await made('open'), await made('sent')];
    expect((await call('bob', 'PATCH', `invoices/${open}`, { title: 'changed' })).status).toBe(200);
    expect((await call('bob', 'POST', `invoices/${sent}/send`)).status).toBe(200);
    const frozen = { status: 403, body: { code: 'permission_denied', fields: ['title'] } };
    expect(await call('bob', 'PATCH', `invoices/${sent}`, { title: 'changed' })).toMatchObject(frozen);
    expect(await call('bob', 'PUT', `invoices/${sent}`, { title: 'changed', note: 'x' })).toMatchObject(frozen);
    expect(await call('sue', 'PATCH', `back-office/${sent}`, { title: 'changed' })).toMatchObject(frozen);
    expect((await call('bob', 'PATCH', `invoices/${sent}`, { note: 'x' })).body).toMatchObject({ title: 'sent', note: 'x' });
    const items = [open, sent].map((id) => ({ id, title: 'bulk' }));
    const bulk = await call('bob', 'POST', 'invoices/bulk-update', { items });
    expect(bulk.body.results).toMatchObject([{ status: 200 }, { status: 403, code: 'permission_denied' }]);
    expect((await call('bob', 'GET', `invoices/${sent}`)).body).toMatchObject({ title: 'sent' });
  });

  test('a rule about the row sees the defaults of a new one', async () => {
    expect((await call('ann', 'POST', 'invoices', { title: 'new' })).status).toBe(201);
    const bulk = await call('ann', 'POST', 'invoices/bulk', { items: [{ title: 'bulk' }] });
    expect(bulk.body.results).toMatchObject([{ status: 201 }]);
    expect((await call('ann', 'POST', 'invoices/import', JSON.stringify({ title: 'imported' }))).status).toBe(201);
  });
});
