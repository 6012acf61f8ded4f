import { afterEach, expect, test, vi } from 'vitest';
import { isBehindPooler, NOTIFICATIONS_ARE_LOST } from '../../../../../../test/provision/behind-pooler.ts';
import { describeOutbox, LOOPBACK, type Outbox } from '../../../../test/webhooks/outbox.ts';
import { assignAudience } from '../maintain/assign-audience.ts';
import { deliverDue, startWorker } from './deliver.ts';
import { deliverEvent } from './deliver-event.ts';
import { replay } from '../maintain/maintain.ts';
import { pingEndpoint } from '../endpoints/ping.ts';
import { publish } from '../publishing/publish.ts';
import { recoverEndpoint } from '../maintain/recover.ts';
import { updateEndpoint } from '../endpoints/update-endpoint.ts';
import { releaseClaims } from './result-store.ts';
import { retryDelivery } from '../maintain/retry.ts';
import { attemptsOf, findEndpoint, type WebhookDelivery } from '../endpoints/store.ts';
import type { Transport } from '../network/transport.ts';
import { unbindWebhooks, useWebhooks } from '../webhooks.ts';
import type { DeliveryWorker, WorkerOptions } from './worker.ts';

const workers: DeliveryWorker[] = [];
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
});

async function start(outbox: Outbox, options?: WorkerOptions): Promise<DeliveryWorker> {
  const worker = await startWorker(outbox.db, options);
  workers.push(worker);
  return worker;
}

const arrived = (check: () => boolean): Promise<unknown> => vi.waitUntil(check, { timeout: 300_000, interval: 10 });
const publishMany = (outbox: Outbox, owner: string, count: number, options: object = {}): Promise<void> =>
  outbox.db.transaction(async (tx) => {
    for (let n = 0; n < count; n++) await publish(tx, 'order.paid', { n }, { owner, ...options });
  });
const numbers = (outbox: Outbox, path: string): number[] =>
  outbox.receiver.of(path).map(({ body }) => (JSON.parse(body) as { data: { n: number } }).data.n);

describeOutbox(
  'a worker',
  (outbox) => {
    const { owner, endpoint, deliveries, clock } = outbox;

    afterEach(async () => {
      await outbox.db.query('delete from webhook_events');
    });

    test('is woken by a commit and not by a rollback', async () => {
      const mine = owner();
      await endpoint({ owner: mine });
      await start(outbox, { pollIntervalMs: 3_600_000 });
      const rolledBack = outbox.db.transaction(async (tx) => {
        await publish(tx, 'order.dropped', { n: 1 }, { owner: mine });
        throw new Error('no');
      });
      await expect(rolledBack).rejects.toThrow('no');
      await publishMany(outbox, mine, 1);
      await arrived(() => outbox.receiver.of(`/${mine}`).length > 0);
      expect(outbox.receiver.of(`/${mine}`).map(({ body }) => (JSON.parse(body) as { type: string }).type)).toEqual(['order.paid']);
    });

    test('is woken by whatever makes a delivery due: ping, retry, recover, replay, an audience', async (context) => {
      context.skip(outbox.db.dialect === 'postgres' && isBehindPooler(), NOTIFICATIONS_ARE_LOST);
      const mine = owner();
      const target = await endpoint({ owner: mine });
      const worker = await start(outbox, { pollIntervalMs: 3_600_000 });
      const succeeds = async (work: () => Promise<unknown>): Promise<void> => {
        const before = worker.summary.succeeded;
        await work();
        await arrived(() => worker.summary.succeeded > before);
      };
      await succeeds(() => outbox.db.transaction((tx) => pingEndpoint(tx, target)));
      const [{ id, event_id }] = (await deliveries({ endpoint: target.id })) as [WebhookDelivery];
      await succeeds(() => outbox.db.transaction((tx) => retryDelivery(tx, id, { force: true })));
      const since = new Date(clock.now().getTime() - 1000);
      await succeeds(() => replay(outbox.db, { since, until: new Date(clock.now().getTime() + 1000) }));
      await outbox.db.query(`update webhook_deliveries set status = 'failed' where id = $1`, [id]);
      await succeeds(() => outbox.db.transaction((tx) => recoverEndpoint(tx, target, since)));
      await outbox.db.query(`update webhook_events set audience = null where id = $1`, [event_id]);
      await outbox.db.query(`update webhook_deliveries set status = 'pending', next_attempt_at = null where id = $1`, [id]);
      await succeeds(() => outbox.db.transaction((tx) => assignAudience(tx, event_id, { kind: 'owner', owner: mine })));
    });

    test('gives nothing back that is another worker’s by now', async () => {
      const mine = owner();
      const target = await endpoint({ owner: mine });
      await publishMany(outbox, mine, 1);
      const until = new Date(clock.now().getTime() + 60_000);
      await outbox.db.query(`update webhook_deliveries set claim_token = 'newer', claimed_until = $2 where endpoint_id = $1`, [
        target.id,
        until,
      ]);
      const [{ id }] = (await deliveries({ endpoint: target.id })) as [WebhookDelivery];
      for (const park of [false, true]) await releaseClaims(outbox.db, [{ id, token: 'older' }], { park });
      expect(await deliveries({ endpoint: target.id })).toMatchObject([
        { claim_token: 'newer', claimed_until: until, next_attempt_at: clock.now() },
      ]);
    });

    test('finds by itself what nothing announced', async () => {
      const mine = owner();
      await endpoint({ owner: mine });
      await start(outbox, { pollIntervalMs: 20 });
      await outbox.db.transaction(async (tx) => {
        await publish({ dialect: tx.dialect, query: tx.query.bind(tx), clock }, 'order.paid', {}, { owner: mine });
      });
      await arrived(() => outbox.receiver.of(`/${mine}`).length > 0);
    });

    test('deliveries claimed by several workers at once are sent once each', async () => {
      const mine = owner();
      const total = 300;
      const targets = await Promise.all([1, 2, 3].map((n) => endpoint({ owner: mine, path: `/${mine}/${n}` })));
      await publishMany(outbox, mine, total / 3);
      const handles = await Promise.all([1, 2, 3, 4].map(() => outbox.database.open({ clock })));
      try {
        for (const handle of handles) useWebhooks(handle, { urlPolicy: LOOPBACK, concurrency: 20 });
        const summaries = await Promise.all(handles.map((handle) => deliverDue(handle)));
        expect(summaries.reduce((sum, each) => sum + each.succeeded, 0)).toBe(total);
        expect(summaries.every((each) => each.lost_claims === 0 && each.failed === 0)).toBe(true);
      } finally {
        for (const handle of handles) unbindWebhooks(handle);
      }
      const requests = outbox.receiver.received.filter(({ path }) => path.startsWith(`/${mine}/`));
      expect(requests).toHaveLength(total);
      expect(new Set(requests.map(({ path, headers }) => `${path} ${String(headers['webhook-id'])}`)).size).toBe(total);
      for (const target of targets)
        expect((await deliveries({ endpoint: target.id })).every(({ status, attempts }) => status === 'succeeded' && attempts === 1)).toBe(
          true,
        );
    });

    test('keeps at most its share of requests to one endpoint under way', async () => {
      const mine = owner();
      await endpoint({ owner: mine });
      let open = 0;
      let most = 0;
      outbox.receiver.answer(`/${mine}`, (_request, response) => {
        most = Math.max(most, ++open);
        setTimeout(() => {
          open--;
          response.writeHead(200).end();
        }, 30);
      });
      await publishMany(outbox, mine, 40);
      await deliverDue(outbox.db, { concurrency: 20, concurrencyPerEndpoint: 3 });
      expect(most).toBe(3);
      expect(outbox.receiver.of(`/${mine}`)).toHaveLength(40);
    });

    test('an endpoint that hangs with a long queue does not keep others from being served', async () => {
      const [stuck, fine] = [owner(), owner()];
      const hanging: (() => void)[] = [];
      outbox.receiver.answer(`/${stuck}`, (_request, response) => void hanging.push(() => response.writeHead(200).end()));
      await endpoint({ owner: stuck });
      await endpoint({ owner: fine });
      await publishMany(outbox, stuck, 200);
      clock.advance(1);
      await publishMany(outbox, fine, 50);
      const worker = await start(outbox, { concurrency: 20, concurrencyPerEndpoint: 4, pollIntervalMs: 20 });
      await arrived(() => outbox.receiver.of(`/${fine}`).length >= 50);
      expect(numbers(outbox, `/${fine}`).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, n) => n));
      expect(outbox.receiver.of(`/${stuck}`).length).toBeLessThanOrEqual(4);
      outbox.receiver.answer(`/${stuck}`, 200);
      for (const answer of hanging) answer();
      await arrived(() => worker.summary.succeeded >= 250);
    });

    test('the backlog of a slow endpoint goes on while there is always newer work for others', async () => {
      const [slow, fine] = [owner(), owner()];
      outbox.receiver.answer(`/${slow}`, (_request, response) => void setTimeout(() => response.writeHead(200).end(), 20));
      await endpoint({ owner: slow });
      for (let n = 0; n < 40; n++) await endpoint({ owner: fine, path: `/${fine}/${n}` });
      await publishMany(outbox, slow, 200);
      clock.advance(1);
      await publishMany(outbox, fine, 50);
      const reached = (): number => outbox.receiver.of(`/${slow}`).length;
      const worker = await start(outbox, { concurrency: 20, concurrencyPerEndpoint: 4, pollIntervalMs: 20 });
      let reachedBefore = 0;
      await arrived(() => {
        // As of the last look that found work for the others left.
        if (worker.summary.succeeded - reached() < 1900) reachedBefore = reached();
        return worker.summary.succeeded >= 2200;
      });
      // 4 in the first claim; without another look at its backlog there would be no more of them.
      expect(reachedBefore).toBeGreaterThan(12);
    });

    test('many endpoints of one owner that hang do not keep other owners from being served', async () => {
      const [noisy, fine] = [owner(), owner()];
      const hanging: (() => void)[] = [];
      outbox.receiver.answer(`/${noisy}`, (_request, response) => void hanging.push(() => response.writeHead(200).end()));
      for (let n = 0; n < 20; n++) await endpoint({ owner: noisy });
      await endpoint({ owner: fine });
      await publishMany(outbox, noisy, 10);
      clock.advance(1);
      await publishMany(outbox, fine, 40);
      // More requests would hang than there are slots: they leave them.
      const worker = await start(outbox, { concurrency: 20, concurrencyPerEndpoint: 10, pollIntervalMs: 20 });
      await arrived(() => outbox.receiver.of(`/${fine}`).length >= 40);
      expect(hanging.length).toBeGreaterThan(0);
      outbox.receiver.answer(`/${noisy}`, 200);
      for (const answer of hanging) answer();
      await arrived(() => worker.summary.succeeded >= 240);
    });

    test('a worker finds the work of other owners behind any number of unknown endpoints that hang, without waiting for its next poll', async () => {
      const [noisy, fine] = [owner(), owner()];
      const hanging: (() => void)[] = [];
      outbox.receiver.answer(`/${noisy}`, (_request, response) => void hanging.push(() => response.writeHead(200).end()));
      for (let n = 0; n < 30; n++) await endpoint({ owner: noisy });
      await endpoint({ owner: fine });
      await publishMany(outbox, noisy, 1);
      clock.advance(1);
      await publishMany(outbox, fine, 1);
      const worker = await start(outbox, { concurrency: 4, concurrencyPerEndpoint: 2, pollIntervalMs: 600_000 });
      await arrived(() => outbox.receiver.of(`/${fine}`).length === 1);
      outbox.receiver.answer(`/${noisy}`, 200);
      for (const answer of hanging) answer();
      await arrived(() => worker.summary.succeeded >= 31);
    });

    test('an endpoint gets no more requests than its rate limit, from all workers together, and the others theirs', async () => {
      const [limited, free] = [owner(), owner()];
      const target = await endpoint({ owner: limited, rateLimit: '20/min' });
      await endpoint({ owner: free });
      await publishMany(outbox, limited, 30);
      await publishMany(outbox, free, 30);
      const sent = () => outbox.receiver.of(`/${limited}`).length;
      const deliverByTwo = () => Promise.all([deliverDue(outbox.db), deliverDue(outbox.db)]);
      await deliverByTwo();
      expect(sent()).toBe(2);
      expect(outbox.receiver.of(`/${free}`)).toHaveLength(30);
      for (let second = 1; second < 60; second++) {
        clock.advance(1000);
        await deliverByTwo();
      }
      expect(sent()).toBe(20);
      expect((await deliveries({ endpoint: target.id })).filter(({ status }) => status === 'pending')).toHaveLength(10);
      await outbox.db.transaction((tx) => updateEndpoint(tx, target, { rateLimit: null }));
      await deliverDue(outbox.db);
      expect(sent()).toBe(30);
    });

    test('deliveries with one ordering key go strictly in order, also under retries, and other keys do not wait', async () => {
      const mine = owner();
      const target = await endpoint({ owner: mine, schedule: [0, 0, 0, 0, 0] });
      const seen = new Set<string>();
      outbox.receiver.answer(`/${mine}`, ({ body }, response) => {
        const isFirst = !seen.has(body);
        seen.add(body);
        response.writeHead(isFirst && /"n":\d*[02468],/.test(body) ? 500 : 200).end();
      });
      await outbox.db.transaction(async (tx) => {
        for (let n = 0; n < 30; n++) await publish(tx, 'order.paid', { n, key: n % 3 }, { owner: mine, orderingKey: `order-${n % 3}` });
      });
      await deliverDue(outbox.db);
      expect((await deliveries({ endpoint: target.id })).every(({ status }) => status === 'succeeded')).toBe(true);
      const sent = outbox.receiver.of(`/${mine}`).map(({ body }) => (JSON.parse(body) as { data: { n: number; key: number } }).data);
      for (const key of [0, 1, 2]) {
        const order = sent.filter((each) => each.key === key).map(({ n }) => n);
        expect(order).toEqual(order.toSorted((a, b) => a - b));
        expect(new Set(order).size).toBe(10);
      }
      expect(new Set(sent.slice(0, 6).map(({ key }) => key)).size).toBe(3);
    });

    test('what follows a failing delivery with the same ordering key waits until it has failed permanently', async () => {
      const mine = owner();
      const target = await endpoint({ owner: mine, schedule: [60] });
      outbox.receiver.answer(`/${mine}`, (request, response) => response.writeHead(request.body.includes('"n":0') ? 500 : 200).end());
      await publishMany(outbox, mine, 2, { orderingKey: 'order-1' });
      await deliverDue(outbox.db);
      expect(numbers(outbox, `/${mine}`)).toEqual([0]);
      clock.advance(59_999);
      await deliverDue(outbox.db);
      expect(numbers(outbox, `/${mine}`)).toEqual([0]);
      clock.advance(1);
      await deliverDue(outbox.db);
      expect(numbers(outbox, `/${mine}`)).toEqual([0, 0, 1]);
      expect((await deliveries({ endpoint: target.id })).map(({ status }) => status)).toEqual(['failed', 'succeeded']);
    });

    test('many ordering keys are all served, not only the first ones', async () => {
      const mine = owner();
      await endpoint({ owner: mine });
      await outbox.db.transaction(async (tx) => {
        for (let n = 0; n < 450; n++)
          await publish(tx, 'order.paid', { n }, { owner: mine, orderingKey: `key-${String(n).padStart(3, '0')}` });
      });
      const summary = await deliverDue(outbox.db);
      expect(summary.succeeded).toBe(450);
    });

    test('stops after what is under way has ended, and claims nothing more', async () => {
      const mine = owner();
      const target = await endpoint({ owner: mine });
      const answers: (() => void)[] = [];
      outbox.receiver.answer(`/${mine}`, (_request, response) => void answers.push(() => response.writeHead(200).end()));
      await publishMany(outbox, mine, 5);
      const worker = await start(outbox, { concurrency: 2, concurrencyPerEndpoint: 2 });
      await arrived(() => answers.length === 2);
      const stopped = worker.stop();
      const stoppedAgain = worker.stop();
      for (const answer of answers) answer();
      // The second caller waits as long as the first.
      await stoppedAgain;
      const rows = await deliveries({ endpoint: target.id });
      await stopped;
      expect(rows.filter(({ status }) => status === 'succeeded')).toHaveLength(2);
      expect(rows.filter(({ status, claim_token }) => status === 'pending' && claim_token === null)).toHaveLength(3);
    });

    test('gives back what is still under way at the deadline of a stop', async () => {
      const mine = owner();
      const target = await endpoint({ owner: mine });
      const transport: Transport = { send: () => new Promise(() => undefined), close: async () => undefined };
      const handle = await outbox.database.open({ clock });
      useWebhooks(handle, { urlPolicy: LOOPBACK, transport, timeoutMs: 50 });
      try {
        await publishMany(outbox, mine, 1);
        const worker = await startWorker(handle);
        await vi.waitUntil(async () => (await deliveries({ endpoint: target.id }))[0]?.claim_token !== null, { timeout: 300_000 });
        await worker.stop();
        expect(await deliveries({ endpoint: target.id })).toMatchObject([
          { status: 'pending', attempts: 0, claim_token: null, claimed_until: null },
        ]);
      } finally {
        unbindWebhooks(handle);
      }
    });

    test('holds no more than it sends when receivers stop to answer in the middle of a rush', async () => {
      const mine = owner();
      const targets = [await endpoint({ owner: mine }), await endpoint({ owner: mine })];
      let calls = 0;
      const transport: Transport = {
        send: async () => {
          if (++calls > 120) await new Promise(() => undefined);
          await new Promise((resolve) => setImmediate(resolve));
          return { kind: 'response', status: 200, retryAfter: null, bodyExcerpt: '' };
        },
        close: async () => undefined,
      };
      const handle = await outbox.database.open({ clock });
      useWebhooks(handle, { transport, timeoutMs: 50, concurrency: 10 });
      try {
        await publishMany(outbox, mine, 100);
        const worker = await startWorker(handle);
        const rows = async (): Promise<WebhookDelivery[]> =>
          (await Promise.all(targets.map(({ id }) => deliveries({ endpoint: id })))).flat();
        await vi.waitUntil(
          async () => {
            const claimed = (await rows()).filter(({ status, claim_token }) => status === 'pending' && claim_token !== null);
            // Requests that turn out to be slow leave their slots to some more: what is held is what is being sent.
            return calls >= 130 && claimed.length === calls - 120;
          },
          { timeout: 300_000 },
        );
        await worker.stop();
        // Ten slots, and at most five times as many slow requests beside them.
        expect(calls).toBeLessThanOrEqual(120 + 10 + 50);
        expect(worker.summary).toMatchObject({ succeeded: 120, lost_claims: 0 });
        expect((await rows()).filter(({ claim_token }) => claim_token !== null)).toEqual([]);
      } finally {
        unbindWebhooks(handle);
      }
    });

    test('a transport that throws or answers nonsense is a recorded failure and the worker goes on', async () => {
      const outcomes: (() => unknown)[] = [
        () => {
          throw new Error('boom \0');
        },
        () => Promise.reject(new Error('boom')),
        () => ({ kind: 'nonsense' }),
        () => ({ kind: 'failure', reason: 'connection', error: 'x\0\uD800'.repeat(300), detail: null, status: null }),
        () => undefined,
        () => ({ kind: 'failure', reason: 'dns', error: 'no such reason', detail: null, status: null }),
        () => ({ kind: 'failure', reason: 'connection', error: 5, detail: {}, status: 'abc' }),
        () => ({ kind: 'response', status: 1e12, retryAfter: null, bodyExcerpt: '' }),
        () => ({ kind: 'response', status: 200.5, retryAfter: null, bodyExcerpt: '' }),
        () => ({ kind: 'response', status: 200, retryAfter: null, bodyExcerpt: 'fine' }),
      ];
      const mine = owner();
      const target = await endpoint({ owner: mine });
      let call = 0;
      const transport = { send: async () => outcomes[call++]?.(), close: async () => undefined } as unknown as Transport;
      const handle = await outbox.database.open({ clock });
      useWebhooks(handle, { transport, concurrency: 1 });
      try {
        await publishMany(outbox, mine, outcomes.length);
        expect(await deliverDue(handle)).toMatchObject({ retrying: 9, succeeded: 1 });
      } finally {
        unbindWebhooks(handle);
      }
      const reasons = (await deliveries({ endpoint: target.id })).map(({ failure_reason }: WebhookDelivery) => failure_reason);
      expect(reasons.filter((reason) => reason === 'connection')).toHaveLength(9);
    });

    test('each reason of a transport is retried and held against the endpoint, or neither', async () => {
      const rows: readonly [reason: string, status: string, failures: number][] = [
        ['timeout', 'pending', 1],
        ['connection', 'pending', 1],
        ['tls', 'pending', 1],
        ['blocked_address', 'failed', 0],
        ['payload', 'failed', 0],
      ];
      for (const [reason, status, failures] of rows) {
        const mine = owner();
        const target = await endpoint({ owner: mine });
        const answer = { kind: 'failure', reason, error: `because of ${reason}`, detail: null, status: null };
        const transport = { send: async () => answer, close: async () => undefined } as unknown as Transport;
        const handle = await outbox.database.open({ clock });
        useWebhooks(handle, { transport });
        try {
          await publishMany(outbox, mine, 1);
          await deliverDue(handle);
        } finally {
          unbindWebhooks(handle);
        }
        const [delivery] = await deliveries({ endpoint: target.id });
        expect(delivery).toMatchObject({ status, attempts: 1, failure_reason: reason, last_error: `because of ${reason}` });
        expect(await attemptsOf(outbox.db, delivery?.id ?? '')).toMatchObject([{ failure_reason: reason }]);
        expect(await findEndpoint(outbox.db, target.id)).toMatchObject({ is_active: true, consecutive_failures: failures });
        await outbox.db.query('delete from webhook_events');
      }
    });

    test('of what a transport answers only what can be stored is kept, and no more than 4 KiB of the body', async () => {
      const outcomes = [
        { kind: 'response', status: 503, retryAfter: 120, bodyExcerpt: 7 },
        { kind: 'response', status: 503, bodyExcerpt: `a${'é'.repeat(100_000)}` },
      ];
      const mine = owner();
      const target = await endpoint({ owner: mine });
      let call = 0;
      const transport = { send: async () => outcomes[call++], close: async () => undefined } as unknown as Transport;
      const handle = await outbox.database.open({ clock });
      useWebhooks(handle, { transport, concurrency: 1, jitter: false });
      try {
        await publishMany(outbox, mine, outcomes.length);
        expect(await deliverDue(handle)).toMatchObject({ retrying: 2 });
      } finally {
        unbindWebhooks(handle);
      }
      const rows = await deliveries({ endpoint: target.id });
      expect(rows.map(({ next_attempt_at }) => next_attempt_at)).toEqual([1, 2].map(() => new Date(clock.now().getTime() + 5000)));
      const excerpts = await Promise.all(rows.map(async ({ id }) => (await attemptsOf(outbox.db, id))[0]?.response_excerpt));
      expect(new Set(excerpts)).toEqual(new Set(['', `a${'é'.repeat(2047)}`]));
    });

    test('an endpoint that cannot be disabled delays no other, and is disabled as soon as it can be', async () => {
      const [gone, fine] = [owner(), owner()];
      const target = await endpoint({ owner: gone });
      await endpoint({ owner: fine });
      outbox.receiver.answer(`/${gone}`, 410);
      let broken = true;
      const record = async (): Promise<void> => {
        if (broken) throw new Error('the audit log cannot be written');
      };
      const handle = await outbox.database.open({ clock });
      useWebhooks(handle, { urlPolicy: LOOPBACK, registry: { audit: { record } } });
      try {
        await publishMany(outbox, gone, 1);
        await publishMany(outbox, fine, 1);
        expect(await deliverDue(handle)).toMatchObject({ succeeded: 1, retrying: 1, failed: 0, disabled_endpoints: 0 });
        expect(await deliveries({ endpoint: target.id })).toMatchObject([{ status: 'pending', last_status_code: 410 }]);
        broken = false;
        clock.advance(10_000);
        expect(await deliverDue(handle)).toMatchObject({ failed: 1, retrying: 0, disabled_endpoints: 1 });
      } finally {
        unbindWebhooks(handle);
      }
    });

    test('deliverEvent does not overtake an earlier event with the same ordering key', async () => {
      const mine = owner();
      const target = await endpoint({ owner: mine });
      const first = await outbox.publish('order.paid', { owner: mine, orderingKey: 'order-1' });
      const second = await outbox.publish('order.refunded', { owner: mine, orderingKey: 'order-1' });
      const other = await outbox.publish('order.paid', { owner: mine, orderingKey: 'order-2' });
      expect(await deliverEvent(second, outbox.db)).toMatchObject({ succeeded: 0 });
      expect(await deliverEvent(other, outbox.db)).toMatchObject({ succeeded: 1 });
      expect(await deliverEvent(first, outbox.db)).toMatchObject({ succeeded: 1 });
      expect(await deliverEvent(second, outbox.db)).toMatchObject({ succeeded: 1 });
      expect((await deliveries({ endpoint: target.id })).map(({ status }) => status)).toEqual(['succeeded', 'succeeded', 'succeeded']);
    });

    test('deliverEvent sends one event’s deliveries and leaves the others', async () => {
      const mine = owner();
      const target = await endpoint({ owner: mine });
      const id = await outbox.publish('order.paid', { owner: mine });
      await outbox.publish('order.other', { owner: mine });
      expect(await deliverEvent(id, outbox.db)).toMatchObject({ succeeded: 1 });
      expect(await deliverEvent(id, outbox.db)).toMatchObject({ succeeded: 0 });
      expect((await deliveries({ endpoint: target.id })).map(({ status }) => status)).toEqual(['succeeded', 'pending']);
      expect(await deliverEvent(crypto.randomUUID(), outbox.db)).toMatchObject({ succeeded: 0, failed: 0 });
    });
  },
  { timeoutMs: 10_000 },
);
