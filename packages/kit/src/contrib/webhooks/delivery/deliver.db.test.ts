import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { generate } from 'selfsigned';
import { expect, test, vi } from 'vitest';
import { describeOutbox } from '../../../../test/webhooks/outbox.ts';
import { deliverDue } from './deliver.ts';
import { disableEndpoint, enableEndpoint } from '../endpoints/disable.ts';
import { rotateSecret, signingSecret } from '../endpoints/endpoint-secret.ts';
import { changeHealth } from './result-store.ts';
import { retryDelivery } from '../maintain/retry.ts';
import { DEFAULT_SCHEDULE } from '../endpoints/retry-schedule.ts';
import { generateKeyPair } from '../signing/signature.ts';
import { attemptsOf, changeEndpoint, deleteEndpoint, findEndpoint, type WebhookDelivery } from '../endpoints/store.ts';
import { InvalidSignature, verifySignature } from '../receiving/verify.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

describeOutbox('delivery', (outbox) => {
  const { owner, endpoint, publish, deliveries, clock } = outbox;

  async function only(endpointId: string): Promise<WebhookDelivery> {
    const [delivery, ...rest] = await deliveries({ endpoint: endpointId });
    if (delivery === undefined || rest.length > 0) throw new Error(`expected one delivery, found ${rest.length}`);
    return delivery;
  }

  test('the request carries the headers and the body of the contract, and its signature verifies', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    const id = await publish('order.paid', { owner: mine }, { z: 'ü', a: [1, 2.5], n: null });
    const publishedAt = clock.now();
    clock.advance(90_500);
    await deliverDue(outbox.db);
    const [request] = outbox.receiver.of(`/${mine}`);
    expect(request?.headers).toMatchObject({
      'content-type': 'application/json',
      'webhook-id': `msg_${id}`,
      'webhook-timestamp': String(Math.floor(clock.now().getTime() / 1000)),
    });
    expect(request?.headers['user-agent']).toMatch(/^kit-webhooks\/\d/);
    expect(request?.body).toBe(`{"type":"order.paid","timestamp":"${publishedAt.toISOString()}","data":{"z":"ü","a":[1,2.5],"n":null}}`);
    const secret = signingSecret(outbox.db, target);
    verifySignature(secret, request?.headers ?? {}, request?.body ?? '', { now: clock.now() });
  });

  test('pending → succeeded when the receiver answers 2xx', async () => {
    for (const status of [200, 202, 204, 299]) {
      const mine = owner();
      const target = await endpoint({ owner: mine });
      outbox.receiver.answer(`/${mine}`, status);
      await publish('order.paid', { owner: mine });
      await deliverDue(outbox.db);
      expect(await only(target.id)).toMatchObject({
        status: 'succeeded',
        attempts: 1,
        last_status_code: status,
        last_error: null,
        failure_reason: null,
        delivered_at: clock.now(),
        next_attempt_at: null,
        claim_token: null,
        claimed_until: null,
      });
    }
  });

  test('a failure is retried on the schedule until it is exhausted, then the delivery has failed', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    outbox.receiver.answer(`/${mine}`, 500);
    const id = await publish('order.paid', { owner: mine });
    for (const [index, delay] of DEFAULT_SCHEDULE.entries()) {
      await deliverDue(outbox.db);
      const due = new Date(clock.now().getTime() + delay * 1000);
      expect(await only(target.id)).toMatchObject({
        status: 'pending',
        attempts: index + 1,
        next_attempt_at: due,
        last_status_code: 500,
        failure_reason: 'http_status',
      });
      clock.set(new Date(due.getTime() - 1));
      await deliverDue(outbox.db);
      expect(outbox.receiver.of(`/${mine}`)).toHaveLength(index + 1);
      clock.set(due);
    }
    await deliverDue(outbox.db);
    expect(await only(target.id)).toMatchObject({ status: 'failed', attempts: 8, failure_reason: 'http_status', next_attempt_at: null });
    const requests = outbox.receiver.of(`/${mine}`);
    expect(requests).toHaveLength(8);
    expect(new Set(requests.map(({ headers }) => headers['webhook-id']))).toEqual(new Set([`msg_${id}`]));
    expect(new Set(requests.map(({ body }) => body)).size).toBe(1);
    expect(new Set(requests.map(({ headers }) => headers['webhook-timestamp'])).size).toBe(8);
  });

  test('a redirect, a reset connection and garbage are failures that are retried', async () => {
    const cases: readonly [string, Parameters<typeof outbox.receiver.answer>[1], string][] = [
      ['redirect', (_request, response) => response.writeHead(302, { location: '/elsewhere' }).end(), 'http_status'],
      ['reset', (_request, response) => response.socket?.destroy(), 'connection'],
      ['garbage', (_request, response) => response.socket?.end('not http at all\r\n\r\n'), 'connection'],
    ];
    const targets = [];
    for (const [name, answer, reason] of cases) {
      const mine = owner();
      outbox.receiver.answer(`/${mine}-${name}`, answer);
      targets.push({ reason, target: await endpoint({ owner: mine, path: `/${mine}-${name}` }) });
      await publish('order.paid', { owner: mine });
    }
    const summary = await deliverDue(outbox.db);
    expect(summary).toMatchObject({ retrying: cases.length, succeeded: 0, failed: 0 });
    for (const { reason, target } of targets) {
      expect(await only(target.id)).toMatchObject({ status: 'pending', attempts: 1, failure_reason: reason });
      expect(await findEndpoint(outbox.db, target.id)).toMatchObject({ consecutive_failures: 1, failing_since: clock.now() });
    }
    expect(outbox.receiver.of('/elsewhere')).toEqual([]);
    clock.advance(5 * DAY);
  });

  test('a certificate without a trusted issuer is a tls failure that is retried and counts against the endpoint', async () => {
    const { private: key, cert } = await generate([{ name: 'commonName', value: '127.0.0.1' }], { keyType: 'ec' });
    const received: unknown[] = [];
    const server = createServer({ key, cert }, (request) => void received.push(request.url));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const mine = owner();
      const target = await endpoint({ owner: mine });
      const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
      await changeEndpoint(outbox.db, target.id, { url }, clock.now());
      await publish('order.paid', { owner: mine });
      expect(await deliverDue(outbox.db)).toMatchObject({ retrying: 1 });
      expect(await only(target.id)).toMatchObject({ status: 'pending', attempts: 1, failure_reason: 'tls', last_status_code: null });
      expect(await attemptsOf(outbox.db, (await only(target.id)).id)).toMatchObject([{ failure_reason: 'tls', status_code: null }]);
      expect(await findEndpoint(outbox.db, target.id)).toMatchObject({ consecutive_failures: 1 });
      expect(received).toEqual([]);
      await deleteEndpoint(outbox.db, target.id);
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });

  test('an address that the policy refuses fails at once and is not held against the endpoint', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    await outbox.db.query('update webhook_endpoints set url = $2 where id = $1', [target.id, 'http://user:secret@127.0.0.1/']);
    await publish('order.paid', { owner: mine });
    await deliverDue(outbox.db);
    expect(await only(target.id)).toMatchObject({ status: 'failed', attempts: 1, failure_reason: 'blocked_address' });
    expect((await only(target.id)).last_error).toBe('This URL is not allowed as a webhook endpoint.');
    expect(await findEndpoint(outbox.db, target.id)).toMatchObject({ failing_since: null, consecutive_failures: 0, is_active: true });
  });

  test('pending → failed when the endpoint is disabled, before and after it was claimed', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    await publish('order.paid', { owner: mine });
    await outbox.db.transaction((tx) => disableEndpoint(tx, target.id, 'manual'));
    expect(await only(target.id)).toMatchObject({ status: 'failed', failure_reason: 'endpoint_disabled', attempts: 0 });
    await outbox.db.query(`update webhook_deliveries set status = 'pending', next_attempt_at = $2 where endpoint_id = $1`, [
      target.id,
      clock.now(),
    ]);
    await deliverDue(outbox.db);
    expect(await only(target.id)).toMatchObject({ status: 'failed', failure_reason: 'endpoint_disabled', attempts: 0 });
    expect(outbox.receiver.of(`/${mine}`)).toEqual([]);
  });

  test('an endpoint disabled while a request is under way: a success stays one, a failure is not retried', async () => {
    for (const [status, expected] of [
      [200, { status: 'succeeded', failure_reason: null }],
      [500, { status: 'failed', failure_reason: 'endpoint_disabled' }],
    ] as const) {
      const mine = owner();
      const target = await endpoint({ owner: mine });
      outbox.receiver.answer(`/${mine}`, (_request, response) => {
        void outbox.db.transaction((tx) => disableEndpoint(tx, target.id, 'manual')).then(() => response.writeHead(status).end());
      });
      await publish('order.paid', { owner: mine });
      await deliverDue(outbox.db);
      expect(await only(target.id)).toMatchObject(expected);
    }
  });

  test('nothing waits for a disabled endpoint, also not a retry that is stored while it is disabled', async ({ skip }) => {
    if (outbox.db.dialect === 'sqlite') skip('SQLite has one writer');
    const mine = owner();
    const target = await endpoint({ owner: mine });
    const stored = Promise.withResolvers<void>();
    let disabled: Promise<unknown> = Promise.resolve();
    outbox.receiver.answer(`/${mine}`, (_request, response) => {
      disabled = outbox.db.transaction(async (tx) => {
        await disableEndpoint(tx, target.id, 'manual');
        response.writeHead(500).end();
        await stored.promise;
      });
    });
    await publish('order.paid', { owner: mine });
    const delivered = deliverDue(outbox.db);
    await expect.poll(async () => (await only(target.id)).attempts, { timeout: 60_000 }).toBe(1);
    stored.resolve();
    await Promise.all([disabled, delivered]);
    expect(await only(target.id)).toMatchObject({
      status: 'failed',
      failure_reason: 'endpoint_disabled',
      attempts: 1,
      next_attempt_at: null,
    });
  });

  test('a claim of a dead worker is due again after the timeout and a minute, and not before', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    await publish('order.paid', { owner: mine });
    const until = new Date(clock.now().getTime() + outbox.webhooks.settings.timeoutMs + 60_000);
    await outbox.db.query(`update webhook_deliveries set claim_token = 'dead', claimed_until = $2 where endpoint_id = $1`, [
      target.id,
      until,
    ]);
    clock.set(new Date(until.getTime() - 1));
    await deliverDue(outbox.db);
    expect(outbox.receiver.of(`/${mine}`)).toEqual([]);
    await expect(retryDelivery(outbox.db, (await only(target.id)).id)).rejects.toMatchObject({ code: 'delivery_claimed' });
    clock.set(until);
    await deliverDue(outbox.db);
    expect(await only(target.id)).toMatchObject({ status: 'succeeded', attempts: 1 });
  });

  test('a claim lasts the timeout and a minute from when it is made, also with a timeout of the worker’s own', async () => {
    for (const timeoutMs of [undefined, 40_000]) {
      const mine = owner();
      const target = await endpoint({ owner: mine });
      const claimed: unknown[] = [];
      outbox.receiver.answer(`/${mine}`, (_request, response) => {
        void only(target.id)
          .then(({ status, claimed_until }) => claimed.push([status, claimed_until]))
          .finally(() => response.writeHead(200).end());
      });
      await publish('order.paid', { owner: mine });
      await deliverDue(outbox.db, timeoutMs === undefined ? {} : { timeoutMs });
      expect(claimed).toEqual([['pending', new Date(clock.now().getTime() + (timeoutMs ?? 15_000) + 60_000)]]);
    }
  });

  test('failed → pending with all its attempts by a manual retry; a succeeded one only with force', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine, schedule: [] });
    outbox.receiver.answer(`/${mine}`, 503);
    await publish('order.paid', { owner: mine });
    await deliverDue(outbox.db);
    const failed = await only(target.id);
    expect(failed).toMatchObject({ status: 'failed', attempts: 1 });
    expect(await retryDelivery(outbox.db, failed.id)).toMatchObject({ status: 'pending', attempts: 0, next_attempt_at: clock.now() });
    outbox.receiver.answer(`/${mine}`, 200);
    await deliverDue(outbox.db);
    expect(await only(target.id)).toMatchObject({ status: 'succeeded', attempts: 1 });
    await expect(retryDelivery(outbox.db, failed.id)).rejects.toMatchObject({ code: 'delivery_succeeded', status: 409 });
    await retryDelivery(outbox.db, failed.id, { force: true });
    await deliverDue(outbox.db);
    expect(outbox.receiver.of(`/${mine}`)).toHaveLength(3);
    expect(await attemptsOf(outbox.db, failed.id)).toHaveLength(3);
    await expect(retryDelivery(outbox.db, crypto.randomUUID())).rejects.toMatchObject({ code: 'delivery_not_found' });
  });

  test('a late worker changes nothing and is counted', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    outbox.receiver.answer(`/${mine}`, (_request, response) => {
      void outbox.db
        .query(`update webhook_deliveries set claim_token = 'newer' where endpoint_id = $1`, [target.id])
        .then(() => response.writeHead(200).end());
    });
    await publish('order.paid', { owner: mine });
    expect(await deliverDue(outbox.db)).toMatchObject({ succeeded: 0, lost_claims: 1 });
    const delivery = await only(target.id);
    expect(delivery).toMatchObject({ status: 'pending', attempts: 0, claim_token: 'newer' });
    expect(await attemptsOf(outbox.db, delivery.id)).toEqual([]);
    await outbox.db.query('delete from webhook_deliveries where id = $1', [delivery.id]);
  });

  test('what a late worker was answered is no reason to disable the endpoint, and does not count against it', async () => {
    for (const status of [410, 500]) {
      const mine = owner();
      const target = await endpoint({ owner: mine });
      outbox.receiver.answer(`/${mine}`, (_request, response) => {
        void outbox.db
          .query(`update webhook_deliveries set claim_token = 'newer' where endpoint_id = $1`, [target.id])
          .then(() => response.writeHead(status).end());
      });
      await publish('order.paid', { owner: mine });
      expect(await deliverDue(outbox.db)).toMatchObject({ lost_claims: 1, disabled_endpoints: 0 });
      expect(await findEndpoint(outbox.db, target.id)).toMatchObject({ is_active: true, failing_since: null, consecutive_failures: 0 });
      await deleteEndpoint(outbox.db, target.id);
    }
  });

  test('an endpoint or event deleted mid-flight ends quietly and counts as no lost claim', async () => {
    for (const remove of ['endpoint', 'event'] as const) {
      const mine = owner();
      const target = await endpoint({ owner: mine });
      const id = await publish('order.paid', { owner: mine });
      outbox.receiver.answer(`/${mine}`, (_request, response) => {
        const removed =
          remove === 'endpoint' ? deleteEndpoint(outbox.db, target.id) : outbox.db.query('delete from webhook_events where id = $1', [id]);
        void removed.then(() => response.writeHead(500).end());
      });
      expect(await deliverDue(outbox.db)).toMatchObject({ succeeded: 0, failed: 0, retrying: 0, lost_claims: 0 });
      expect(await deliveries({ endpoint: target.id })).toEqual([]);
    }
  });

  test('every attempt leaves a row: when, how long, what came back and who sent it', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    outbox.receiver.answer(`/${mine}`, (_request, response) => response.writeHead(503).end(`${'ä'.repeat(3000)}\0`));
    await publish('order.paid', { owner: mine });
    await deliverDue(outbox.db, { name: 'worker-7' });
    const delivery = await only(target.id);
    const [attempt, ...rest] = await attemptsOf(outbox.db, delivery.id);
    expect(rest).toEqual([]);
    expect(attempt).toMatchObject({
      started_at: clock.now(),
      status_code: 503,
      failure_reason: 'http_status',
      error: 'The receiver returned 503.',
      worker: 'worker-7',
    });
    expect(Buffer.byteLength(attempt?.response_excerpt ?? '')).toBe(4096);
    expect(attempt?.duration_ms).toBeGreaterThanOrEqual(0);
    await outbox.db.query('delete from webhook_deliveries where id = $1', [delivery.id]);
    expect(await attemptsOf(outbox.db, delivery.id)).toEqual([]);
  });

  test('Retry-After is a floor for the next attempt, never a reason to come sooner', async () => {
    for (const [header, seconds] of [
      ['120', 120],
      ['1', 5],
      ['999999', 86_400],
    ] as const) {
      const mine = owner();
      const target = await endpoint({ owner: mine });
      outbox.receiver.answer(`/${mine}`, (_request, response) => response.writeHead(503, { 'retry-after': header }).end());
      await publish('order.paid', { owner: mine });
      await deliverDue(outbox.db);
      const delivery = await only(target.id);
      expect(delivery.next_attempt_at).toEqual(new Date(clock.now().getTime() + seconds * 1000));
      await deleteEndpoint(outbox.db, target.id);
    }
  });

  test('an endpoint’s own schedule is used', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine, schedule: [7] });
    outbox.receiver.answer(`/${mine}`, 500);
    await publish('order.paid', { owner: mine });
    await deliverDue(outbox.db);
    expect((await only(target.id)).next_attempt_at).toEqual(new Date(clock.now().getTime() + 7000));
    clock.advance(7000);
    await deliverDue(outbox.db);
    expect(await only(target.id)).toMatchObject({ status: 'failed', attempts: 2 });
  });

  test('active → disabled by 410 at once: pending work fails and the owner’s other endpoints are told', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine, path: `/${mine}-gone` });
    await endpoint({ owner: mine, path: `/${mine}-watch`, events: ['webhook.endpoint.*'] });
    const stranger = owner();
    await endpoint({ owner: stranger, path: `/${stranger}`, events: ['*'] });
    outbox.receiver.answer(`/${mine}-gone`, 410);
    await publish('order.paid', { owner: mine });
    await publish('order.waiting', { owner: mine });
    expect(await deliverDue(outbox.db, { limit: 1 })).toMatchObject({ disabled_endpoints: 1, failed: 1 });
    expect((await deliveries({ endpoint: target.id })).map(({ status, failure_reason }) => [status, failure_reason])).toEqual([
      ['failed', 'endpoint_disabled'],
      ['failed', 'endpoint_disabled'],
    ]);
    await deliverDue(outbox.db);
    expect(await findEndpoint(outbox.db, target.id)).toMatchObject({
      is_active: false,
      disabled_reason: 'gone',
      disabled_at: clock.now(),
    });
    const [told] = outbox.receiver.of(`/${mine}-watch`);
    expect(JSON.parse(told?.body ?? '{}')).toMatchObject({
      type: 'webhook.endpoint.disabled',
      data: { endpoint_id: target.id, reason: 'gone' },
    });
    expect(outbox.receiver.of(`/${stranger}`)).toEqual([]);
  });

  test('that a tenant’s endpoint was disabled is told to the owner’s endpoints in that tenant and to no others', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine, tenantKey: `t-${mine}`, path: `/${mine}-gone` });
    const watching = await endpoint({ owner: mine, tenantKey: `t-${mine}`, path: `/${mine}-tenant` });
    const others = [
      await endpoint({ owner: mine, path: `/${mine}-personal` }),
      await endpoint({ owner: mine, tenantKey: `other-${mine}`, path: `/${mine}-other` }),
      await endpoint({ owner: owner(), tenantKey: `t-${mine}`, path: `/${mine}-colleague` }),
    ];
    await outbox.db.transaction((tx) => disableEndpoint(tx, target.id, 'manual'));
    expect((await deliveries({ endpoint: watching.id })).map(({ event_type }) => event_type)).toEqual(['webhook.endpoint.disabled']);
    for (const other of [target, ...others]) expect(await deliveries({ endpoint: other.id })).toEqual([]);
  });

  test('active → disabled after five days of continuous failure, and → active again with a clean slate', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine, schedule: [DAY / 1000, DAY / 1000, DAY / 1000, DAY / 1000, DAY / 1000, DAY / 1000] });
    outbox.receiver.answer(`/${mine}`, 500);
    await publish('order.paid', { owner: mine });
    const since = clock.now();
    for (let day = 0; day < 5; day++) {
      await deliverDue(outbox.db);
      expect(await findEndpoint(outbox.db, target.id)).toMatchObject({
        is_active: true,
        failing_since: since,
        consecutive_failures: day + 1,
      });
      clock.advance(DAY);
    }
    await publish('order.waiting', { owner: mine });
    await deliverDue(outbox.db, { limit: 1 });
    expect(await findEndpoint(outbox.db, target.id)).toMatchObject({ is_active: false, disabled_reason: 'continuous_failure' });
    expect((await deliveries({ endpoint: target.id })).map(({ status, failure_reason }) => [status, failure_reason])).toEqual([
      ['failed', 'endpoint_disabled'],
      ['failed', 'endpoint_disabled'],
    ]);
    await outbox.db.transaction((tx) => enableEndpoint(tx, target.id));
    expect(await findEndpoint(outbox.db, target.id)).toMatchObject({
      is_active: true,
      disabled_reason: null,
      disabled_at: null,
      failing_since: null,
      consecutive_failures: 0,
    });
  });

  test('one success in between starts the count of continuous failure again', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    outbox.receiver.answer(`/${mine}`, 500);
    await publish('order.paid', { owner: mine });
    await deliverDue(outbox.db);
    clock.advance(6 * DAY);
    outbox.receiver.answer(`/${mine}`, 200);
    await deliverDue(outbox.db);
    expect(await findEndpoint(outbox.db, target.id)).toMatchObject({ is_active: true, failing_since: null, consecutive_failures: 0 });
  });

  test('a failure beside the success that ends five days of failure disables nothing, and is retried', async () => {
    for (const order of ['failure first', 'success first'] as const) {
      const mine = owner();
      const target = await endpoint({ owner: mine });
      await changeEndpoint(outbox.db, target.id, { failing_since: new Date(clock.now().getTime() - 6 * DAY) }, clock.now());
      const waiting = new Map<string, () => void>();
      outbox.receiver.answer(`/${mine}`, ({ body }, response) => {
        const status = body.includes('order.paid') ? 200 : 500;
        waiting.set(status === 200 ? 'success first' : 'failure first', () => response.writeHead(status).end());
        if (waiting.size < 2) return;
        const [first, second] = order === 'failure first' ? ['failure first', 'success first'] : ['success first', 'failure first'];
        waiting.get(first ?? '')?.();
        setImmediate(() => waiting.get(second ?? '')?.());
      });
      await publish('order.paid', { owner: mine });
      await publish('order.refunded', { owner: mine });
      expect(await deliverDue(outbox.db)).toMatchObject({ succeeded: 1, retrying: 1, failed: 0, disabled_endpoints: 0 });
      expect((await deliveries({ endpoint: target.id })).map(({ status, failure_reason }) => [status, failure_reason])).toEqual([
        ['succeeded', null],
        ['pending', 'http_status'],
      ]);
      expect(await findEndpoint(outbox.db, target.id)).toMatchObject({ is_active: true });
      await deleteEndpoint(outbox.db, target.id);
    }
  });

  test('a success clears a failure that came after both were claimed', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    let answerLater = (): void => undefined;
    outbox.receiver.answer(`/${mine}`, ({ body }, response) => {
      if (body.includes('order.refunded')) response.writeHead(500).end();
      else answerLater = () => response.writeHead(200).end();
    });
    await publish('order.paid', { owner: mine });
    await publish('order.refunded', { owner: mine });
    const delivered = deliverDue(outbox.db);
    await vi.waitFor(async () => expect(await findEndpoint(outbox.db, target.id)).toMatchObject({ consecutive_failures: 1 }));
    answerLater();
    expect(await delivered).toMatchObject({ succeeded: 1, retrying: 1 });
    expect(await findEndpoint(outbox.db, target.id)).toMatchObject({ failing_since: null, consecutive_failures: 0 });
    await deleteEndpoint(outbox.db, target.id);
  });

  test('results of two workers in either order: a success forgets the failures before it and none after it', async () => {
    const target = await endpoint({ owner: owner() });
    const at = (seconds: number) => new Date(clock.now().getTime() + seconds * 1000);
    const failed = (seconds: number) => ({ id: target.id, succeeded_at: null, failures: 1, failing_since: at(seconds) });
    const succeeded = (seconds: number) => ({ id: target.id, succeeded_at: at(seconds), failures: 0, failing_since: null });
    await changeHealth(outbox.db, [failed(2)]);
    await changeHealth(outbox.db, [succeeded(1)]);
    expect(await findEndpoint(outbox.db, target.id)).toMatchObject({ failing_since: at(2), consecutive_failures: 1 });
    await changeHealth(outbox.db, [succeeded(3)]);
    expect(await findEndpoint(outbox.db, target.id)).toMatchObject({ failing_since: null, consecutive_failures: 0 });
  });

  test('an endpoint with a success that was written before an older failure is not disabled; failure counts from then', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    await publish('order.paid', { owner: mine });
    await deliverDue(outbox.db);
    const failingSince = new Date(clock.now().getTime() - 1000);
    await changeHealth(outbox.db, [{ id: target.id, succeeded_at: null, failures: 1, failing_since: failingSince }]);
    clock.advance(5 * DAY);
    outbox.receiver.answer(`/${mine}`, 500);
    await publish('order.refunded', { owner: mine });
    expect(await deliverDue(outbox.db)).toMatchObject({ retrying: 1, failed: 0, disabled_endpoints: 0 });
    expect(await findEndpoint(outbox.db, target.id)).toMatchObject({
      is_active: true,
      failing_since: clock.now(),
      consecutive_failures: 1,
    });
    clock.advance(5 * DAY);
    expect(await deliverDue(outbox.db)).toMatchObject({ failed: 1, disabled_endpoints: 1 });
  });

  test('410 of an address that was replaced while the request was under way disables nothing', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine, path: `/${mine}-old` });
    outbox.receiver.answer(`/${mine}-old`, (_request, response) => {
      void changeEndpoint(outbox.db, target.id, { url: outbox.receiver.url(`/${mine}`) }, clock.now()).then(() =>
        response.writeHead(410).end(),
      );
    });
    await publish('order.paid', { owner: mine });
    expect(await deliverDue(outbox.db)).toMatchObject({ retrying: 1, disabled_endpoints: 0 });
    expect(await findEndpoint(outbox.db, target.id)).toMatchObject({ is_active: true });
    clock.advance(5000);
    await deliverDue(outbox.db);
    expect(await only(target.id)).toMatchObject({ status: 'succeeded', attempts: 2 });
  });

  test('a rotated endpoint signs with both secrets during the overlap and with the new one after it', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    const old = signingSecret(outbox.db, target);
    const rotated = await outbox.db.transaction((tx) => rotateSecret(tx, target.id));
    const send = async () => {
      await publish('order.paid', { owner: mine });
      await deliverDue(outbox.db);
      const request = outbox.receiver.of(`/${mine}`).at(-1);
      return (secret: string) => verifySignature(secret, request?.headers ?? {}, request?.body ?? '', { now: clock.now() });
    };
    const during = await send();
    during(old);
    during(rotated?.secret ?? '');
    clock.advance(DAY);
    const after = await send();
    expect(() => after(old)).toThrow(InvalidSignature);
    after(rotated?.secret ?? '');
  });

  test('an endpoint with an ed25519 key signs v1a', async () => {
    const mine = owner();
    const { privateKey, publicKey } = generateKeyPair();
    await endpoint({ owner: mine, secret: privateKey });
    await publish('order.paid', { owner: mine });
    await deliverDue(outbox.db);
    const [request] = outbox.receiver.of(`/${mine}`);
    expect(request?.headers['webhook-signature']).toMatch(/^v1a,/);
    verifySignature(publicKey, request?.headers ?? {}, request?.body ?? '', { now: clock.now() });
  });

  test('custom headers are sent with every request, and cannot stand in for ours', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine, headers: { Authorization: 'Bearer of-the-receiver', 'x-route': 'eu' } });
    await publish('order.paid', { owner: mine });
    await deliverDue(outbox.db);
    const [request] = outbox.receiver.of(`/${mine}`);
    expect(request?.headers).toMatchObject({
      authorization: 'Bearer of-the-receiver',
      'x-route': 'eu',
      'content-type': 'application/json',
    });
    verifySignature(signingSecret(outbox.db, target), request?.headers ?? {}, request?.body ?? '', { now: clock.now() });
    await outbox.db.query('update webhook_endpoints set headers = $2 where id = $1', [
      target.id,
      JSON.stringify({ 'webhook-id': 'forged', 'user-agent': 'forged' }),
    ]);
    await publish('order.paid', { owner: mine });
    await deliverDue(outbox.db);
    expect(JSON.stringify(outbox.receiver.of(`/${mine}`).at(-1)?.headers)).not.toContain('forged');
  });

  test('a secret that cannot be read fails that delivery, and the others go on', async () => {
    const [mine, healthy] = [owner(), owner()];
    const target = await endpoint({ owner: mine });
    const other = await endpoint({ owner: healthy });
    await changeEndpoint(outbox.db, target.id, { secret: 'fernet:gAAAAABnot-a-token' }, clock.now());
    await publish('order.paid', { owner: mine });
    await publish('order.paid', { owner: healthy });
    await deliverDue(outbox.db);
    expect(await only(target.id)).toMatchObject({ status: 'failed', failure_reason: 'secret_unavailable', attempts: 0 });
    expect(await only(other.id)).toMatchObject({ status: 'succeeded' });
    expect(await findEndpoint(outbox.db, target.id)).toMatchObject({ failing_since: null, is_active: true });
  });

  test('rotating a secret that cannot be read mends the endpoint at once, not after the overlap', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    await changeEndpoint(outbox.db, target.id, { secret: 'fernet:gAAAAABnot-a-token' }, clock.now());
    const rotated = await outbox.db.transaction((tx) => rotateSecret(tx, target.id));
    await publish('order.paid', { owner: mine });
    await deliverDue(outbox.db);
    expect(await only(target.id)).toMatchObject({ status: 'succeeded' });
    const [request] = outbox.receiver.of(`/${mine}`);
    verifySignature(rotated?.secret ?? '', request?.headers ?? {}, request?.body ?? '', { now: clock.now() });
  });
});

describeOutbox(
  'delivery to a receiver that never answers',
  (outbox) => {
    test('is a recorded attempt that ends at the deadline and is retried', async () => {
      const mine = outbox.owner();
      const target = await outbox.endpoint({ owner: mine });
      outbox.receiver.answer(`/${mine}`, () => undefined);
      await outbox.publish('order.paid', { owner: mine });
      expect(await deliverDue(outbox.db)).toMatchObject({ retrying: 1 });
      expect(await outbox.deliveries({ endpoint: target.id })).toMatchObject([
        { status: 'pending', attempts: 1, failure_reason: 'timeout', last_status_code: null },
      ]);
    });
  },
  { timeoutMs: 200 },
);
