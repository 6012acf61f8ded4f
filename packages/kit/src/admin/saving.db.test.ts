import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AdminApp, type Answer, type Browser } from '../../test/admin/admin-app.ts';
import type { Module } from '../app/index.ts';
import { webhooks } from '../contrib/webhooks/index.ts';
import { resource, visibleTo } from '../crud/index.ts';
import { createTable, insert, migration, model, softDelete, t, timestamps, versioned } from '../db/index.ts';
import { denyAll, isStaff } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { modelResource } from '../screens/screen.ts';

const shelfColumns = { id: t.uuidv7().pk(), name: t.text({ min: 1, max: 80 }), rows: t.int().dbDefault(1), ...timestamps() };
const shelves = model('shelves', shelfColumns);
const orderColumns = {
  id: t.uuidv7().pk(),
  reference: t.text({ min: 1, max: 40 }),
  quantity: t.int().dbDefault(1),
  margin: t.int().nullable(),
  status: t.enum(['open', 'paid']).dbDefault('open').readOnly(),
  phase: t.enum(['new', 'old']).dbDefault('new').readOnly(),
  ...versioned(),
  ...softDelete(),
  ...timestamps(),
};
const orders = model('orders', orderColumns);
const orderResource = resource(orders, {
  unscoped: true,
  version: 'version',
  fields: { margin: visibleTo(denyAll) },
  state: 'status',
  transitions: {
    pay: { from: ['open'], to: 'paid', permission: isStaff },
    reopen: { from: ['paid'], to: 'open' },
    review: { from: ['open'], to: 'open', permission: denyAll },
    check: { from: ['open'], to: 'open', guard: () => 'The stock is being counted.' },
  },
  admin: { rows: true },
});
const secretOrders = model('secret_orders', {
  id: t.uuidv7().pk(),
  name: t.text(20),
  status: t.enum(['open', 'paid']).dbDefault('open').readOnly(),
});
const secretResource = resource(secretOrders, {
  unscoped: true,
  fields: { status: visibleTo(denyAll) },
  state: 'status',
  transitions: { reopen: { from: ['paid'], to: 'open' } },
  admin: { rows: { name: 'x' } },
});

const shop: Module = {
  name: 'shop',
  models: [shelves, orders, secretOrders],
  resources: [orderResource, secretResource],
  migrations: [
    migration('0001_initial', [
      createTable('shelves', shelfColumns),
      createTable('orders', orderColumns),
      createTable('secret_orders', {
        id: t.uuidv7().pk(),
        name: t.text(20),
        status: t.enum(['open', 'paid']).dbDefault('open').readOnly(),
      }),
    ]),
  ],
  admin: {
    resources: [
      modelResource(shelves, { singular: 'Shelf' }),
      modelResource(orderResource, { singular: 'Order', title: 'reference' }),
      modelResource(secretResource, { singular: 'Secret order' }),
    ],
  },
};

interface Entry {
  readonly title: string;
  readonly actor?: string;
  readonly request_id?: string;
  readonly changes?: readonly { readonly name: string; readonly before?: unknown; readonly after?: unknown; readonly restore?: unknown }[];
}

describeDatabases('saving in the admin site', (database) => {
  let site: AdminApp;
  let staff: Browser;
  let reader: Browser;
  beforeAll(async () => {
    const roles = {
      of: ({ username }: { username: string }) => (username === 'reader' ? ('read_only' as const) : ('administrator' as const)),
    };
    site = await new AdminApp(database.db, [webhooks(), shop], {}, { roles }).ready();
    staff = await site.browser({ username: 'olivia', is_staff: true });
    reader = await site.browser({ username: 'reader', is_staff: true });
  });
  afterAll(() => site.close());

  const change = (
    method: 'POST' | 'PATCH' | 'DELETE',
    path: string,
    body: object | undefined,
    headers: Record<string, string>,
    by = staff,
  ) => site.call(method, `api/resources/${path}`, { cookie: by.cookie, 'x-csrf-token': by.csrf, ...headers }, body);
  const made = async (list: string, fields: object): Promise<string> => {
    const { status, body } = await change('POST', list, fields, {});
    expect([status, body.detail]).toEqual([201, undefined]);
    return body.id;
  };
  const read = async (list: string, id: string, by = staff) => (await site.get(by, `resources/${list}/${id}`)).body;
  const count = async (table: string, name: string): Promise<number> =>
    (await database.db.query(`select 1 as one from ${table} where name = $1`, [name])).length;
  const timeline = (record: { sections: { kind: string; title: string; entries: Entry[] }[] }): Entry[] =>
    record.sections.find(({ kind, title }) => kind === 'timeline' && title === 'History')?.entries ?? [];

  describe('with an idempotency key', () => {
    test('a record is created once, however often and at however many places the request is sent', async () => {
      const send = (key: string): Promise<Answer> => change('POST', 'shelves', { name: 'Once' }, { 'idempotency-key': key });
      const answers = await Promise.all(Array.from({ length: 5 }, () => send('one')));
      expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
      const others = answers.filter(({ status }) => status !== 201).map(({ body }) => body.code);
      for (const code of others) expect(code).toBeOneOf(['request_in_progress', 'response_not_kept']);
      expect((await send('one')).body.code).toBe('response_not_kept');
      expect(await count('shelves', 'Once')).toBe(1);
      expect((await send('two')).status).toBe(201);
      expect(await count('shelves', 'Once')).toBe(2);
    });

    test('a change, an action and a deletion are done once, through the pipeline of a resource as well', async () => {
      const id = await made('orders', { reference: 'A-1' });
      const patch = () => change('PATCH', `orders/${id}`, { quantity: 4 }, { 'idempotency-key': 'patch', 'if-match': '"1"' });
      expect((await patch()).status).toBe(200);
      expect((await patch()).body.code).toBe('response_not_kept');
      expect((await read('orders', id)).form.version).toBe(2);
      const pay = () => change('POST', 'orders/actions/pay', { ids: [id], fields: {} }, { 'idempotency-key': 'pay' });
      expect(await pay()).toMatchObject({ status: 200, body: { message: '1 order paid.' } });
      expect((await pay()).body.code).toBe('response_not_kept');
      const remove = () => change('DELETE', `orders/${id}`, undefined, { 'idempotency-key': 'remove' });
      expect((await remove()).status).toBe(200);
      expect((await remove()).body.code).toBe('response_not_kept');
    });

    test('what was refused changes nothing and leaves nothing behind', async () => {
      const send = (name: string) => change('POST', 'shelves', { name, rows: 'many' }, { 'idempotency-key': `bad-${name}` });
      expect((await send('Refused')).status).toBe(422);
      expect(await count('shelves', 'Refused')).toBe(0);
      const id = await made('orders', { reference: 'A-2' });
      const paid = () => change('POST', 'orders/actions/reopen', { ids: [id], fields: {} }, { 'idempotency-key': 'reopen' });
      expect((await paid()).body.failures).toHaveLength(1);
    });

    test('a secret that is shown once is not stored with the key', async () => {
      const fields = { owner: 'olivia', url: 'https://example.com/hooks', events: ['*'] };
      const created = await change('POST', 'endpoints', fields, { 'idempotency-key': 'secret' });
      expect([created.status, created.body.detail]).toEqual([201, undefined]);
      const secret: string = created.body.secret.value;
      const records = await database.db.query<{ body: Uint8Array | null }>('select body from kit_idempotency');
      expect(records.length).toBeGreaterThan(0);
      expect(records.every(({ body }) => body === null || !Buffer.from(body).toString().includes(secret))).toBe(true);
      const again = await change('POST', 'endpoints', fields, { 'idempotency-key': 'secret' });
      expect([again.body.code, again.text.includes(secret)]).toEqual(['response_not_kept', false]);
    });
  });

  describe('a record that somebody else changed', () => {
    test('is not overwritten, whether it has a version or not', async () => {
      const shelf = await made('shelves', { name: 'Left' });
      const { tag } = (await read('shelves', shelf)).form;
      expect((await change('PATCH', `shelves/${shelf}`, { rows: 2 }, { 'if-match': `"${tag}"` })).status).toBe(200);
      const late = await change('PATCH', `shelves/${shelf}`, { rows: 3 }, { 'if-match': `"${tag}"` });
      expect([late.status, late.body.code]).toEqual([412, 'precondition_failed']);
      const current = (await read('shelves', shelf)).form;
      expect(current.values.rows).toBe(2);
      expect((await change('PATCH', `shelves/${shelf}`, { rows: 3 }, { 'if-match': `"${current.tag}"` })).status).toBe(200);
      const order = await made('orders', { reference: 'B-1' });
      expect((await read('orders', order)).form).toMatchObject({ version: 1, tag: '1' });
      await change('PATCH', `orders/${order}`, { quantity: 2 }, {});
      expect((await change('PATCH', `orders/${order}`, { quantity: 3 }, { 'if-match': '"1"' })).status).toBe(412);
    });

    test('says who changed which field, and when', async () => {
      const id = await made('orders', { reference: 'C-1', quantity: 1 });
      const other = await site.browser({ username: `ada-${database.db.dialect}`, is_staff: true });
      await change('PATCH', `orders/${id}`, { quantity: 7 }, {}, other);
      const [newest] = timeline(await read('orders', id));
      expect(newest).toMatchObject({ title: 'Order updated', actor: `ada-${database.db.dialect}`, request_id: expect.any(String) });
      expect(newest?.changes?.find(({ name }) => name === 'quantity')).toEqual({
        name: 'quantity',
        label: 'Quantity',
        before: 1,
        after: 7,
        restore: 1,
      });
    });
  });

  describe('a timeline', () => {
    test('offers values to restore only for fields of the form, and to those who may write', async () => {
      const id = await made('orders', { reference: 'D-1', quantity: 1 });
      await change('PATCH', `orders/${id}`, { quantity: 5 }, {});
      await site.act(staff, 'orders', 'pay', [id]);
      const restorable = (entries: readonly Entry[]) =>
        entries.flatMap(({ changes = [] }) => changes.filter((each) => 'restore' in each).map(({ name }) => name));
      expect(restorable(timeline(await read('orders', id)))).toEqual(['quantity']);
      const seen = timeline(await read('orders', id, reader));
      expect(seen.length).toBeGreaterThan(2);
      expect(restorable(seen)).toEqual([]);
      await change('PATCH', `orders/${id}`, { quantity: 1 }, {});
      // Restoring what is there already does nothing.
      const again = timeline(await read('orders', id)).filter(({ changes = [] }) => changes.some(({ restore }) => restore === 1));
      expect(again).toEqual([]);
    });

    test('shows nothing that the rules hide: neither a hidden column nor an unseen record of the same request', async () => {
      const id = await made('orders', { reference: 'E-1' });
      await database.db.query('update orders set margin = 77 where id = $1', [id]);
      const [seen, unseen] = [
        await insert(database.db, secretOrders, { name: 'x' }),
        await insert(database.db, secretOrders, { name: 'y' }),
      ];
      const entry = { actor: null, request_id: 'shared-request', before: null, after: null };
      const { audit } = site.app.registry;
      const changed = { before: { margin: 77, quantity: 1 }, after: { margin: 78, quantity: 2 } };
      await audit?.record(database.db, [
        { ...entry, ...changed, action: 'order.updated', target_type: 'order', target_id: id },
        { ...entry, action: 'secret_order.moved', target_type: 'secret_order', target_id: seen.id },
        { ...entry, action: 'secret_order.moved', target_type: 'secret_order', target_id: unseen.id },
      ]);
      const record = await read('orders', id);
      const text = JSON.stringify(timeline(record));
      expect(text).not.toContain('margin');
      expect(text.match(/Secret order moved: \w/g)).toEqual(['Secret order moved: x']);
      expect(text).not.toContain(unseen.id);
      expect(timeline(record).find(({ changes }) => changes?.some(({ name }) => name === 'quantity') === true)).toMatchObject({
        request_id: 'shared-request',
      });
    });
  });

  describe('why not', () => {
    test('staff who only read see what they cannot do, and which role could', async () => {
      const id = await made('orders', { reference: 'F-1' });
      const record = await read('orders', id, reader);
      const role = 'This needs the role administrator; yours is read only. Whoever assigns the roles of this site can change that.';
      expect(record).toMatchObject({ removable: false, refused: { edit: role, remove: role } });
      expect(record.form).toBeUndefined();
      const { resources } = (await site.get(reader, 'session')).body.site;
      const shape = resources.find(({ name }: { name: string }) => name === 'orders');
      expect(shape.creation).toEqual({ refused: role, byRole: true });
    });

    test('a transition that is not possible now says which rule decides', async () => {
      const id = await made('orders', { reference: 'G-1' });
      const record = await read('orders', id);
      expect(record.actions).toContain('pay');
      expect(record.unavailable).toEqual({
        reopen: 'Possible from paid; the state is open.',
        review: expect.any(String),
        check: 'The stock is being counted.',
      });
      const hidden = await made('secret-orders', { name: 'x' });
      expect(JSON.stringify(await read('secret-orders', hidden))).not.toContain('state is');
    });

    test('a deleted record says that it has to be restored first', async () => {
      const id = await made('orders', { reference: 'H-1' });
      await change('DELETE', `orders/${id}`, undefined, {});
      expect(await read('orders', id)).toMatchObject({ refused: { edit: 'The record is deleted. Restore it first.' } });
    });
  });
});
