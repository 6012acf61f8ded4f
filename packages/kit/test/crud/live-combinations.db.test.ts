import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { createTable, migration, model, softDelete, t, versioned } from '../../src/db/index.ts';
import { CrudController, many, one, resource } from '../../src/crud/index.ts';
import { isAuthenticated } from '../../src/permissions/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';
import { Follower } from './live.ts';
import { byName, type Person } from './shop.ts';

const PATIENCE = { timeout: 20_000, interval: 20 };

const orders = model('orders', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), name: t.text(20), ...versioned(), ...softDelete() });
const lines = model('lines', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  order_id: t.ref(() => orders),
  sku: t.text(20),
  ...versioned(),
  ...softDelete(),
});
/** Its key has two columns: rows are told apart by another one. */
const ofSeats = { hall: t.text(20), number: t.int(), id: t.uuidv7().unique(), owner_id: t.uuid().readOnly(), guest: t.text(20) };
const seatKey = { primaryKey: ['hall', 'number'] } as const;
const seats = model('seats', ofSeats, seatKey);

const lineResource = resource(lines, {
  owner: 'owner_id',
  relations: { order: one(() => orders, 'order_id') },
  softDelete: true,
  version: 'version',
});
const orderResource = resource(orders, {
  owner: 'owner_id',
  version: 'version',
  relations: { lines: many(() => lines, 'order_id', { limit: 50 }) },
  softDelete: { cascade: ['lines'] },
  nested: { lines: { input: ['sku'], missing: 'delete', max: 20 } },
});
class OrderController extends CrudController(orderResource, { permission: isAuthenticated, live: true, restore: true }) {}
class LineController extends CrudController(lineResource, {
  permission: isAuthenticated,
  filters: { sku: ['eq'], order_id: ['eq'] },
  import: { formats: ['jsonl'] },
  live: true,
}) {}
class SeatController extends CrudController(resource(seats, { owner: 'owner_id' }), {
  permission: isAuthenticated,
  lookup: 'id',
  filters: { hall: ['eq'] },
  live: true,
}) {}

describeDatabases('live lists beside other features', (database) => {
  let kit: TestApp;
  let url: string;
  const open: Follower[] = [];
  beforeAll(async () => {
    const tables = [
      createTable('orders', orders.columns),
      createTable('lines', { ...lines.columns, order_id: t.ref('orders') }),
      createTable('seats', ofSeats, seatKey),
    ];
    kit = await testApp({
      database: database.db,
      authenticators: [byName],
      modules: [{ name: 'combined', models: [orders, lines, seats], migrations: [migration('0001_initial', tables)] }],
      mount: { '/v1': { '/orders': OrderController, '/lines': LineController, '/seats': SeatController } },
    });
    url = `${await kit.listen()}/v1`;
  });
  afterAll(() => kit?.close());
  afterEach(async () => {
    for (const each of open.splice(0)) await each.disconnect();
  });

  async function follow(person: Person, path: string, query = ''): Promise<Follower> {
    const follower = await new Follower(person, query).connect(`${url}${path}`);
    open.push(follower);
    await vi.waitFor(() => expect([follower.batches, follower.ended]).toEqual([1, undefined]), PATIENCE);
    return follower;
  }
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever the server sends
  async function send(person: Person, method: string, path: string, body?: unknown): Promise<any> {
    const type = typeof body === 'string' ? 'application/x-ndjson' : 'application/json';
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { 'x-user': person, ...(body === undefined ? {} : { 'content-type': type }) },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    expect(response.status).toBeLessThan(300);
    return response.status === 204 ? undefined : response.json();
  }
  const valuesOf = ({ rows }: Follower, name: string) => [...rows.values()].map((row) => String(row[name])).toSorted();
  const isListed = (follower: Follower, path: string) => follower.settled(`${url}${path}`);

  test('children that are written, left out, deleted and restored with their parent are in their own list in one batch each', async () => {
    const [own, of, other] = [await follow('ann', '/lines'), await follow('ann', '/lines', '?sku=a'), await follow('bob', '/lines')];
    const order = await send('ann', 'POST', '/orders', { name: 'one', lines: [{ sku: 'a' }, { sku: 'b' }] });
    await vi.waitFor(() => expect([valuesOf(own, 'sku'), valuesOf(of, 'sku')]).toEqual([['a', 'b'], ['a']]), PATIENCE);
    expect(own.batches).toBe(2);
    const kept = [...own.rows.values()].find(({ sku }) => sku === 'b');
    await send('ann', 'PATCH', `/orders/${order.id}`, { lines: [{ id: kept.id, sku: 'c' }, { sku: 'd' }] });
    await vi.waitFor(() => expect([valuesOf(own, 'sku'), valuesOf(of, 'sku')]).toEqual([['c', 'd'], []]), PATIENCE);
    expect(own.batches).toBe(3);
    await send('ann', 'DELETE', `/orders/${order.id}`);
    await vi.waitFor(() => expect(own.rows.size).toBe(0), PATIENCE);
    await send('ann', 'POST', `/orders/${order.id}/restore`);
    await vi.waitFor(() => expect(valuesOf(own, 'sku')).toEqual(['c', 'd']), PATIENCE);
    expect([own.batches, other.log.map(({ event }) => event)]).toEqual([5, ['ready']]);
    await isListed(own, '/lines');
  });

  test('an import is one batch, and one that fails at its last row is none', async () => {
    const order = await send('ann', 'POST', '/orders', { name: 'two' });
    const own = await follow('ann', '/lines', `?order_id=${order.id}`);
    const file = (skus: readonly unknown[]) => skus.map((sku) => JSON.stringify({ sku, order_id: order.id })).join('\n');
    await send('ann', 'POST', '/lines/import', file(['x', 'y', 'z']));
    await vi.waitFor(() => expect(valuesOf(own, 'sku')).toEqual(['x', 'y', 'z']), PATIENCE);
    const refused = await fetch(`${url}/lines/import`, {
      method: 'POST',
      headers: { 'x-user': 'ann', 'content-type': 'application/x-ndjson' },
      body: file(['v', 'w'.repeat(30)]),
    });
    expect(refused.status).toBe(422);
    await send('ann', 'POST', '/lines/import?dry_run=true', file(['u']));
    await send('ann', 'POST', '/lines', { sku: 'last', order_id: order.id });
    await vi.waitFor(() => expect(valuesOf(own, 'sku')).toEqual(['last', 'x', 'y', 'z']), PATIENCE);
    expect(own.batches).toBe(3);
  });

  test('rows whose key has several columns are followed by the column that tells them apart', async () => {
    const own = await follow('ann', '/seats', '?hall=red');
    const seat = await send('ann', 'POST', '/seats', { hall: 'red', number: 1, guest: 'ada' });
    await send('ann', 'POST', '/seats', { hall: 'blue', number: 1, guest: 'eve' });
    await vi.waitFor(() => expect(own.rows.get(seat.id)).toMatchObject({ hall: 'red', number: 1, guest: 'ada' }), PATIENCE);
    await send('ann', 'PATCH', `/seats/${seat.id}`, { guest: 'bea' });
    await vi.waitFor(() => expect(own.rows.get(seat.id)).toMatchObject({ guest: 'bea' }), PATIENCE);
    await send('ann', 'DELETE', `/seats/${seat.id}`);
    await vi.waitFor(() => expect(own.rows.size).toBe(0), PATIENCE);
    expect(own.log.map(({ event }) => event).filter((event) => event !== 'ready')).toEqual(['upsert', 'upsert', 'remove']);
  });
});
