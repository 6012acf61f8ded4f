import { expect, test, vi } from 'vitest';
import { describeOutbox } from '../../../../test/webhooks/outbox.ts';
import { deliverDue } from '../delivery/deliver.ts';
import { disableEndpoint } from '../endpoints/disable.ts';
import { rotateSecret, signingSecret } from '../endpoints/endpoint-secret.ts';
import { generateFernetKey } from '../../../db/sealing/fernet.ts';
import { prune, retentionOf } from '../delivery/prune.ts';
import { encryptSecrets, replay } from './maintain.ts';
import { readBacklog } from '../admin/overview-store.ts';
import { pruneEvents, readStats, setAudience } from '../delivery/maintenance-store.ts';
import { prometheusText } from './prometheus.ts';
import { retryDelivery } from './retry.ts';
import { findEndpoint, findEvent } from '../endpoints/store.ts';
import { unbindWebhooks, useWebhooks } from '../webhooks.ts';

const DAY = 86_400_000;
const silent = () => ({ advance: () => undefined, end: () => undefined });

describeOutbox('maintenance', (outbox) => {
  const { owner, endpoint, publish, deliveries, clock } = outbox;

  test('stats count every state, the age of the oldest pending delivery and events without an audience', async () => {
    const before = await readStats(outbox.db, clock.now());
    expect(before).toMatchObject({ pending: 0, oldest_pending_age_seconds: null });
    const [good, bad, late] = [owner(), owner(), owner()];
    await endpoint({ owner: good });
    await endpoint({ owner: bad });
    outbox.receiver.answer(`/${bad}`, 500);
    await publish('order.paid', { owner: good });
    await publish('order.paid', { owner: bad });
    await deliverDue(outbox.db);
    clock.advance(2500);
    const off = await endpoint({ owner: late });
    const held = await publish('order.paid', { owner: good });
    await outbox.db.query('update webhook_deliveries set claim_token = $2, claimed_until = $3 where event_id = $1', [
      held,
      'x',
      clock.now(),
    ]);
    await outbox.db.transaction((tx) => disableEndpoint(tx, off.id, 'manual'));
    const legacy = await publish('order.paid', { owner: 'nobody' });
    await outbox.db.query(`update webhook_events set audience = null where id = $1`, [legacy]);
    const stats = await readStats(outbox.db, clock.now());
    expect(stats).toEqual({
      pending: 2,
      retrying: 1,
      succeeded: 1,
      failed: 0,
      claimed: 0,
      expired_claims: 1,
      endpoints: 3,
      disabled_endpoints: 1,
      events_without_audience: 1,
      events_without_endpoint: 0,
      lost_claims: 0,
      oldest_pending_age_seconds: 2.5,
    });
    const text = prometheusText(stats, 'default');
    expect(text).toContain('# TYPE kit_webhooks_retrying gauge\nkit_webhooks_retrying{database="default"} 1');
    expect(prometheusText({ ...stats, oldest_pending_age_seconds: null }, 'default')).not.toContain('oldest');
    clock.advance(DAY);
    await deliverDue(outbox.db);
  });

  test('prune removes the oldest finished events up to its limit; work that is left stays and does not starve it', async () => {
    await prune(outbox.db, clock.now(), 1000);
    const mine = owner();
    await endpoint({ owner: mine });
    const waiting: string[] = [];
    for (let index = 0; index < 3; index++) waiting.push(await publish('order.paid', { owner: mine }));
    await outbox.db.query(
      `update webhook_deliveries set next_attempt_at = $1, claim_token = 'dead', claimed_until = $2 where event_id = $3`,
      [clock.now(), clock.now(), waiting[0]],
    );
    await outbox.db.query('update webhook_deliveries set next_attempt_at = $1 where event_id <> $2', [
      new Date(clock.now().getTime() + 90 * DAY),
      waiting[0],
    ]);
    const legacy = await publish('order.paid', { owner: 'nobody' });
    await outbox.db.query('update webhook_events set audience = null where id = $1', [legacy]);
    const finished: string[] = [];
    for (let index = 0; index < 3; index++) finished.push(await publish('order.paid', { owner: mine }));
    await outbox.db.query(
      `update webhook_deliveries set status = 'succeeded', next_attempt_at = null where event_id in ($1, $2, $3)`,
      finished,
    );
    clock.advance(30 * DAY);
    const young = await publish('order.paid', { owner: mine });
    const before = new Date(clock.now().getTime() - 10 * DAY);
    expect(await prune(outbox.db, before, 2)).toBe(2);
    expect(await findEvent(outbox.db, finished[0] ?? '')).toBeNull();
    expect(await findEvent(outbox.db, finished[2] ?? '')).not.toBeNull();
    expect(await prune(outbox.db, before, 100)).toBe(1);
    expect(await deliveries({ event: finished[2] ?? '' })).toEqual([]);
    for (const id of [...waiting, legacy, young]) expect(await findEvent(outbox.db, id)).not.toBeNull();
    expect(await prune(outbox.db, before, 100)).toBe(0);
  });

  test('a worker with retentionDays removes what is older, and nothing else', async () => {
    const mine = owner();
    await endpoint({ owner: mine });
    const old = await publish('order.paid', { owner: mine });
    await deliverDue(outbox.db);
    clock.advance(31 * DAY);
    const young = await publish('order.paid', { owner: mine });
    await deliverDue(outbox.db);
    expect(retentionOf(outbox.webhooks)).toBeNull();
    const settings = { ...outbox.webhooks.settings, retentionDays: 30 };
    const retention = retentionOf({ ...outbox.webhooks, settings }, { firstMs: 1 });
    retention?.start();
    await vi.waitFor(async () => expect(await findEvent(outbox.db, old)).toBeNull());
    await retention?.stop();
    expect(await deliveries({ event: old })).toEqual([]);
    expect(await deliveries({ event: young })).toMatchObject([{ status: 'succeeded' }]);
  });

  test('a retry at the same time as prune either keeps its event or finds the delivery gone, never half of it', async () => {
    for (let round = 0; round < 8; round++) {
      const mine = owner();
      const target = await endpoint({ owner: mine });
      const id = await publish('order.paid', { owner: mine });
      await deliverDue(outbox.db);
      const [delivery] = await deliveries({ endpoint: target.id });
      clock.advance(1);
      const [, retried] = await Promise.all([
        outbox.db.transaction((tx) => pruneEvents(tx, clock.now(), 1000)),
        outbox.db
          .transaction((tx) => retryDelivery(tx, delivery?.id ?? '', { force: true }))
          .then(
            () => true,
            () => false,
          ),
      ]);
      const rows = await deliveries({ endpoint: target.id });
      expect([(await findEvent(outbox.db, id)) !== null, rows.map(({ status }) => status)]).toEqual(
        retried ? [true, ['pending']] : [false, []],
      );
    }
    await deliverDue(outbox.db);
  });

  test('prune waits for a retry that has begun, and keeps its event', async (context) => {
    context.skip(outbox.db.dialect !== 'postgres', 'SQLite has one writer at a time');
    const mine = owner();
    const target = await endpoint({ owner: mine });
    const id = await publish('order.paid', { owner: mine });
    await deliverDue(outbox.db);
    const [delivery] = await deliveries({ endpoint: target.id });
    clock.advance(1);
    let pruned: Promise<unknown> | undefined;
    await outbox.db.transaction(async (tx) => {
      await retryDelivery(tx, delivery?.id ?? '', { force: true });
      pruned = outbox.db.transaction((other) => pruneEvents(other, clock.now(), 1000));
      await vi.waitFor(async () => {
        const [waiting] = await outbox.db.query<{ count: number }>(
          `select count(*) as count from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
        );
        expect(waiting?.count).toBe(1);
      });
    });
    await pruned;
    expect(await findEvent(outbox.db, id)).not.toBeNull();
    expect(await deliveries({ endpoint: target.id })).toMatchObject([{ status: 'pending' }]);
    await deliverDue(outbox.db);
  });

  test('replay sends finished deliveries of the window again, by type and endpoint; a dry run changes nothing', async () => {
    const mine = owner();
    const [one, two] = [await endpoint({ owner: mine }), await endpoint({ owner: mine, path: `/${mine}/two` })];
    await publish('order.paid', { owner: mine });
    clock.advance(1000);
    const since = clock.now();
    await publish('order.paid', { owner: mine });
    await publish('order.refunded', { owner: mine });
    await deliverDue(outbox.db);
    clock.advance(1000);
    const until = clock.now();
    await publish('order.paid', { owner: mine });
    await deliverDue(outbox.db);
    const window = { since, until };
    expect(await replay(outbox.db, { ...window, endpointId: one.id }, { dryRun: true })).toBe(2);
    expect(await replay(outbox.db, { ...window, endpointId: one.id, type: 'order.paid' })).toBe(1);
    expect((await deliveries({ endpoint: one.id })).map(({ status }) => status)).toEqual([
      'succeeded',
      'pending',
      'succeeded',
      'succeeded',
    ]);
    expect(new Set((await deliveries({ endpoint: two.id })).map(({ status }) => status))).toEqual(new Set(['succeeded']));
    await deliverDue(outbox.db);
    expect(outbox.receiver.of(`/${mine}`)).toHaveLength(5);
    await outbox.db.transaction((tx) => disableEndpoint(tx, one.id, 'manual'));
    expect(await replay(outbox.db, { ...window, endpointId: one.id }, { dryRun: true })).toBe(0);
  });

  test('replay of failed deliveries leaves out what succeeded', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    const since = clock.now();
    const [lost] = [await publish('order.paid', { owner: mine }), await publish('order.paid', { owner: mine })];
    await deliverDue(outbox.db);
    await outbox.db.query(`update webhook_deliveries set status = 'failed' where event_id = $1`, [lost]);
    clock.advance(1000);
    const filter = { since, until: clock.now(), endpointId: target.id, failedOnly: true };
    expect(await replay(outbox.db, filter)).toBe(1);
    expect(await deliveries({ event: lost })).toMatchObject([{ status: 'pending', attempts: 0 }]);
    expect(await replay(outbox.db, filter)).toBe(0);
    await deliverDue(outbox.db);
  });

  test('what waits for an audience raises no alarm about pending work', async () => {
    await deliverDue(outbox.db);
    const before = await readStats(outbox.db, clock.now());
    const mine = owner();
    await endpoint({ owner: mine });
    const legacy = await publish('order.paid', { owner: mine });
    await outbox.db.query('update webhook_events set audience = null where id = $1', [legacy]);
    await deliverDue(outbox.db);
    clock.advance(10 * DAY);
    const stats = await readStats(outbox.db, clock.now());
    expect(stats).toMatchObject({ pending: before.pending, events_without_audience: before.events_without_audience + 1 });
    expect((await readBacklog(outbox.db)).pending).toBe(before.pending);
    await outbox.db.query('delete from webhook_events where id = $1', [legacy]);
  });

  test('an event without an audience is sent once it has one, and only to that audience', async () => {
    const [mine, other] = [owner(), owner()];
    const [target, foreign] = [await endpoint({ owner: mine }), await endpoint({ owner: other })];
    const id = await publish('order.paid', { broadcast: true });
    await outbox.db.query('update webhook_events set audience = null where id = $1', [id]);
    await deliverDue(outbox.db);
    expect(outbox.receiver.of(`/${mine}`)).toEqual([]);
    const assign = () => outbox.db.transaction((tx) => setAudience(tx, id, { kind: 'owner', owner: mine }, clock.now()));
    expect(await assign()).toBe(true);
    expect(await assign()).toBe(false);
    await deliverDue(outbox.db);
    expect(outbox.receiver.of(`/${mine}`)).toHaveLength(1);
    expect(outbox.receiver.of(`/${other}`)).toEqual([]);
    const of = async (endpointId: string) => (await deliveries({ endpoint: endpointId })).find(({ event_id }) => event_id === id);
    expect(await of(target.id)).toMatchObject({ status: 'succeeded' });
    expect(await of(foreign.id)).toMatchObject({ status: 'failed', failure_reason: 'audience_changed' });
  });

  test('encrypt-secrets seals plain and old secrets with the first key, is repeatable, and names what it cannot read', async () => {
    const mine = owner();
    const plain = await endpoint({ owner: mine, headers: { 'x-api-key': 'of the receiver' } });
    for (let count = 0; count < 2; count++) await outbox.db.transaction((tx) => rotateSecret(tx, plain.id));
    const raw = signingSecret(outbox.db, (await findEndpoint(outbox.db, plain.id)) ?? plain);
    const [first, second] = [generateFernetKey(), generateFernetKey()];
    const options = { clock, jitter: false };
    const withKeys = async (secretKeys: readonly string[]) => {
      unbindWebhooks(outbox.db);
      useWebhooks(outbox.db, { ...options, urlPolicy: outbox.webhooks.settings.urlPolicy, secretKeys });
      return encryptSecrets(outbox.db, silent);
    };
    const all = await withKeys([first]);
    expect(all.encrypted).toBeGreaterThan(0);
    expect(all).toMatchObject({ unchanged: 0, unavailable: [] });
    const sealed = await findEndpoint(outbox.db, plain.id);
    expect(sealed?.secret).toMatch(/^fernet:/);
    expect(sealed?.headers).toMatch(/^fernet:/);
    expect(sealed?.older_secrets).toMatch(/"secret":"fernet:/);
    expect(sealed?.older_secrets).not.toContain('whsec_');
    expect(await withKeys([first])).toEqual({ encrypted: 0, unchanged: all.encrypted, unavailable: [] });
    expect(await withKeys([second, first])).toEqual({ encrypted: all.encrypted, unchanged: 0, unavailable: [] });
    expect(signingSecret(outbox.db, (await findEndpoint(outbox.db, plain.id)) ?? plain)).toBe(raw);
    expect((await withKeys([first])).unavailable).toContain(plain.id);
    expect(await withKeys([second])).toEqual({ encrypted: 0, unchanged: all.encrypted, unavailable: [] });
  });

  test.each([
    ['delivery', 'delete from webhook_deliveries where event_id = $1'],
    ['event', 'delete from webhook_events where id = $1'],
    ['endpoint', 'delete from webhook_endpoints where id in (select endpoint_id from webhook_deliveries where event_id = $1)'],
  ])('deleting the %s deletes its attempts too, and no others', async (_what, statement) => {
    const owners = [owner(), owner()];
    for (const each of owners) await endpoint({ owner: each });
    const [gone, kept] = [await publish('order.paid', { owner: owners[0] ?? '' }), await publish('order.paid', { owner: owners[1] ?? '' })];
    await deliverDue(outbox.db);
    const attempts = (): Promise<{ event_id: string | null }[]> =>
      outbox.db.query('select d.event_id from webhook_attempts a left join webhook_deliveries d on d.id = a.delivery_id', []);
    const before = await attempts();
    expect(before.map(({ event_id }) => event_id)).toEqual(expect.arrayContaining([gone, kept]));
    await outbox.db.query(statement, [gone]);
    const after = await attempts();
    expect(after).toEqual(before.filter(({ event_id }) => event_id !== gone));
    expect(after).toHaveLength(before.length - 1);
  });
});
