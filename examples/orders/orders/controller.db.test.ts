import { AccountController, accounts, accountsOf, addGroupMember, createGroup, createUser } from 'kit/contrib/accounts';
import { ApiKeyController, apiKeys, createApiKey } from 'kit/contrib/apikeys';
import { objectGrants } from 'kit/contrib/grants';
import { diskStore, uploads } from 'kit/contrib/uploads';
import { WebhookEndpointController, webhooks } from 'kit/contrib/webhooks';
import { describeDatabases, testApp, type TestApp } from 'kit/testing';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { liveSettings } from '../settings.ts';
import { orderActions } from './actions.ts';
import { OrderController as ByHand } from './by-hand/controller.ts';
import { OrderController } from './controller.ts';
import { orderResource } from './resource.ts';
import { InvoiceController } from './invoice-controller.ts';
import { orders } from './module.ts';

const forms = { 'generic controller': OrderController, 'hand-written controller': ByHand } as const;

const modulesWith = (folder: string) => [
  accounts(),
  apiKeys(),
  webhooks(),
  uploads({ store: diskStore({ folder }), cleanEverySeconds: 0 }),
  objectGrants({ objects: [orderActions] }),
  orders(),
];

describe.each(Object.entries(forms))('94: %s', (_form, Orders) => {
  describeDatabases('orders', (database) => {
    let test_: TestApp;
    const keys = new Map<string, string>();

    let folder = '';

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'kit-orders-'));
      test_ = await testApp({
        database: database.db,
        modules: modulesWith(folder),
        services: [liveSettings],
        // The hand-written form brings no policy; the admin site still shows orders by it.
        ...(Orders === ByHand ? { resources: [orderResource] } : {}),
        mount: {
          '/v1': {
            '/orders': Orders,
            '/invoices': InvoiceController,
            '/api-keys': ApiKeyController,
            '/webhooks': WebhookEndpointController,
            '/account': AccountController,
          },
        },
      });
      const { app } = test_;
      const management = accountsOf(app.db).management(null);
      for (const [name, scopes] of [
        ['ada', ['orders:*', 'uploads:*']],
        ['bob', ['orders:*', 'uploads:*']],
        ['reader', ['orders:read']],
      ] as const) {
        const user = await createUser(app.db, { username: name }, management);
        keys.set(name, (await createApiKey(app.db, { user, name, scopes })).raw);
      }
    });
    afterAll(async () => {
      await test_.close();
      await rm(folder, { recursive: true, force: true });
    });

    const call = async (who: string, method: 'GET' | 'POST', path: string, body?: object) => {
      const response = await test_.inject({
        method,
        url: `/v1/orders${path}`,
        headers: { 'x-api-key': keys.get(who) ?? '' },
        ...(body === undefined ? {} : { payload: body }),
      });
      return { status: response.statusCode, body: response.json<Record<string, unknown>>() };
    };
    const place = async (who: string, quantity = 3) =>
      (await call(who, 'POST', '', { item: 'Filter paper', quantity })).body['id'] as string;

    test('an order is priced exactly by the settings', async () => {
      const { status, body } = await call('ada', 'POST', '', { item: 'Filter paper', quantity: 3 });
      expect(status).toBe(201);
      expect(body).toMatchObject({ item: 'Filter paper', quantity: 3, total: '37.50', currency: 'EUR', status: 'open' });
    });

    test.each([0, -1, 1.5])('a quantity of %s is refused at its field, and nothing is written', async (quantity) => {
      const before = (await call('ada', 'GET', '')).body['count'];
      const { status, body } = await call('ada', 'POST', '', { item: 'Beans', quantity });
      expect(status).toBe(422);
      expect(body['errors']).toMatchObject([{ location: ['body', 'quantity'] }]);
      expect((await call('ada', 'GET', '')).body['count']).toBe(before);
    });

    test('a quantity above the limit is refused with the limit, and nothing is written', async () => {
      const before = (await call('ada', 'GET', '')).body['count'];
      expect(await call('ada', 'POST', '', { item: 'Beans', quantity: 101 })).toMatchObject({
        status: 422,
        body: { code: 'quantity_too_large', quantity_max: 100 },
      });
      expect((await call('ada', 'GET', '')).body['count']).toBe(before);
    });

    test("another user's order does not exist", async () => {
      const id = await place('ada');
      expect(await call('bob', 'GET', `/${id}`)).toMatchObject({ status: 404, body: { code: 'not_found' } });
      expect(await call('bob', 'POST', `/${id}/pay`)).toMatchObject({ status: 404, body: { code: 'not_found' } });
      expect((await call('ada', 'GET', `/${id}`)).body['status']).toBe('open');
    });

    test('an invoice is uploaded, attached by its owner alone, and kept while the order refers to it', async () => {
      const pdf = Buffer.from('%PDF-1.7\n%\u00e2\u00e3\n');
      const invoices = async (who: string, method: 'GET' | 'POST' | 'DELETE', path: string, payload?: object) => {
        const headers = { 'x-api-key': keys.get(who) ?? '' };
        const response = await test_.inject({ method, url: `/v1/invoices${path}`, headers, ...(payload === undefined ? {} : { payload }) });
        return { status: response.statusCode, body: response.body === '' ? {} : response.json<Record<string, unknown>>() };
      };
      const created = await invoices('ada', 'POST', '', { filename: 'Rechnung.pdf', content_type: 'application/pdf', size: pdf.length });
      const { id, url, headers } = created.body as { id: string; url: string; headers: Record<string, string> };
      await test_.inject({ method: 'PUT', url, headers, payload: pdf });
      const orderOf = { ada: await place('ada'), bob: await place('bob') };
      await call('ada', 'POST', `/${orderOf.ada}/pay`);
      const attach = async (who: 'ada' | 'bob') => {
        const request =
          Orders === ByHand
            ? ({ method: 'PUT', url: `/v1/orders/${orderOf[who]}/invoice`, payload: { upload_id: id } } as const)
            : ({ method: 'PATCH', url: `/v1/orders/${orderOf[who]}`, payload: { invoice_id: id } } as const);
        const version = Orders === ByHand ? {} : { 'if-match': '*' };
        const response = await test_.inject({ ...request, headers: { 'x-api-key': keys.get(who) ?? '', ...version } });
        return { status: response.statusCode, body: response.json<Record<string, unknown>>() };
      };
      const field = Orders === ByHand ? 'upload_id' : 'invoice_id';
      const refused = (code: string) => ({ status: 422, body: { errors: [{ location: ['body', field], code }] } });
      expect(await attach('ada')).toMatchObject(refused(Orders === ByHand ? 'not_ready' : 'unknown_reference'));
      expect(await invoices('ada', 'POST', `/${id}/complete`)).toMatchObject({ status: 200, body: { state: 'complete' } });
      expect(await attach('bob')).toMatchObject(refused(Orders === ByHand ? 'unknown_upload' : 'unknown_reference'));
      expect(await attach('ada')).toMatchObject({ status: 200, body: { invoice_id: id, status: 'paid' } });
      expect(await invoices('ada', 'DELETE', `/${id}`)).toMatchObject({ status: 409, body: { code: 'upload_in_use' } });
    });

    test('of ten payments at once exactly one is taken', async () => {
      const id = await place('ada');
      const answers = await Promise.all(Array.from({ length: 10 }, () => call('ada', 'POST', `/${id}/pay`)));
      expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, ...Array.from({ length: 9 }, () => 409)]);
      expect(await call('ada', 'POST', `/${id}/cancel`)).toMatchObject({
        status: 409,
        body: { code: 'invalid_transition' },
      });
    });

    test('every change of an order is published in its transaction, a refused one is not', async () => {
      const id = await place('ada');
      await call('ada', 'POST', `/${id}/pay`);
      await call('ada', 'POST', `/${id}/cancel`);
      const events = await database.db.query<{ type: string }>('select type from webhook_events where ordering_key like $1 order by id', [
        `%${id}`,
      ]);
      expect(events.map(({ type }) => type)).toEqual(['order.created', 'order.paid']);
    });

    test('a key without the scope reads and cannot write', async () => {
      expect((await call('reader', 'GET', '')).status).toBe(200);
      expect(await call('reader', 'POST', '', { item: 'Beans', quantity: 1 })).toMatchObject({
        status: 403,
        body: { code: 'insufficient_scope', required_scope: 'orders:write' },
      });
    });
  });
});

describeDatabases('an order is shared', (database) => {
  let test_: TestApp;
  let folder = '';
  const keys = new Map<string, string>();
  const ids = new Map<string, string>();
  let group = '';

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kit-orders-'));
    test_ = await testApp({
      database: database.db,
      modules: modulesWith(folder),
      services: [liveSettings],
      mount: { '/v1': { '/orders': OrderController, '/invoices': InvoiceController } },
    });
    const { db } = test_.app;
    for (const name of ['ada', 'bob', 'cid', 'dan']) {
      const user = await createUser(db, { username: name }, accountsOf(db).management(null));
      ids.set(name, user.id);
      keys.set(name, (await createApiKey(db, { user, name, scopes: ['orders:*'] })).raw);
    }
    group = (await createGroup(db, { name: 'billing', tenantKey: null })).id;
    await addGroupMember(db, group, ids.get('cid') as string);
  });
  afterAll(async () => {
    await test_.close();
    await rm(folder, { recursive: true, force: true });
  });

  const call = async (who: string, method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, payload?: object) => {
    const headers = { 'x-api-key': keys.get(who) ?? '' };
    const response = await test_.inject({ method, url: `/v1/orders${path}`, headers, ...(payload === undefined ? {} : { payload }) });
    return { status: response.statusCode, body: response.body === '' ? undefined : response.json() };
  };

  test('with a colleague, who may look, and with a group, which may change it; no other user sees it', async () => {
    const { id } = (await call('ada', 'POST', '', { item: 'Filter paper', quantity: 1 })).body;
    const shared = await call('ada', 'PUT', `/${id}/grants`, {
      items: [
        { subject: `user:${ids.get('bob')}`, set: 'viewer' },
        { subject: `group:${group}`, set: 'editor' },
      ],
    });
    expect(shared.status).toBe(200);
    const seen = async (who: string) => (await call(who, 'GET', '')).body.items.length;
    expect([await seen('ada'), await seen('bob'), await seen('cid'), await seen('dan')]).toEqual([1, 1, 1, 0]);
    const refused = await call('bob', 'PATCH', `/${id}`, { quantity: 2 });
    expect([refused.status, refused.body.action]).toEqual([403, 'change']);
    expect((await call('cid', 'PATCH', `/${id}`, { quantity: 2 })).status).toBe(200);
    expect((await call('cid', 'POST', `/${id}/pay`)).body.action).toBe('pay');
    expect((await call('dan', 'GET', `/${id}`)).status).toBe(404);
    expect((await call('cid', 'PUT', `/${id}/grants`, { subject: `user:${ids.get('dan')}`, set: 'viewer' })).status).toBe(403);
    expect((await call('ada', 'DELETE', `/${id}/grants/${shared.body.items[0].id}`)).status).toBe(204);
    expect((await call('bob', 'GET', `/${id}`)).status).toBe(404);
  });
});
