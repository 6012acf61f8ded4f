import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { describeOutbox, LOOPBACK } from '../../../../test/webhooks/outbox.ts';
import { deliverDue, startWorker } from '../delivery/deliver.ts';
import { readStats } from '../delivery/maintenance-store.ts';
import { createEndpoint } from '../endpoints/create-endpoint.ts';
import { disableEndpoint, enableEndpoint } from '../endpoints/disable.ts';
import { pingEndpoint } from '../endpoints/ping.ts';
import type { WebhookEndpoint } from '../endpoints/store.ts';
import { updateEndpoint } from '../endpoints/update-endpoint.ts';
import { recoverEndpoint } from '../maintain/recover.ts';
import { retryDelivery } from '../maintain/retry.ts';
import { verifySignature } from '../receiving/verify.ts';
import { unbindWebhooks, useWebhooks, type UseWebhooksOptions } from '../webhooks.ts';
import { destination, UndeliverableMessage, type DestinationMessage } from './destination.ts';
import { cloudEvents } from './envelope.ts';

describeOutbox('destinations', (outbox) => {
  const { owner, clock, publish, deliveries } = outbox;
  const taken: DestinationMessage[] = [];
  let answer: () => Promise<unknown> = () => Promise.resolve();
  const warehouse = destination({
    name: 'warehouse',
    schedule: [5, 60],
    send: async (message) => {
      await answer();
      taken.push(message);
    },
  });
  const paidOnly = destination({ name: 'paid-only', events: ['order.paid'], send: async () => undefined });

  const bind = (options: UseWebhooksOptions): void => {
    unbindWebhooks(outbox.db);
    useWebhooks(outbox.db, { urlPolicy: LOOPBACK, jitter: false, ...options });
  };
  const stored = async (name: string): Promise<WebhookEndpoint> => {
    const [row] = await outbox.db.query<WebhookEndpoint>('select * from webhook_endpoints where url = $1', [`destination:${name}`]);
    if (row === undefined) throw new Error(`no destination ${name}`);
    return row;
  };
  const of = (id: string): DestinationMessage[] => taken.filter((message) => message.id === id);
  const succeed = (): void => void (answer = () => Promise.resolve());

  beforeAll(async () => {
    bind({ destinations: [warehouse, paidOnly] });
    await deliverDue(outbox.db);
  });
  afterAll(() => bind({}));

  test('a destination gets the events of every audience once, with the body that endpoints get', async () => {
    const mine = owner();
    await outbox.endpoint({ owner: mine });
    const ids = [
      await publish('order.paid', { owner: mine }),
      await publish('order.paid', { owner: 'nobody' }),
      await publish('order.paid', { tenantKey: 'acme' }),
      await publish('order.paid', { owner: 'nobody', tenantKey: 'acme' }),
      await publish('order.paid', { broadcast: true }),
    ];
    await deliverDue(outbox.db);
    await deliverDue(outbox.db);
    for (const id of ids) expect(of(id)).toHaveLength(1);
    const [message] = of(ids[0] ?? '');
    const received = outbox.receiver.of(`/${mine}`).find(({ headers }) => headers['webhook-id'] === `msg_${ids[0]}`);
    expect(message?.body.toString()).toBe(received?.body);
    expect(message?.headers).toEqual({ 'content-type': 'application/json', 'webhook-id': `msg_${ids[0]}` });
    expect(await readStats(outbox.db, clock.now())).toMatchObject({ events_without_endpoint: 0 });
  });

  test('patterns choose; an event without an audience is not sent', async () => {
    const shipped = await publish('order.shipped', { owner: 'nobody' });
    const sent = await deliveries({ event: shipped });
    expect(sent.map(({ endpoint_id: id }) => id)).toEqual([(await stored('warehouse')).id]);
    await outbox.db.query('update webhook_events set audience = null where id = $1', [shipped]);
    await deliverDue(outbox.db);
    expect(of(shipped)).toEqual([]);
  });

  test('a failed attempt is retried by the schedule, ends as a failed delivery, and can be sent again', async () => {
    answer = () => Promise.reject(new Error('the broker is full'));
    const id = await publish('order.shipped', { owner: 'nobody' });
    for (const seconds of [0, 6, 61]) {
      clock.advance(seconds * 1000);
      await deliverDue(outbox.db);
    }
    const [failed] = await deliveries({ event: id });
    const error = 'The destination did not take the message: the broker is full';
    expect(failed).toMatchObject({ status: 'failed', attempts: 3, failure_reason: 'connection', last_error: error });
    succeed();
    await outbox.db.transaction((tx) => retryDelivery(tx, failed?.id ?? ''));
    await deliverDue(outbox.db);
    expect(of(id)).toHaveLength(1);
    expect(await deliveries({ event: id })).toMatchObject([{ status: 'succeeded', last_status_code: null }]);
  });

  test('it is never disabled automatically, however long it fails', async () => {
    answer = () => Promise.reject(new Error('down'));
    for (let day = 0; day < 8; day++) {
      await publish('order.shipped', { owner: 'nobody' });
      await deliverDue(outbox.db);
      clock.advance(86_400_000);
    }
    expect(await stored('warehouse')).toMatchObject({ is_active: true, consecutive_failures: expect.any(Number) as number });
    succeed();
    await deliverDue(outbox.db);
    expect((await stored('warehouse')).failing_since).toBeNull();
  });

  test('a message that can never be taken fails permanently at its first attempt', async () => {
    answer = () => Promise.reject(new UndeliverableMessage('too large'));
    const id = await publish('order.shipped', { owner: 'nobody' });
    await deliverDue(outbox.db);
    succeed();
    expect(await deliveries({ event: id })).toMatchObject([
      { status: 'failed', attempts: 1, failure_reason: 'payload', last_error: 'too large' },
    ]);
  });

  test('events with one ordering key are sent in order, also after a failure', async () => {
    answer = () => Promise.reject(new Error('down'));
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) ids.push(await publish('order.shipped', { owner: 'nobody', orderingKey: 'order:1' }, { n }));
    await deliverDue(outbox.db);
    succeed();
    clock.advance(6000);
    for (let n = 0; n < 3; n++) await deliverDue(outbox.db);
    const sent = taken.filter(({ orderingKey }) => orderingKey === 'order:1');
    expect(sent.map(({ id }) => id)).toEqual(ids);
  });

  test('a worker that does not declare it leaves its deliveries alone; they lose no attempt', async () => {
    const id = await publish('order.shipped', { owner: 'nobody' });
    bind({});
    expect(await deliverDue(outbox.db)).toMatchObject({ succeeded: 0, retrying: 0, failed: 0 });
    expect(await deliveries({ event: id })).toMatchObject([{ status: 'pending', attempts: 0, claim_token: null }]);
    bind({ destinations: [warehouse, paidOnly] });
    await deliverDue(outbox.db);
    expect(of(id)).toHaveLength(1);
  });

  test('the rows follow the declaration: once per name, with its patterns', async () => {
    const before = await stored('paid-only');
    bind({
      destinations: [warehouse, destination({ name: 'paid-only', events: ['order.*'], rateLimit: '100/s', send: async () => undefined })],
    });
    await Promise.all([deliverDue(outbox.db), deliverDue(outbox.db)]);
    expect(await stored('paid-only')).toMatchObject({ id: before.id, events: ['order.*'], rate_limit: '100/s' });
    const rows = await outbox.db.query(`select id from webhook_endpoints where owner_id = ''`);
    expect(rows).toHaveLength(2);
    bind({ destinations: [warehouse, paidOnly] });
    await deliverDue(outbox.db);
  });

  test('an operator can disable, enable and recover it, but not change what the application declares', async () => {
    const { id } = await stored('warehouse');
    await outbox.db.transaction((tx) => disableEndpoint(tx, id, 'manual'));
    const missed = await publish('order.shipped', { tenantKey: 'acme' });
    await deliverDue(outbox.db);
    expect(await deliveries({ event: missed })).toEqual([]);
    await outbox.db.transaction((tx) => enableEndpoint(tx, id));
    const row = await stored('warehouse');
    const since = new Date(clock.now().getTime() - 1000);
    expect(await outbox.db.transaction((tx) => recoverEndpoint(tx, row, since))).toMatchObject({ added: 1 });
    await outbox.db.transaction((tx) => pingEndpoint(tx, row));
    await deliverDue(outbox.db);
    expect(of(missed)).toHaveLength(1);
    expect(taken.at(-1)?.type === 'webhook.ping' || taken.at(-2)?.type === 'webhook.ping').toBe(true);
    const edit = outbox.db.transaction((tx) => updateEndpoint(tx, row, { url: outbox.receiver.url('/elsewhere') }));
    await expect(edit).rejects.toMatchObject({ code: 'invalid_endpoint' });
    await expect(outbox.db.transaction((tx) => updateEndpoint(tx, row, { events: ['*'] }))).rejects.toMatchObject({
      code: 'invalid_endpoint',
    });
  });

  test('a worker says at its start which destination loses events, and which stored one it does not declare', async () => {
    const logged: string[] = [];
    const write = (values: object, text = ''): void => void logged.push(`${JSON.stringify(values)} ${text}`);
    const log = { warn: write, error: write, info: write };
    const forgetful = destination({ name: 'forgetful', send: async () => undefined, check: async () => 'it keeps everything in memory.' });
    const unreachable = destination({ name: 'unreachable', send: async () => undefined, check: () => Promise.reject(new Error('no')) });
    bind({ destinations: [forgetful, unreachable], log });
    const worker = await startWorker(outbox.db);
    await vi.waitFor(() => expect(logged.join('\n')).toContain('the destination "forgetful" loses events: it keeps everything in memory.'));
    await vi.waitFor(() => expect(logged.join('\n')).toContain('could not check a destination of events'));
    await worker.stop();
    expect(
      logged.filter((line) => line.includes('is not declared')).map((line) => line.includes('warehouse') || line.includes('paid-only')),
    ).toEqual([true, true]);
    for (const name of ['forgetful', 'unreachable'])
      await outbox.db.query('delete from webhook_endpoints where url = $1', [`destination:${name}`]);
    bind({ destinations: [warehouse, paidOnly] });
    await deliverDue(outbox.db);
  });

  test('no caller can create an endpoint that is one, by its URL or by having no owner', async () => {
    const create = (mine: string, url: string) => outbox.db.transaction((tx) => createEndpoint(tx, { owner: mine, url, events: ['*'] }));
    await expect(create(owner(), 'destination:warehouse')).rejects.toMatchObject({ code: 'url_not_allowed' });
    await expect(create('', outbox.receiver.url('/x'))).rejects.toMatchObject({ code: 'invalid_endpoint' });
    // A row that came in otherwise is still not one.
    const mine = owner();
    const { id } = await outbox.endpoint({ owner: mine });
    await outbox.db.query(`update webhook_endpoints set url = 'destination:warehouse' where id = $1`, [id]);
    const event = await publish('order.refunded', { owner: mine });
    const before = of(event).length;
    await deliverDue(outbox.db);
    expect(of(event)).toHaveLength(before + 1);
    expect((await deliveries({ event })).find(({ endpoint_id: each }) => each === id)).toMatchObject({ failure_reason: 'blocked_address' });
  });
});

describeOutbox('CloudEvents', (outbox) => {
  const SECRET = `whsec_${Buffer.alloc(32, 3).toString('base64')}`;
  const bind = (envelope: ReturnType<typeof cloudEvents>): void => {
    unbindWebhooks(outbox.db);
    useWebhooks(outbox.db, { urlPolicy: LOOPBACK, jitter: false, envelope });
  };

  test('structured: one JSON document, signed', async () => {
    bind(cloudEvents({ source: 'https://shop.example.com/orders' }));
    const mine = outbox.owner();
    await outbox.endpoint({ owner: mine, secret: SECRET });
    const id = await outbox.publish('order.paid', { owner: mine, orderingKey: 'order "7" ü' }, { total: 12 });
    await deliverDue(outbox.db);
    const [received] = outbox.receiver.of(`/${mine}`);
    expect(received?.headers['content-type']).toBe('application/cloudevents+json; charset=utf-8');
    expect(JSON.parse(received?.body ?? '')).toEqual({
      specversion: '1.0',
      id,
      source: 'https://shop.example.com/orders',
      type: 'order.paid',
      time: outbox.clock.now().toISOString(),
      partitionkey: 'order "7" ü',
      datacontenttype: 'application/json',
      data: { total: 12 },
    });
    const now = () => outbox.clock.now();
    expect(() => verifySignature(SECRET, received?.headers ?? {}, received?.body ?? '', { now: now() })).not.toThrow();
  });

  test('binary: attributes are headers, as the HTTP binding writes them, and the body is the data', async () => {
    bind(cloudEvents({ source: '/orders', binary: true }));
    const mine = outbox.owner();
    await outbox.endpoint({ owner: mine, secret: SECRET });
    const id = await outbox.publish('order.paid', { owner: mine, orderingKey: 'order "7" ü' }, { total: 12 });
    await deliverDue(outbox.db);
    const [received] = outbox.receiver.of(`/${mine}`);
    expect(received?.body).toBe('{"total":12}');
    expect(received?.headers).toMatchObject({
      'content-type': 'application/json',
      'webhook-id': `msg_${id}`,
      'ce-specversion': '1.0',
      'ce-id': id,
      'ce-source': '/orders',
      'ce-type': 'order.paid',
      'ce-time': outbox.clock.now().toISOString(),
      'ce-partitionkey': 'order%20%227%22%20%C3%BC',
    });
  });
});
