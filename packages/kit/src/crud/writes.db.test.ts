import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { customers, orders, people, shop as shopModule, startShop, type Person, type ShopApp } from '../../test/crud/shop.ts';
import type { AuditEntry } from '../auth/request/audit-sink.ts';
import type { EventEntry } from '../app/declare/registry.ts';
import type { Module } from '../app/declare/module.ts';
import { countQueries } from '../db/engine/query-observer.ts';
import { route } from '../http/declare/route.ts';
import { allowAny, isAuthenticated, isOwner, isStaff } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController, resource, type Change, visibleTo, writableBy } from './index.ts';

const anonymous = null;
const byNumber = (a: number, b: number) => a - b;

describeDatabases('writing', (database) => {
  let shop: ShopApp;
  beforeAll(async () => {
    shop = await startShop({ database: database.db });
  });
  afterAll(() => shop.close());
  const place = async (person: Person = 'ann', more: object = {}) => {
    const made = await shop.call(person, 'POST', 'orders', { item: 'lamp', quantity: 2, total: '20.00', ...more });
    expect(made.status).toBe(201);
    return made;
  };

  test('PUT replaces every input column the caller may write and leaves the others as they are', async () => {
    const { body } = await place('ann', { note: 'n', due_at: '2026-05-05T00:00:00Z', labels: ['x'] });
    await database.db.query(`update orders set margin = '3.00', discount = 7 where id = $1`, [body.id]);
    const put = await shop.call('ann', 'PUT', `orders/${body.id}`, { item: 'desk', quantity: 1, total: '5.00' });
    expect(put.status).toBe(200);
    expect(put.body).toMatchObject({ item: 'desk', due_at: null, labels: null, discount: 7 });
    const [row] = await database.db.query<{ margin: string; discount: number; secret: null }>(
      'select margin, discount from orders where id = $1',
      [body.id],
    );
    expect([row?.margin, row?.discount]).toEqual(['3.00', 7]);
    const missing = await shop.call('ann', 'PUT', `orders/${body.id}`, { item: 'desk' });
    expect([
      missing.status,
      missing.body.errors.map(({ location, code }: { location: string[]; code: string }) => [location[1], code]).sort(),
    ]).toEqual([
      422,
      [
        ['quantity', 'required'],
        ['total', 'required'],
      ],
    ]);
  });

  test('PUT resets a column under a rule about the row where the caller may write it, and leaves it where not', async () => {
    const note = async (id: string) =>
      (await database.db.query<{ note: string | null }>('select note from orders where id = $1', [id]))[0]?.note;
    const { body } = await place('ann', { note: 'mine' });
    const whole = { item: 'desk', quantity: 1, total: '5.00' };
    expect((await shop.call('sue', 'PUT', `orders/${body.id}`, whole)).status).toBe(200);
    expect(await note(body.id)).toBe('mine');
    expect((await shop.call('ann', 'PUT', `orders/${body.id}`, { ...whole, note: 'new' })).body.note).toBe('new');
    const put = await shop.call('ann', 'PUT', `orders/${body.id}`, whole);
    expect([put.status, put.body.note, await note(body.id)]).toEqual([200, null, null]);
  });

  test('PUT requires a column without a default of those who may write it, and of nobody else', async () => {
    const start = (fields: object) => {
      class Ruled extends CrudController(resource(customers, { tenant: 'org', ...fields }), { permission: isAuthenticated }) {}
      return startShop({ database: database.db, mount: { '/v1': { '/customers': Ruled } }, modules: [{ ...shopModule, resources: [] }] });
    };
    const { id } = (await shop.call('sue', 'POST', 'customers', { name: 'kept' })).body;
    for (const fields of [
      { fields: { name: writableBy(isStaff) } },
      { fields: { name: visibleTo(isStaff) } },
      // A rule about the row: a customer has no owner, so that nobody but staff may.
      { fields: { name: writableBy(isStaff.or(isOwner('org'))) } },
    ]) {
      const ruled = await start(fields);
      try {
        expect((await ruled.call('ann', 'PUT', `customers/${id}`, { terms: 5 })).status).toBe(200);
        expect((await ruled.call('ann', 'PUT', `customers/${id}`, { terms: 5, name: 'taken' })).status).toBe(403);
        expect((await ruled.call('sue', 'PUT', `customers/${id}`, { terms: 5 })).body.errors).toEqual([
          { location: ['body', 'name'], code: 'required', message: 'Required.' },
        ]);
        expect((await shop.call('ann', 'GET', `customers/${id}`)).body).toMatchObject({ name: 'kept', terms: 5 });
      } finally {
        await ruled.close();
      }
    }
    const hidden = await start({ hidden: ['name'], input: ['name', 'terms', 'credit'] });
    try {
      expect((await hidden.call('ann', 'PUT', `customers/${id}`, { terms: 6 })).status).toBe(200);
      expect((await shop.call('ann', 'GET', `customers/${id}`)).body).toMatchObject({ name: 'kept', terms: 6 });
    } finally {
      await hidden.close();
    }
  });

  test('an empty PATCH is 200 and changes nothing; equal values move version and timestamps', async () => {
    const { body } = await place();
    const empty = await shop.call('ann', 'PATCH', `orders/${body.id}`, {});
    expect([empty.status, empty.body]).toEqual([200, body]);
    const equal = await shop.call('ann', 'PATCH', `orders/${body.id}`, { quantity: 2 });
    expect([equal.status, equal.body.version]).toEqual([200, 2]);
  });

  test('43: a unique violation is 409 at the column, without a word of the database; of two at once one is made', async () => {
    const code = `c${Math.random()}`;
    const both = await Promise.all([1, 2].map(() => shop.call('ann', 'POST', 'orders', { item: 'x', quantity: 1, total: '1.00', code })));
    expect(both.map(({ status }) => status).toSorted(byNumber)).toEqual([201, 409]);
    const conflict = both.find(({ status }) => status === 409)!;
    expect(conflict.body).toMatchObject({ code: 'conflict', errors: [{ location: ['body', 'code'], code: 'not_unique' }] });
    expect(conflict.text).not.toMatch(/constraint|unique_violation|duplicate key|sqlite|index/i);
  });

  test('44: deleting what others refer to is 409 still_referenced', async () => {
    const customer = (await shop.call('ann', 'POST', 'customers', { name: 'kept' })).body.id;
    await place('ann', { customer_id: customer });
    const { status, body } = await shop.call('ann', 'DELETE', `customers/${customer}`);
    expect([status, body.code]).toEqual([409, 'still_referenced']);
    expect((await shop.call('ann', 'GET', `customers/${customer}`)).status).toBe(200);
  });

  test('49, 50: null clears a nullable column, is refused elsewhere, and lets the database fill a default', async () => {
    const { body } = await place('ann', { note: 'x', big: null });
    expect(body.big).toBe('9007199254740993');
    expect((await shop.call('ann', 'PATCH', `orders/${body.id}`, { note: null })).body.note).toBeNull();
    const refused = await shop.call('ann', 'PATCH', `orders/${body.id}`, { item: null });
    expect([refused.status, refused.body.errors[0].location]).toEqual([422, ['body', 'item']]);
  });

  test('35: a field the caller may not write is 403 with its name on create, PUT and PATCH; PUT without it is not refused', async () => {
    const { body } = await place();
    const whole = { item: 'x', quantity: 1, total: '1.00' };
    for (const [method, url, payload] of [
      ['POST', 'orders', { ...whole, discount: 5, margin: '1.00' }],
      ['PUT', `orders/${body.id}`, { ...whole, discount: 5, margin: '1.00' }],
      ['PATCH', `orders/${body.id}`, { discount: 5, margin: '1.00' }],
    ] as const) {
      const refused = await shop.call('ann', method, url, payload);
      expect([method, refused.status, refused.body.code, refused.body.fields]).toEqual([
        method,
        403,
        'permission_denied',
        ['discount', 'margin'],
      ]);
    }
    expect((await shop.call('ann', 'PUT', `orders/${body.id}`, whole)).status).toBe(200);
    expect((await shop.call('sue', 'PATCH', `orders/${body.id}`, { discount: 5 })).body.discount).toBe(5);
  });

  test('36: a rule about the row is decided for writing on the row before the change, and on create on the row to be', async () => {
    const { body } = await place('ann', { note: 'mine' });
    const refused = await shop.call('sue', 'PATCH', `orders/${body.id}`, { note: 'theirs', quantity: 3 });
    expect([refused.status, refused.body.fields]).toEqual([403, ['note']]);
    expect((await shop.call('ann', 'GET', `orders/${body.id}`)).body).toMatchObject({ note: 'mine', quantity: 2 });
    expect((await shop.call('ann', 'PATCH', `orders/${body.id}`, { note: 'new' })).body.note).toBe('new');
    expect((await place('sue', { note: 'of staff' })).body.note).toBe('of staff');
  });

  test('JSON columns are replaced, not merged, by PATCH and by PUT', async () => {
    const { body } = await place('ann', { data: { a: 1, b: { c: 2 } } });
    expect((await shop.call('ann', 'PATCH', `orders/${body.id}`, { data: { b: { d: 3 } } })).body.data).toEqual({ b: { d: 3 } });
    const put = await shop.call('ann', 'PUT', `orders/${body.id}`, { item: 'x', quantity: 1, total: '1.00', data: { e: 4 } });
    expect(put.body.data).toEqual({ e: 4 });
  });

  test('the order of answers: 404 before 412 before 403 of fields', async () => {
    const { body } = await place();
    const stale = { 'if-match': '"77"' };
    expect((await shop.call('bob', 'PATCH', `orders/${body.id}`, { discount: 1 }, stale)).status).toBe(404);
    expect((await shop.call('ann', 'PATCH', `orders/${body.id}`, { discount: 1 }, stale)).status).toBe(412);
    expect((await shop.call('ann', 'PATCH', `orders/${body.id}`, { discount: 1 })).status).toBe(403);
    expect((await shop.call('ann', 'PATCH', `orders/${body.id}`, { discount: 'x' }, stale)).status).toBe(422);
  });

  describe('conditional requests', () => {
    test('51: the current tag is 304 without a body; after a change it is 200 with another', async () => {
      const { body } = await place();
      const first = await shop.call('ann', 'GET', `orders/${body.id}`);
      const etag = String(first.headers['etag']);
      expect(first.headers['vary']).toMatch(/Authorization, X-API-Key, Cookie/);
      expect(first.headers['cache-control']).toBe('private, no-cache');
      for (const tag of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
        const again = await shop.call('ann', 'GET', `orders/${body.id}`, undefined, { 'if-none-match': tag });
        expect([again.status, again.text, again.headers['etag']]).toEqual([304, '', etag]);
      }
      await shop.call('ann', 'PATCH', `orders/${body.id}`, { quantity: 9 });
      const changed = await shop.call('ann', 'GET', `orders/${body.id}`, undefined, { 'if-none-match': etag });
      expect([changed.status, changed.headers['etag'] === etag]).toEqual([200, false]);
    });

    test('52: PUT and DELETE with a stale tag are 412 and change nothing', async () => {
      const { body } = await place();
      const stale = { 'if-match': '"7"' };
      for (const answer of [
        await shop.call('ann', 'PUT', `orders/${body.id}`, { item: 'x', quantity: 1, total: '1.00' }, stale),
        await shop.call('ann', 'DELETE', `orders/${body.id}`, undefined, stale),
      ])
        expect([answer.status, answer.body.code, answer.headers['etag']]).toEqual([412, 'precondition_failed', answer.body.etag]);
      expect((await shop.call('ann', 'GET', `orders/${body.id}`)).body).toEqual(body);
      expect((await shop.call('ann', 'DELETE', `orders/${body.id}`, undefined, { 'if-match': '"1"' })).status).toBe(204);
    });

    test('a tag is the version; with a shape of its own the version and 64 bits of it; of a list a hash', async () => {
      const tag = async (url: string, person: Person = 'ann') => String((await shop.call(person, 'GET', url)).headers['etag']);
      const { id } = (await shop.call('ann', 'POST', 'customers', { name: 'tagged' })).body;
      expect(await tag(`customers/${id}`)).toMatch(/^"[\w-]{16}"$/);
      const { body } = await place();
      const [item, total] = [await tag(`orders/${body.id}?fields=item`), await tag(`orders/${body.id}?fields=total`)];
      for (const each of [item, total]) expect(each).toMatch(/^"1-[\w-]{11,16}"$/);
      expect(item).not.toBe(total);
      expect(await tag('orders?limit=1')).toMatch(/^"[\w-]{16}"$/);
    });

    test('52: a version is written one way: others, and numbers that no version can be, are 412', async () => {
      const made = await place();
      const url = `orders/${made.body.id}`;
      for (const tag of ['"01"', '"+1"', '"1.0"', '"9999999999"', '"2147483648"', '"undefined"', '""'])
        expect([tag, (await shop.call('ann', 'PATCH', url, { quantity: 2 }, { 'if-match': tag })).status]).toEqual([tag, 412]);
    });

    test('52: a stale or weak tag is 412 with the current one; * passes', async () => {
      const { body, headers } = await place();
      const etag = String(headers['etag']);
      expect((await shop.call('ann', 'PATCH', `orders/${body.id}`, { quantity: 3 }, { 'if-match': etag })).status).toBe(200);
      for (const method of ['PATCH', 'DELETE'] as const) {
        const stale = await shop.call('ann', method, `orders/${body.id}`, method === 'PATCH' ? { quantity: 4 } : undefined, {
          'if-match': etag,
        });
        expect([stale.status, stale.body.code, stale.body.etag, stale.headers['etag']]).toEqual([412, 'precondition_failed', '"2"', '"2"']);
      }
      expect((await shop.call('ann', 'PATCH', `orders/${body.id}`, { quantity: 4 }, { 'if-match': 'W/"2"' })).status).toBe(412);
      expect((await shop.call('ann', 'PATCH', `orders/${body.id}`, { quantity: 4 }, { 'if-match': 'nonsense' })).status).toBe(412);
      expect((await shop.call('ann', 'PATCH', `orders/${body.id}`, { quantity: 4 }, { 'if-match': '*' })).status).toBe(200);
      expect((await shop.call('ann', 'POST', `orders/${body.id}/pay`, undefined, { 'if-match': '"1"' })).status).toBe(412);
      expect((await shop.call('ann', 'POST', `orders/${body.id}/pay`, undefined, { 'if-match': '"3"' })).status).toBe(200);
    });

    test('53: of ten PATCHes with one tag at once exactly one succeeds', async () => {
      const { body, headers } = await place();
      const etag = String(headers['etag']);
      const results = await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          shop.call('ann', 'PATCH', `orders/${body.id}`, { quantity: index + 1 }, { 'if-match': etag }),
        ),
      );
      expect(results.map(({ status }) => status).toSorted(byNumber)).toEqual([200, ...Array.from({ length: 9 }, () => 412)]);
      expect((await shop.call('ann', 'GET', `orders/${body.id}`)).body.version).toBe(2);
    });

    test('54: a tag of an expanded or sparse read works for If-Match; two roles never share one', async () => {
      const { body } = await place('sue');
      const sparse = await shop.call('sue', 'GET', `orders/${body.id}?fields=id,total`);
      const expanded = await shop.call('sue', 'GET', `orders/${body.id}?expand=customer`);
      expect(new Set([sparse, expanded].map(({ headers }) => headers['etag'])).size).toBe(2);
      expect(
        (await shop.call('sue', 'PATCH', `orders/${body.id}`, { quantity: 3 }, { 'if-match': String(sparse.headers['etag']) })).status,
      ).toBe(200);
      const other = (await shop.call('sue', 'GET', `orders/${body.id}?expand=customer`)).headers['etag'];
      expect((await shop.call('sue', 'PATCH', `orders/${body.id}`, { quantity: 4 }, { 'if-match': String(other) })).status).toBe(200);
      const mine = (await place('ann')).body.id;
      const tags = await Promise.all(
        (['ann', 'sue'] as const).map(async (person) => (await shop.call(person, 'GET', `orders/${mine}?fields=id,total`)).headers['etag']),
      );
      expect(tags[0]).not.toBe(tags[1]);
      const list = (await shop.call('ann', 'GET', 'orders')).headers['etag'];
      expect((await shop.call('ann', 'GET', 'orders', undefined, { 'if-none-match': String(list) })).status).toBe(304);
      await shop.call('ann', 'PATCH', `orders/${mine}`, { quantity: 5 });
      expect((await shop.call('ann', 'GET', 'orders', undefined, { 'if-none-match': String(list) })).status).toBe(200);
    });
  });

  test('66, 67, 68: of ten payments at once one is taken; the list of transitions is what POST accepts; PATCH cannot', async () => {
    const { body } = await place();
    expect((await shop.call('ann', 'GET', `orders/${body.id}/transitions`)).body.items).toEqual([{ name: 'pay', to: 'paid' }]);
    expect((await shop.call('sue', 'GET', `orders/${body.id}/transitions`)).body.items).toEqual([
      { name: 'pay', to: 'paid' },
      { name: 'cancel', to: 'cancelled' },
    ]);
    expect((await shop.call('ann', 'POST', `orders/${body.id}/cancel`)).status).toBe(403);
    expect((await shop.call('ann', 'PATCH', `orders/${body.id}`, { status: 'paid' })).status).toBe(422);
    const results = await Promise.all(Array.from({ length: 10 }, () => shop.call('ann', 'POST', `orders/${body.id}/pay`)));
    expect(results.map(({ status }) => status).toSorted(byNumber)).toEqual([200, ...Array.from({ length: 9 }, () => 409)]);
    expect(results.find(({ status }) => status === 409)?.body).toMatchObject({
      code: 'invalid_transition',
      from: 'paid',
      to: 'paid',
      allowed: [],
    });
    const free = (await place('ann', { total: '0.00' })).body.id;
    // What the caller may do instead: nothing for the owner, and what staff may for staff.
    const refused = { code: 'invalid_transition', detail: 'Nothing to pay.', from: 'open', to: 'paid' };
    expect((await shop.call('ann', 'POST', `orders/${free}/pay`)).body).toMatchObject({ ...refused, allowed: [] });
    expect((await shop.call('sue', 'POST', `orders/${free}/pay`)).body).toMatchObject({ ...refused, allowed: ['cancel'] });
    expect((await shop.call('ann', 'GET', `orders/${free}/transitions`)).body.items).toEqual([]);
  });

  test('67: the list of transitions obeys what a controller adds or removes, and shows their input', async () => {
    class Narrow extends CrudController(
      resource(orders, {
        tenant: 'org',
        owner: 'owner_id',
        input: ['item', 'quantity', 'total'],
        state: 'status',
        transitions: {
          pay: { from: ['open'], to: 'paid', input: z.object({ reference: z.string() }) },
          cancel: { from: ['open'], to: 'cancelled' },
          ship: { from: ['open', 'cancelled'], to: 'paid' },
          forget: { from: ['cancelled'], to: 'open' },
          reopen: { from: ['cancelled'], to: 'open' },
        },
      }),
      { permission: isAuthenticated, operations: { cancel: { permission: isStaff }, forget: { permission: isStaff }, ship: false } },
    ) {}
    const narrow = await startShop({
      database: database.db,
      mount: { '/v1': { '/orders': Narrow } },
      resources: [resource(customers, { tenant: 'org' })],
      modules: [{ ...shopModule, resources: [] }],
    });
    try {
      const { body } = await narrow.call('ann', 'POST', 'orders', { item: 'lamp', quantity: 1, total: '5.00' });
      await database.db.execute(`update orders set status = 'cancelled' where id = $1`, [body.id]);
      const refused = await narrow.call('ann', 'POST', `orders/${body.id}/pay`, { reference: 'r' });
      expect([refused.status, refused.body.allowed]).toEqual([409, ['reopen']]);
      await database.db.execute(`update orders set status = 'open' where id = $1`, [body.id]);
      expect((await narrow.call('ann', 'GET', `orders/${body.id}/transitions`)).body.items).toEqual([
        {
          name: 'pay',
          to: 'paid',
          input: expect.objectContaining({ type: 'object', required: ['reference'], properties: { reference: { type: 'string' } } }),
        },
      ]);
      expect((await narrow.call('ann', 'POST', `orders/${body.id}/cancel`)).status).toBe(403);
      const wrong = await narrow.call('ann', 'POST', `orders/${body.id}/pay`, { reference: 1 });
      expect([wrong.status, wrong.body.errors[0].location]).toEqual([422, ['body', 'reference']]);
      expect((await narrow.call('ann', 'POST', `orders/${body.id}/ship`)).status).toBe(404);
    } finally {
      await narrow.close();
    }
  });

  test('a transition without guard, input, hook and records is one statement', async () => {
    const plain = await startShop({
      database: database.db,
      mount: {
        '/v1': {
          '/orders': class PlainController extends CrudController(
            resource(orders, {
              tenant: 'org',
              owner: 'owner_id',
              version: 'version',
              input: ['item', 'quantity', 'total'],
              state: 'status',
              transitions: { pay: { from: ['open'], to: 'paid' } },
            }),
            { permission: isAuthenticated },
          ) {},
        },
      },
      resources: [resource(customers, { tenant: 'org' })],
      modules: [{ ...shopModule, resources: [] }],
    });
    try {
      const { body } = await plain.call('ann', 'POST', 'orders', { item: 'lamp', quantity: 1, total: '5.00' });
      const stale = await plain.call('ann', 'POST', `orders/${body.id}/pay`, undefined, { 'if-match': '"7"' });
      expect([stale.status, stale.headers['etag']]).toEqual([412, '"1"']);
      const { count, result } = await countQueries(() => plain.call('ann', 'POST', `orders/${body.id}/pay`));
      expect([result.status, result.body.status, result.body.version, count]).toEqual([200, 'paid', 2, 1]);
      expect((await plain.call('ann', 'POST', `orders/${body.id}/pay`)).body).toMatchObject({ code: 'invalid_transition', from: 'paid' });
      expect((await plain.call('bob', 'POST', `orders/${body.id}/pay`)).status).toBe(404);
    } finally {
      await plain.close();
    }
  });

  test('a plain change is one statement', async () => {
    const { id } = (await shop.call('ann', 'POST', 'customers', { name: 'one' })).body;
    const { count, result } = await countQueries(() => shop.call('ann', 'PATCH', `customers/${id}`, { name: 'two' }));
    expect([result.status, result.body.name, count]).toEqual([200, 'two', 1]);
    const created = await countQueries(() => shop.call('ann', 'POST', 'customers', { name: 'three' }));
    expect([created.result.status, created.count]).toEqual([201, 1]);
    const gone = await countQueries(() => shop.call('ann', 'DELETE', `customers/${id}`));
    expect([gone.result.status, gone.count]).toEqual([204, 1]);
  });
});

describeDatabases('hooks, change records, audit and events', (database) => {
  const seen: Change[] = [];
  const audited: AuditEntry[] = [];
  const published: EventEntry[] = [];
  let failing: string | undefined;
  let committed = 0;
  const recorders: Module = {
    name: 'recorders',
    provides: () => ({
      audit: {
        record: async (_tx, entries) => {
          if (failing === 'audit') throw new Error('the audit trail is full');
          audited.push(...entries);
        },
      },
      events: { publish: async (_tx, events) => void published.push(...events) },
    }),
  };
  const hooked = resource(orders, {
    name: 'order',
    tenant: 'org',
    owner: 'owner_id',
    version: 'version',
    input: ['item', 'quantity', 'note'],
    hidden: ['internal_note'],
    state: 'status',
    transitions: { pay: { from: ['open'], to: 'paid' } },
    hooks: {
      async create({ input, tx }, next) {
        tx.afterCommit(() => (committed += 1));
        if (failing === 'create') throw new Error('no');
        if (input.item.startsWith('existing ')) return { id: input.item.slice('existing '.length) } as never;
        if (input.item === 'twice') await next({ ...input, total: '1.00' });
        if (input.item === 'caught') return next({ ...input, total: 'nothing' }).catch(() => ({ id: 'invented' }) as never);
        return next({ ...input, total: `${input.quantity * 10}.00`, owner_id: people.cid.id } as never);
      },
      async update({ input, before }, next) {
        if (input.item === 'skip') return before;
        return next({ ...input, total: `${(input.quantity ?? before.quantity) * 10}.00` });
      },
    },
    onChange: (change) => {
      if (failing === 'change') throw new Error('no');
      seen.push(change);
    },
    events: true,
  });
  class HookedController extends CrudController(hooked, { permission: isAuthenticated }) {}
  const customerPolicy = resource(customers, { tenant: 'org' });

  let shop: ShopApp;
  beforeAll(async () => {
    shop = await startShop({
      database: database.db,
      mount: { '/v1': { '/orders': HookedController } },
      resources: [customerPolicy],
      modules: [{ ...shopModule, resources: [] }, recorders],
    });
  });
  beforeEach(() => {
    failing = undefined;
    for (const list of [seen, audited, published]) list.length = 0;
  });
  afterAll(() => shop.close());
  const place = () => shop.call('ann', 'POST', 'orders', { item: 'lamp', quantity: 2 });

  test('what a hook gives next wins over the input, never over owner and tenant', async () => {
    const { status, body } = await place();
    expect([status, body.total, body.owner_id, body.org]).toEqual([201, '20.00', people.ann.id, 'north']);
    expect((await shop.call('ann', 'PATCH', `orders/${body.id}`, { quantity: 5 })).body.total).toBe('50.00');
  });

  test('46, 47, 91: onChange, one audit entry and one event per changed row, version and stamps moved, in the transaction', async () => {
    const { body } = await place();
    await shop.call('ann', 'PATCH', `orders/${body.id}`, { quantity: 3 });
    await shop.call('ann', 'PATCH', `orders/${body.id}`, {});
    await shop.call('ann', 'PATCH', `orders/${body.id}`, { quantity: 3 });
    await shop.call('ann', 'PUT', `orders/${body.id}`, { item: 'desk', quantity: 3 });
    const paid = await shop.call('ann', 'POST', `orders/${body.id}/pay`);
    expect([paid.body.version, paid.body.updated_by]).toEqual([5, people.ann.id]);
    await shop.call('ann', 'DELETE', `orders/${body.id}`);
    expect(
      seen.map(({ operation, via, changed, before, after }) => [
        operation,
        via,
        changed.length > 5 ? 'all' : changed,
        before === null,
        after === null,
      ]),
    ).toEqual([
      ['create', 'single', 'all', true, false],
      ['update', 'single', ['quantity', 'total'], false, false],
      ['update', 'single', ['item'], false, false],
      ['transition:pay', 'single', ['status'], false, false],
      ['destroy', 'single', 'all', false, true],
    ]);
    const actions = ['order.created', 'order.updated', 'order.updated', 'order.pay', 'order.deleted'];
    expect(audited.map(({ action }) => action)).toEqual(actions);
    expect(audited[1]).toMatchObject({ target_type: 'order', target_id: body.id, before: { quantity: 2 }, after: { quantity: 3 } });
    expect(published.map(({ type }) => type)).toEqual(actions);
    expect(published[1]).toMatchObject({
      owner: people.ann.id,
      tenantKey: 'north',
      orderingKey: `order:${body.id}`,
      data: { id: body.id, changed: ['quantity', 'total'] },
    });
    for (const { data } of published)
      expect(Object.keys((data as { object: object }).object)).not.toEqual(expect.arrayContaining(['internal_note', 'secret']));
  });

  test('a hook that does not call next writes, records and announces nothing; the answer is the row as it is', async () => {
    const { body } = await place();
    for (const list of [seen, audited, published]) list.length = 0;
    const made = await shop.call('ann', 'POST', 'orders', { item: `existing ${body.id}`, quantity: 1 });
    expect([made.status, made.body.id]).toEqual([201, body.id]);
    const kept = await shop.call('ann', 'PATCH', `orders/${body.id}`, { item: 'skip', quantity: 9 });
    expect([kept.status, kept.body.item, kept.body.quantity, kept.body.version]).toEqual([200, 'lamp', 2, 1]);
    expect([seen, audited, published]).toEqual([[], [], []]);
    expect((await shop.call('bob', 'POST', 'orders', { item: `existing ${body.id}`, quantity: 1 })).status).toBe(404);
  });

  test('a hook that calls next twice, or catches the error of its write, saves nothing', async () => {
    const count = async () => (await database.db.query('select id from orders')).length;
    const before = await count();
    expect((await shop.call('ann', 'POST', 'orders', { item: 'twice', quantity: 1 })).status).toBe(500);
    expect((await shop.call('ann', 'POST', 'orders', { item: 'caught', quantity: 1 })).status).toBe(422);
    expect(await count()).toBe(before);
  });

  test('45, 48: a hook, an onChange or an audit sink that throws saves nothing, and after-commit callbacks do not run', async () => {
    for (const where of ['create', 'change', 'audit']) {
      failing = where;
      const before = committed;
      const [{ count: rows } = { count: 0 }] = await database.db.query<{ count: number }>('select count(*) as count from orders');
      expect([where, (await place()).status]).toEqual([where, 500]);
      const [{ count } = { count: 0 }] = await database.db.query<{ count: number }>('select count(*) as count from orders');
      expect([where, count, committed]).toEqual([where, rows, before]);
    }
    failing = undefined;
    const before = committed;
    expect((await place()).status).toBe(201);
    expect(committed).toBe(before + 1);
  });
});

describe('guards of a controller', () => {
  test('an anonymous caller who may see public rows cannot make a row without an owner: 401', async () => {
    class Public extends CrudController(
      resource(orders, {
        owner: 'owner_id',
        anonymous: { status: 'paid' },
        input: ['item', 'quantity', 'total'],
        hooks: { create: ({ input }, next) => next({ ...input, org: 'north' }) },
      }),
      { permission: allowAny },
    ) {}
    const shop = await startShop({
      mount: { '/v1': { '/orders': Public } },
      resources: [resource(customers, { tenant: 'org' })],
      modules: [{ ...shopModule, resources: [] }],
    });
    try {
      expect((await shop.call(anonymous, 'GET', 'orders')).status).toBe(200);
      const made = await shop.call(anonymous, 'POST', 'orders', { item: 'lamp', quantity: 1, total: '1.00' });
      expect([made.status, made.body.code]).toEqual([401, 'not_authenticated']);
    } finally {
      await shop.close();
    }
  });

  const SOME_ID = '01890000-0000-7000-8000-000000000000';
  class Closed extends CrudController(resource(customers, { tenant: 'org' }), { permission: isStaff }) {
    override list = this.wrap('list', { permission: allowAny, summary: 'Open' }, async (_, next) => next());
    override retrieve = route.get('/:id', { permission: allowAny, params: this.keyParams }, () => undefined);
    extra = route.get('/extra/all', { permission: allowAny }, () => undefined);
  }
  class Sub extends Closed {
    static override readonly permission = isAuthenticated;
  }

  test('8, 9: neither a wrapped operation, a route of its own nor a subclass opens what the controller closes', async () => {
    const shop = await startShop({ mount: { '/v1': { '/closed': Closed, '/sub': Sub } }, modules: [{ ...shopModule, resources: [] }] });
    try {
      for (const path of ['closed', 'sub', `closed/${SOME_ID}`, `sub/${SOME_ID}`, 'closed/extra/all', 'sub/extra/all']) {
        expect([path, (await shop.call('ann', 'GET', path)).status]).toEqual([path, 403]);
        expect([path, (await shop.call(anonymous, 'GET', path)).status]).toEqual([path, 401]);
        expect((await shop.call('sue', 'GET', path)).status).toBeLessThan(300);
      }
    } finally {
      await shop.close();
    }
  });
});
