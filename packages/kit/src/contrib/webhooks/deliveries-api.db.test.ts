import { afterAll, beforeAll, expect, test } from 'vitest';
import type { User } from '../../auth/people/principal.ts';
import { describeHookApp } from '../../../test/webhooks/hook-app.ts';
import { LOOPBACK } from '../../../test/webhooks/outbox.ts';
import { startReceiver, type Receiver } from '../../../test/webhooks/receiver.ts';
import { deliverDue } from './delivery/deliver.ts';
import { publish } from './publishing/publish.ts';
import { recoverEndpoint } from './maintain/recover.ts';
import { findEndpoint, findEvent } from './endpoints/store.ts';
import { verifySignature } from './receiving/verify.ts';

const MINUTE_MS = 60_000;

describeHookApp('deliveries over HTTP', { urlPolicy: LOOPBACK }, (app) => {
  const { call, create, person, clock } = app;
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await startReceiver();
  });
  afterAll(() => receiver.close());

  const send = (owner: string, type = 'order.paid', data: object = { n: 1 }) =>
    app.db.transaction(async (tx) => (await publish(tx, type, data, { owner })).id);
  const list = async (user: User, id: string, query = '') => (await call(user, 'GET', `/hooks/${id}/deliveries${query}`)).body;

  async function endpoint(fields: object = {}) {
    const user = await person();
    const path = `/${user.username}`;
    const { body } = await create(user, { url: receiver.url(path), ...fields });
    return { user, path, id: body.id as string, secret: body.secret as string };
  }

  test('the list shows the last 100, newest first, with filters and a cursor', async () => {
    const { user, id, path } = await endpoint();
    receiver.answer(path, ({ body }, response) => void response.writeHead(body.includes('"fails":true') ? 500 : 200).end());
    for (let index = 0; index < 105; index++) {
      clock.advance(1);
      await send(user.id, index % 2 === 0 ? 'order.paid' : 'order.refunded', { index, fails: index < 3 });
    }
    const first = await list(user, id);
    expect([first.items.length, first.count]).toEqual([100, 105]);
    const ids: string[] = first.items.map((item: { id: string }) => item.id);
    expect(ids).toEqual(ids.toSorted().reverse());
    expect(Object.keys(first.items[0]).sort()).toEqual(
      [
        'attempts',
        'created_at',
        'delivered_at',
        'event_id',
        'event_type',
        'failure_reason',
        'id',
        'last_error',
        'last_status_code',
        'next_attempt_at',
        'status',
      ].sort(),
    );
    const second = await list(user, id, `?cursor=${encodeURIComponent(first.next)}`);
    expect((await list(user, id, first.next)).items).toEqual(second.items);
    expect((await list(user, id, `?cursor=${ids.at(-1)}`)).items).toEqual(second.items);
    expect([second.items.length, second.count, second.next]).toEqual([5, 105, null]);
    expect(new Set([...ids, ...second.items.map((item: { id: string }) => item.id)]).size).toBe(105);
    await deliverDue(app.db);
    expect(await list(user, id, '?status=pending')).toMatchObject({ count: 3, next: null });
    expect(await list(user, id, '?status=succeeded&event_type=order.refunded&limit=1')).toMatchObject({
      count: 51,
      items: [{ attempts: 1 }],
    });
    expect(await list(user, id, '?event_type=order.nothing')).toEqual({ items: [], count: 0, next: null, previous: null });
    for (const query of ['?status=lost', '?limit=0', '?limit=101', '?cursor=1', '?page=2'])
      expect((await call(user, 'GET', `/hooks/${id}/deliveries${query}`)).status).toBe(422);
    await call(user, 'DELETE', `/hooks/${id}`);
  });

  test('the list counts up to 10,000 deliveries and says null above', async () => {
    const { user, id } = await endpoint();
    const numbers = (from: number, to: number) =>
      app.db.dialect === 'postgres'
        ? `select to_char(n, 'FM000000000000') as suffix from generate_series(${from}, ${to}) as n`
        : `with recursive numbers (n) as (select ${from} union all select n + 1 from numbers where n < ${to}) select printf('%012d', n) as suffix from numbers`;
    const uuid =
      app.db.dialect === 'postgres' ? `cast('01890000-0000-7000-8000-' || suffix as uuid)` : `'01890000-0000-7000-8000-' || suffix`;
    const add = async (from: number, to: number) => {
      await app.db.query(
        `insert into webhook_events (id, type, data, timestamp, audience) select ${uuid}, 'order.paid', '{}', $1, 'owner' from (${numbers(from, to)}) s`,
        [clock.now()],
      );
      await app.db.query(
        `insert into webhook_deliveries (id, event_id, endpoint_id, event_type, status, created_at)
         select ${uuid}, ${uuid}, $2, 'order.paid', 'succeeded', $1 from (${numbers(from, to)}) s`,
        [clock.now(), id],
      );
    };
    await add(1, 10_000);
    expect(await list(user, id, '?limit=1')).toMatchObject({ count: 10_000, items: [{ status: 'succeeded' }] });
    await add(10_001, 10_001);
    const page = await list(user, id, '?limit=1');
    expect(page).toMatchObject({ count: null, next: expect.stringMatching(/^\?cursor=/) });
    expect(await list(user, id, '?status=failed')).toMatchObject({ count: 0, items: [] });
    await call(user, 'DELETE', `/hooks/${id}`);
  });

  test('the detail shows the payload as it is sent and every attempt', async () => {
    const { user, id, path } = await endpoint();
    receiver.answer(path, (_request, response) => response.writeHead(503).end('try later'));
    const eventId = await send(user.id, 'order.paid', { total: '12.50' });
    const publishedAt = clock.now().toISOString();
    await deliverDue(app.db);
    clock.advance(5000);
    receiver.answer(path, 200);
    await deliverDue(app.db);
    const [{ id: deliveryId }] = (await list(user, id)).items;
    const { status, body } = await call(user, 'GET', `/hooks/${id}/deliveries/${deliveryId}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      event_id: eventId,
      status: 'succeeded',
      attempts: 2,
      payload: { type: 'order.paid', timestamp: publishedAt, data: { total: '12.50' } },
      attempt_history: [
        { status_code: 503, failure_reason: 'http_status', response_excerpt: 'try later', worker: expect.stringMatching(/^[0-9a-f]{6}$/) },
        { status_code: 200, failure_reason: null, error: null },
      ],
    });
    expect(JSON.parse(receiver.of(path)[0]?.body ?? '')).toEqual(body.payload);
    expect(body.attempt_history[0]).not.toHaveProperty('delivery_id');
  });

  test('retry: a failed delivery is queued again with its whole budget; a succeeded one only with force', async () => {
    const { user, id, path } = await endpoint();
    await send(user.id);
    await app.db.query(
      `update webhook_deliveries set status = 'failed', attempts = 8, failure_reason = 'http_status', next_attempt_at = null where endpoint_id = $1`,
      [id],
    );
    const [{ id: deliveryId }] = (await list(user, id)).items;
    const retry = (payload?: object) => call(user, 'POST', `/hooks/${id}/deliveries/${deliveryId}/retry`, payload);
    expect(await retry()).toMatchObject({
      status: 200,
      body: { status: 'pending', attempts: 0, next_attempt_at: clock.now().toISOString(), failure_reason: null },
    });
    await deliverDue(app.db);
    expect(receiver.of(path)).toHaveLength(1);
    for (const payload of [undefined, {}, { force: false }])
      expect(await retry(payload)).toMatchObject({ status: 409, body: { code: 'delivery_succeeded' } });
    expect(await retry({ force: true })).toMatchObject({ status: 200, body: { status: 'pending', delivered_at: null } });
    await deliverDue(app.db);
    expect(new Set(receiver.of(path).map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect(receiver.of(path)).toHaveLength(2);
    expect((await retry({ force: 'yes' })).status).toBe(422);
  });

  test('retry: 409 delivery_claimed while a worker holds it, with force too; an expired claim may be retried', async () => {
    const { user, id } = await endpoint();
    await send(user.id);
    const until = new Date(clock.now().getTime() + 75_000);
    await app.db.query(`update webhook_deliveries set claim_token = 'held', claimed_until = $2 where endpoint_id = $1`, [id, until]);
    const [{ id: deliveryId }] = (await list(user, id)).items;
    const retry = (payload?: object) => call(user, 'POST', `/hooks/${id}/deliveries/${deliveryId}/retry`, payload);
    for (const payload of [undefined, { force: true }])
      expect(await retry(payload)).toMatchObject({ status: 409, body: { code: 'delivery_claimed' } });
    clock.set(until);
    expect((await retry()).status).toBe(200);
    await deliverDue(app.db);
    expect(await list(user, id)).toMatchObject({ items: [{ status: 'succeeded' }] });
  });

  test('409 endpoint_disabled: a disabled endpoint is not retried, pinged or recovered', async () => {
    const { user, id } = await endpoint();
    await send(user.id);
    await call(user, 'PATCH', `/hooks/${id}`, { is_active: false });
    const [{ id: deliveryId }] = (await list(user, id)).items;
    for (const [path, payload] of [
      [`/deliveries/${deliveryId}/retry`, undefined],
      ['/ping', undefined],
      ['/recover', { since: clock.now().toISOString() }],
    ] as const)
      expect(await call(user, 'POST', `/hooks/${id}${path}`, payload)).toMatchObject({ status: 409, body: { code: 'endpoint_disabled' } });
    expect(await list(user, id)).toMatchObject({ count: 1, items: [{ status: 'failed', failure_reason: 'endpoint_disabled' }] });
  });

  test('ping: 202 queues a signed webhook.ping for this endpoint alone, whatever it subscribes to', async () => {
    const { user, id, path, secret } = await endpoint({ events: ['order.paid'] });
    await create(user, { url: receiver.url(`${path}/other`) });
    const { status, body } = await call(user, 'POST', `/hooks/${id}/ping`);
    expect([status, body.status, body.event_type]).toEqual([202, 'pending', 'webhook.ping']);
    expect(receiver.of(path)).toEqual([]);
    await deliverDue(app.db);
    const [request, ...rest] = receiver.of(path);
    expect(rest).toEqual([]);
    expect(JSON.parse(request?.body ?? '')).toMatchObject({ type: 'webhook.ping', data: { endpoint_id: id } });
    verifySignature(secret, request?.headers ?? {}, request?.body ?? '', { now: clock.now() });
    expect(receiver.of(`${path}/other`)).toEqual([]);
    expect(await findEvent(app.db, body.event_id)).toMatchObject({ audience: 'owner', owner_id: user.id, tenant_key: '' });
  });

  test('429: a user may ping, retry and recover so often a minute in all, and other users are not limited by it', async () => {
    const { user, id } = await endpoint();
    const { user: other, id: otherId } = await endpoint();
    await send(user.id);
    const [{ id: deliveryId }] = (await list(user, id)).items;
    const calls = [`/ping`, `/deliveries/${deliveryId}/retry`, '/recover'];
    const answers = [];
    for (let n = 0; n < 61; n++) {
      const path = calls[n % 3] ?? '';
      answers.push(await call(user, 'POST', `/hooks/${id}${path}`, path === '/recover' ? { since: clock.now().toISOString() } : undefined));
    }
    expect(answers.slice(0, 60).every(({ status }) => status === 200 || status === 202)).toBe(true);
    expect(answers[60]).toMatchObject({ status: 429, body: { code: 'throttled' } });
    expect((await call(user, 'GET', `/hooks/${id}`)).status).toBe(200);
    expect((await call(other, 'POST', `/hooks/${otherId}/ping`)).status).toBe(202);
    clock.advance(MINUTE_MS);
    expect((await call(user, 'POST', `/hooks/${id}/ping`)).status).toBe(202);
  });

  test('ping of a tenant endpoint reaches it', async () => {
    const user = await person();
    const acme = { 'x-tenant': 'acme' };
    const made = await call(user, 'POST', '/tenant', { url: receiver.url(`/${user.username}`), events: ['*'] }, acme);
    expect((await call(user, 'POST', `/tenant/${made.body.id}/ping`, undefined, acme)).status).toBe(202);
    await deliverDue(app.db);
    expect(receiver.of(`/${user.username}`)).toHaveLength(1);
  });

  test('recover: 202 sends what failed and what was published while disabled, since then and nothing else', async () => {
    const { user, id, path } = await endpoint({ events: ['order.*'] });
    const stranger = await person();
    await send(user.id, 'order.paid', { n: 'before' });
    await deliverDue(app.db);
    await send(user.id, 'order.paid', { n: 'failed before' });
    await call(user, 'PATCH', `/hooks/${id}`, { is_active: false });
    await call(user, 'PATCH', `/hooks/${id}`, { is_active: true });
    clock.advance(MINUTE_MS);
    const since = clock.now().toISOString();
    await send(user.id, 'order.paid', { n: 'waiting' });
    await call(user, 'PATCH', `/hooks/${id}`, { is_active: false });
    clock.advance(MINUTE_MS);
    await send(user.id, 'order.item.added', { n: 'while disabled' });
    await send(user.id, 'invoice.sent', { n: 'not subscribed' });
    await send(user.id, 'orders.paid', { n: 'not the pattern' });
    await send(stranger.id, 'order.paid', { n: 'not theirs' });
    await app.db.transaction((tx) => publish(tx, 'order.paid', { n: 'public' }, { broadcast: true }));
    await app.db.transaction((tx) => publish(tx, 'order.paid', { n: 'of a tenant' }, { tenantKey: 'acme' }));
    await app.db.transaction((tx) => publish(tx, 'order.paid', { n: 'in a tenant' }, { tenantKey: 'acme', owner: user.id }));
    await call(user, 'PATCH', `/hooks/${id}`, { is_active: true });
    const recover = () => call(user, 'POST', `/hooks/${id}/recover`, { since });
    expect(await recover()).toMatchObject({ status: 202, body: { requeued: 1, added: 2, complete: true } });
    await deliverDue(app.db);
    const arrived = receiver.of(path).map(({ body }) => (JSON.parse(body) as { data: { n: string } }).data.n);
    expect(arrived.sort()).toEqual(['before', 'public', 'waiting', 'while disabled']);
    expect(await recover()).toMatchObject({ status: 202, body: { requeued: 0, added: 0, complete: true } });
    for (const payload of [{}, { since: 'yesterday' }, { since, until: since }])
      expect((await call(user, 'POST', `/hooks/${id}/recover`, payload)).status).toBe(422);
  });

  test('recover: only what the endpoint subscribed to at the time, and still does', async () => {
    clock.advance(1000);
    const { user, id, path } = await endpoint({ events: ['order.paid'] });
    const since = clock.now().toISOString();
    const subscribe = (events: readonly string[]) => call(user, 'PATCH', `/hooks/${id}`, { events });
    await call(user, 'PATCH', `/hooks/${id}`, { is_active: false });
    clock.advance(1000);
    await send(user.id, 'order.paid', { n: 'subscribed' });
    await send(user.id, 'invoice.sent', { n: 'before the subscription' });
    clock.advance(1000);
    await subscribe(['invoice.*', 'order.*']);
    clock.advance(1000);
    await send(user.id, 'invoice.sent', { n: 'subscribed since' });
    await send(user.id, 'order.refunded', { n: 'by the wider pattern' });
    clock.advance(1000);
    await subscribe(['invoice.*']);
    clock.advance(1000);
    await send(user.id, 'order.paid', { n: 'not any more' });
    clock.advance(1000);
    await subscribe(['*']);
    await call(user, 'PATCH', `/hooks/${id}`, { is_active: true });
    expect(await call(user, 'POST', `/hooks/${id}/recover`, { since })).toMatchObject({ status: 202, body: { added: 3 } });
    await deliverDue(app.db);
    const arrived = receiver.of(path).map(({ body }) => (JSON.parse(body) as { data: { n: string } }).data.n);
    expect(arrived.sort()).toEqual(['by the wider pattern', 'subscribed', 'subscribed since']);
  });

  test('stored data that is not JSON is never sent: the delivery fails with the reason payload and can be read', async () => {
    const { user, id, path } = await endpoint();
    const other = await endpoint();
    for (const data of ['{"n":', '', 'null', '[1]', '"text"', '{"n":1}{"n":2}']) {
      const eventId = await send(user.id);
      await app.db.query('update webhook_events set data = $2 where id = $1', [eventId, data]);
    }
    const typed = await send(user.id);
    await app.db.query('update webhook_events set type = $2 where id = $1', [typed, 'x","type":"forged']);
    await send(other.user.id);
    await deliverDue(app.db);
    expect(receiver.of(path)).toEqual([]);
    expect(receiver.of(other.path)).toHaveLength(1);
    const { items } = await list(user, id);
    expect(items).toHaveLength(7);
    for (const item of items) {
      expect(item).toMatchObject({ status: 'failed', attempts: 0, failure_reason: 'payload' });
      const detail = await call(user, 'GET', `/hooks/${id}/deliveries/${item.id}`);
      expect([detail.status, detail.body.attempt_history]).toEqual([200, []]);
    }
    expect((await call(user, 'GET', `/hooks/${id}`)).body).toMatchObject({ failing_since: null, consecutive_failures: 0 });
  });

  test('recover: events from before the endpoint existed were not missed, and a bounded call says that there is more', async () => {
    const user = await person();
    const first = await create(user, { url: receiver.url(`/${user.username}`) });
    await send(user.id);
    clock.advance(1000);
    const { body } = await create(user, { url: receiver.url(`/${user.username}`) });
    const recover = (limit?: number) =>
      app.db.transaction(async (tx) => {
        const found = await findEndpoint(tx, body.id);
        if (found === null) throw new Error('no such endpoint');
        return recoverEndpoint(tx, found, new Date(0), limit);
      });
    expect(await recover()).toEqual({ requeued: 0, added: 0, complete: true });
    await call(user, 'PATCH', `/hooks/${first.body.id}`, { is_active: false });
    await call(user, 'PATCH', `/hooks/${body.id}`, { is_active: false });
    for (let index = 0; index < 3; index++) await send(user.id);
    await call(user, 'PATCH', `/hooks/${body.id}`, { is_active: true });
    expect(await recover(2)).toEqual({ requeued: 1, added: 2, complete: false });
    expect(await recover(2)).toEqual({ requeued: 0, added: 1, complete: true });
  });
});
