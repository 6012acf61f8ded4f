import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { byName, people, type Person } from '../../test/crud/shop.ts';
import type { Module } from '../app/declare/module.ts';
import { audit } from '../contrib/audit/index.ts';
import { createTable, insert, migration, model, t, versioned } from '../db/index.ts';
import { defineErrors } from '../errors/index.ts';
import { isAuthenticated, isStaff } from '../permissions/index.ts';
import { responseVersions } from '../middleware/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { testApp, type TestApp } from '../testing/test-app.ts';
import { type Change, CrudController, crudOf, resource, visibleTo } from './index.ts';

const orders = model('orders', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  title: t.text(100),
  margin: t.int().dbDefault(7),
  reminders: t.int().dbDefault(0).readOnly(),
  is_locked: t.bool().dbDefault(false),
  status: t.enum(['open', 'paid']).dbDefault('open'),
  ...versioned(),
});
const notices = model('notices', { id: t.uuidv7().pk(), order_id: t.uuid(), text: t.text(100) });
const errors = defineErrors('orders', { order_locked: { status: 409, detail: 'The order is locked.', remedy: 'Unlock it.' } });

const changes: Change[] = [];
const after: string[] = [];
const sent: string[] = [];

const orderResource = resource(orders, {
  owner: 'owner_id',
  version: 'version',
  fields: { margin: visibleTo(isStaff) },
  audiences: { staff: { rows: true } },
  state: 'status',
  transitions: { pay: { from: ['open'], to: 'paid', on: 'selection' } },
  actions: {
    remind: {
      on: 'selection',
      input: z.object({ text: z.string().min(2) }),
      raises: [errors.order_locked],
      summary: 'Remind the customer',
      run: async ({ row, input, tx }, next) => {
        if (row.is_locked) throw errors.order_locked();
        await insert(tx, notices, { order_id: row.id, text: input.text });
        tx.afterCommit(() => void after.push(row.title));
        await next({ reminders: row.reminders + 1 });
      },
    },
    quote: { response: z.object({ price: z.number() }), status: 202, run: ({ row }) => ({ price: row.title.length }) },
    fax: { on: 'selection', effects: 'outside', run: ({ row }) => void sent.push(row.title) },
    unlock: { on: 'selection', audience: 'staff', permission: isStaff, run: (_context, next) => next({ is_locked: false }) },
  },
  onChange: (change) => void changes.push(change as unknown as Change),
});
const shared = { bulk: { max: 5 }, meta: true, expand: [] } as const;
class OrderController extends CrudController(orderResource, { permission: isAuthenticated, ...shared }) {}
class BackOffice extends CrudController(orderResource, { permission: isStaff, audience: 'staff', ...shared }) {}
class CarefulController extends CrudController(orderResource, {
  permission: isAuthenticated,
  etag: 'required',
  operations: { remind: { permission: isStaff } },
}) {}

const module: Module = {
  name: 'orders',
  models: [orders, notices],
  migrations: [migration('0001_initial', [createTable('orders', orders.columns), createTable('notices', notices.columns)])],
};

describeDatabases('actions', (database) => {
  let started: TestApp;
  let [first, second, locked, foreign] = ['', '', '', ''];

  async function call(who: Person | null, method: 'GET' | 'POST' | 'PATCH', path: string, payload?: object, headers: object = {}) {
    const response = await started.inject({
      method,
      url: `/v1/${path}`,
      headers: { ...(who === null ? {} : { 'x-user': who }), ...headers },
      ...(payload === undefined ? {} : { payload }),
    });
    return {
      status: response.statusCode,
      headers: response.headers,
      body: response.body === '' ? undefined : JSON.parse(response.body),
    };
  }
  const made = async (who: Person, title: string, more: object = {}): Promise<string> =>
    (await call(who, 'POST', 'orders', { title, ...more })).body.id;
  const order = async (id: string) => (await call('sue', 'GET', `back-office/${id}`)).body;
  /** Sealed entries, and those that wait for it. */
  const entries = async (id: string) => {
    const text =
      'select id, action from audit_entries where target_id = $1 union select id, action from audit_inbox where target_id = $1 order by id';
    return (await started.app.db.query<{ action: string }>(text, [id])).map(({ action }) => action);
  };

  beforeAll(async () => {
    started = await testApp({
      database: database.db,
      authenticators: [byName],
      mount: { '/v1': { '/orders': OrderController, '/back-office': BackOffice, '/careful': CarefulController } },
      modules: [module, audit()],
      middleware: [
        responseVersions({
          versions: [
            { version: '2' },
            { version: '1', changes: [{ transform: ({ title, ...rest }: { title?: string }) => ({ ...rest, name: title }) }] },
          ],
        }),
      ],
    });
  });
  beforeEach(async () => {
    first = await made('ann', 'first');
    second = await made('ann', 'second');
    locked = await made('ann', 'locked', { is_locked: true });
    foreign = await made('bob', 'foreign');
    for (const list of [changes, after, sent]) list.length = 0;
  });
  afterAll(() => started.close());

  test('an action runs on a visible row, in one transaction with its audit entry, and answers with the row and its version', async () => {
    const done = await call('ann', 'POST', `orders/${first}/remind`, { text: 'hello' });
    expect(done).toMatchObject({
      status: 200,
      body: { id: first, reminders: 1, version: 2 },
      headers: { etag: expect.stringMatching(/^"2/) },
    });
    expect(done.body).not.toHaveProperty('margin');
    expect(after).toEqual(['first']);
    expect(await entries(first)).toEqual(['order.created', 'order.remind']);
    expect(changes.map(({ operation, changed, via }) => [operation, changed, via])).toEqual([['action:remind', ['reminders'], 'single']]);
  });

  test('rows out of reach are missing, input is checked, and an old version is refused', async () => {
    const notReached = await call('ann', 'POST', `orders/${foreign}/remind`, { text: 'hello' });
    expect(notReached).toMatchObject({ status: 404, body: { code: 'not_found' } });
    const wrong = await call('ann', 'POST', `orders/${first}/remind`, { text: 'x', textt: 1 });
    expect(wrong).toMatchObject({
      status: 422,
      body: { errors: expect.arrayContaining([expect.objectContaining({ location: ['body', 'text'] })]) },
    });
    expect((await call('ann', 'POST', `orders/${first}/remind`, { text: 'hello' }, { 'if-match': '"7"' })).status).toBe(412);
    expect((await call('sue', 'POST', `careful/${first}/remind`, { text: 'hello' }, { 'if-match': '*' })).status).toBe(404);
    expect((await call('ann', 'POST', `careful/${first}/remind`, { text: 'hello' })).status).toBe(403);
    expect((await call('ann', 'POST', `careful/${first}/quote`)).status).toBe(428);
    expect((await call(null, 'POST', `orders/${first}/remind`, { text: 'hello' })).status).toBe(401);
    const refused = await call('ann', 'POST', `orders/${locked}/remind`, { text: 'hello' });
    expect(refused).toMatchObject({ status: 409, body: { code: 'order_locked' } });
    expect(await order(first)).toMatchObject({ reminders: 0, version: 1 });
    expect(changes).toEqual([]);
  });

  test('an action with a response of its own answers with it; one that changes no column is recorded', async () => {
    expect(await call('ann', 'POST', `orders/${first}/quote`)).toMatchObject({ status: 202, body: { price: 5 } });
    expect(await entries(first)).toEqual(['order.created', 'order.quote']);
    expect(changes.map(({ operation, changed }) => [operation, changed])).toEqual([['action:quote', []]]);
  });

  test('a repeated request with one idempotency key runs once', async () => {
    const send = () => call('ann', 'POST', `orders/${first}/remind`, { text: 'hello' }, { 'idempotency-key': 'k-remind' });
    expect((await send()).body).toEqual((await send()).body);
    expect(await order(first)).toMatchObject({ reminders: 1 });
  });

  test('of ten at the same time each runs on the row that the one before left', async () => {
    const all = await Promise.all(Array.from({ length: 10 }, () => call('ann', 'POST', `orders/${first}/remind`, { text: 'hello' })));
    expect(all.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200));
    expect(await order(first)).toMatchObject({ reminders: 10, version: 11 });
  });

  test('on a selection each record has its result, and what fails for one does not undo the others', async () => {
    const ids = [first, locked, foreign, second];
    const done = await call('ann', 'POST', 'orders/actions/remind', { ids, input: { text: 'hello' } });
    expect(done).toMatchObject({
      status: 207,
      headers: { 'x-bulk-failed': '2' },
      body: {
        dry_run: false,
        results: [
          { index: 0, status: 200, data: { id: first, reminders: 1 } },
          { index: 1, status: 409, code: 'order_locked', errors: [{ location: ['body', 'ids', 1] }] },
          { index: 2, status: 404, code: 'not_found' },
          { index: 3, status: 200, data: { id: second, reminders: 1 } },
        ],
      },
    });
    expect(done.body.results[0].data).not.toHaveProperty('margin');
    expect(after).toEqual(['first', 'second']);
    expect(await entries(locked)).toEqual(['order.created']);
    expect(await entries(second)).toEqual(['order.created', 'order.remind']);
    for (const wrong of [
      {},
      { ids: [] },
      { ids: [first, first] },
      { ids: Array(6).fill(first) },
      { ids, input: { text: 'x' } },
      { ids, dryRun: true },
    ])
      expect((await call('ann', 'POST', 'orders/actions/remind', { input: { text: 'hello' }, ...wrong })).status).toBe(422);
    const versions = {
      items: [
        { id: first, version: 2 },
        { id: second, version: 9 },
      ],
      input: { text: 'again' },
    };
    expect(
      (await call('ann', 'POST', 'orders/actions/remind', versions)).body.results.map(({ status }: { status: number }) => status),
    ).toEqual([200, 412]);
  });

  test('a dry run says what would happen and leaves nothing behind', async () => {
    const body = { ids: [first, locked], input: { text: 'hello' }, dry_run: true };
    const tried = await call('ann', 'POST', 'orders/actions/remind', body);
    expect(tried).toMatchObject({
      status: 207,
      body: { dry_run: true, results: [{ status: 200, data: { reminders: 1, version: 2 } }, { status: 409 }] },
    });
    expect(await order(first)).toMatchObject({ reminders: 0, version: 1 });
    expect(await started.app.db.query('select * from notices where order_id = $1', [first])).toEqual([]);
    expect(await entries(first)).toEqual(['order.created']);
    expect(after).toEqual([]);
    // Of a request with a key, too, whose transaction also keeps the response.
    await call('ann', 'POST', 'orders/actions/remind', body, { 'idempotency-key': 'k-dry' });
    expect(await order(first)).toMatchObject({ reminders: 0 });
  });

  test('an action with effects outside the database refuses a dry run, and runs without one', async () => {
    expect(await call('ann', 'POST', 'orders/actions/fax', { ids: [first], dry_run: true })).toMatchObject({
      status: 422,
      body: { code: 'dry_run_not_possible' },
    });
    expect(sent).toEqual([]);
    expect((await call('ann', 'POST', 'orders/actions/fax', { ids: [first] })).body.results).toMatchObject([{ status: 200 }]);
    expect(sent).toEqual(['first']);
  });

  test('transitions are actions: on a selection, with a dry run, and their routes stay', async () => {
    const tried = await call('ann', 'POST', 'orders/actions/pay', { ids: [first], dry_run: true });
    expect(tried.body.results).toMatchObject([{ status: 200, data: { status: 'paid' } }]);
    expect((await call('ann', 'POST', `orders/${first}/pay`)).body).toMatchObject({ status: 'paid' });
    const again = await call('ann', 'POST', 'orders/actions/pay', { ids: [first, second] });
    expect(again.body.results).toMatchObject([
      { status: 409, code: 'invalid_transition' },
      { status: 200, data: { status: 'paid' } },
    ]);
  });

  test('an action of an audience is offered to it alone', async () => {
    expect((await call('ann', 'POST', `orders/${locked}/unlock`)).status).toBe(404);
    expect((await call('sue', 'POST', `back-office/${locked}/unlock`)).body).toMatchObject({ is_locked: false });
    const offered = async (who: Person, path: string) =>
      (await call(who, 'GET', `${path}/meta`)).body.actions.map(({ name }: { name: string }) => name);
    expect(await offered('ann', 'orders')).toEqual(['remind', 'quote', 'fax']);
    expect(await offered('sue', 'back-office')).toEqual(['remind', 'quote', 'fax', 'unlock']);
  });

  test('an older version of the API gets its rows from a selection, and the own response of an action as it is', async () => {
    const old = { 'accept-version': '1' };
    const done = await call('ann', 'POST', 'orders/actions/remind', { ids: [first], input: { text: 'hello' } }, old);
    expect(done.body).toMatchObject({ dry_run: false, results: [{ status: 200, data: { name: 'first', reminders: 1 } }] });
    expect((await call('ann', 'POST', `orders/${first}/remind`, { text: 'hello' }, old)).body).toMatchObject({ name: 'first' });
    expect((await call('ann', 'POST', `orders/${first}/quote`, undefined, old)).body).toEqual({ price: 5 });
  });

  test('programs run actions by the same rules', async () => {
    const user = { id: people.ann.id, username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false };
    const own = crudOf(started.app, orderResource).as({ user });
    expect(await own.write().action(first, 'remind', { text: 'hello' })).toMatchObject({ reminders: 1 });
    await expect(own.write().action(foreign, 'remind', { text: 'hello' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(own.write().action(first, 'pay')).rejects.toThrow(/has no action "pay"/);
  });

  test('the document describes both routes', async () => {
    const { paths } = (await started.inject({ method: 'GET', url: '/openapi.json' })).json();
    const one = paths['/v1/orders/{id}/remind'].post;
    const many = paths['/v1/orders/actions/remind'].post;
    expect(one).toMatchObject({ summary: 'Remind the customer', responses: { 200: {}, 409: {}, 412: {} } });
    expect(many).toMatchObject({ summary: 'Remind the customer: many records', responses: { 207: {} } });
    expect(Object.keys(paths)).not.toContain('/v1/orders/{id}/unlock');
    expect(paths['/v1/orders/{id}/quote'].post.responses).toHaveProperty('202');
  });
});

test('startup reports names that are taken, audiences that do not exist, and misspelt options', async () => {
  const plain = model('plain', { id: t.uuidv7().pk(), status: t.enum(['open', 'paid']) });
  const run = () => undefined;
  const faults = (options: object) =>
    testApp({
      docs: false,
      database: 'sqlite',
      mount: {
        '/v1': {
          '/plain': class Plain extends CrudController(resource(plain, { unscoped: true, ...options } as never) as never, {
            permission: isAuthenticated,
          }) {},
        },
      },
    }).then(
      () => [],
      (error: { faults?: { id: string; message: string }[] }) => (error.faults ?? []).map(({ id, message }) => `${id} ${message}`),
    );
  const state = { state: 'status', transitions: { pay: { from: ['open'], to: 'paid' } } };
  expect(await faults({ actions: { list: { run } } })).toEqual([
    expect.stringMatching(/^E018 Plain: the action "list" takes the name of an op/),
  ]);
  expect(await faults({ actions: { 'a/b': { run } } })).toEqual([
    expect.stringMatching(/^E018 .*"a\/b" has a name that cannot be part of a URL/),
  ]);
  expect(await faults({ ...state, actions: { pay: { run } } })).toEqual([
    expect.stringMatching(/^E018 .*"pay" has the name of a transition/),
  ]);
  expect(await faults({ actions: { send: { run, on: 'selection' }, sendMany: { run } } })).toEqual([
    expect.stringMatching(/^E018 .*"sendMany" takes/),
  ]);
  expect(await faults({ actions: { send: { run, audience: 'staf' } }, audiences: { staff: { rows: true } } })).toEqual([
    expect.stringMatching(/^E013 .*"send" is for the audience "staf"/),
  ]);
  expect(() => resource(plain, { unscoped: true, actions: { send: { runn: run } } } as never)).toThrow(
    /"actions.send.runn".*did you mean "run"/is,
  );
  expect(() => resource(plain, { unscoped: true, actions: { send: {} } } as never)).toThrow(/actions.send.run is missing/);
});
