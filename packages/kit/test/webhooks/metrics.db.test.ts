import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { PrometheusRegistry } from '../../src/contrib/metrics/prometheus-registry.ts';
import { deliverDue } from '../../src/contrib/webhooks/delivery/deliver.ts';
import { createEndpoint } from '../../src/contrib/webhooks/endpoints/create-endpoint.ts';
import { webhooks } from '../../src/contrib/webhooks/index.ts';
import { publish } from '../../src/contrib/webhooks/publishing/publish.ts';
import { metrics } from '../../src/contrib/metrics/index.ts';
import { allowAny } from '../../src/index.ts';
import { describeDatabases, fakeClock, testApp, type TestApp } from '../../src/testing/index.ts';
import { LOOPBACK } from './loopback.ts';
import { startReceiver, type Receiver } from './receiver.ts';

const clock = fakeClock('2026-03-01T12:00:00.000Z');
const now = performance.now.bind(performance);
let aheadMs = 0;

describeDatabases(
  'metrics of webhooks',
  (database) => {
    let app: TestApp;
    let receiver: Receiver;
    beforeAll(async () => {
      receiver = await startReceiver();
      const modules = [
        metrics({ path: '/metrics', permission: allowAny, process: false }),
        webhooks({ urlPolicy: LOOPBACK, jitter: false }),
      ];
      app = await testApp({ database: database.db, clock, modules, mount: {} });
    });
    afterAll(async () => {
      vi.restoreAllMocks();
      await app.close();
      await receiver.close();
    });
    /** A reading of the database is shown for five seconds; they pass. */
    const forgetReadings = () => {
      aheadMs += 6000;
      vi.spyOn(performance, 'now').mockImplementation(() => now() + aheadMs);
    };
    const scrape = () => (app.app.registry.metrics as PrometheusRegistry).text();
    const value = async (series: string) =>
      Number(
        (await scrape())
          .split('\n')
          .find((line) => line.startsWith(`${series} `))
          ?.slice(series.length),
      );
    const at = (labels = '') => `{database="default"${labels}}`;

    test('attempts are counted by outcome and timed, and pending work is shown with its age', async () => {
      const events = ['*'];
      await database.db.transaction((tx) => createEndpoint(tx, { owner: 'ada', url: receiver.url('/good'), events }));
      await database.db.transaction((tx) => createEndpoint(tx, { owner: 'ada', url: receiver.url('/bad'), events }));
      receiver.answer('/bad', 500);
      await database.db.transaction((tx) => publish(tx, 'order.paid', { n: 1 }, { owner: 'ada' }));
      await database.db.transaction((tx) => publish(tx, 'order.paid', { n: 2 }, { owner: 'ada', orderingKey: 'k' }));
      clock.advance(90_000);
      expect(await value(`kit_webhooks_pending${at()}`)).toBe(4);
      expect(await value(`kit_webhooks_oldest_pending_age_seconds${at()}`)).toBe(90);
      expect(await value(`kit_webhooks_oldest_due_age_seconds${at()}`)).toBe(90);
      await deliverDue(database.db);
      expect(await value(`kit_webhooks_attempts_total${at(',outcome="succeeded"')}`)).toBe(2);
      expect(await value(`kit_webhooks_attempts_total${at(',outcome="rejected"')}`)).toBe(2);
      expect(await value(`kit_webhooks_send_duration_seconds_count${at()}`)).toBe(4);
      expect(await value(`kit_webhooks_claim_duration_seconds_count${at()}`)).toBeGreaterThanOrEqual(1);
      expect(await scrape()).not.toContain(receiver.origin);
    });

    test('what waits for its next attempt, or behind such a one, is not due', async () => {
      await database.db.transaction((tx) => publish(tx, 'order.paid', { n: 3 }, { owner: 'ada', orderingKey: 'k' }));
      await deliverDue(database.db);
      forgetReadings();
      // Both deliveries to the endpoint that fails, and the one behind the second.
      expect(await value(`kit_webhooks_pending${at()}`)).toBe(3);
      expect(await value(`kit_webhooks_oldest_pending_age_seconds${at()}`)).toBe(90);
      expect(await value(`kit_webhooks_oldest_due_age_seconds${at()}`)).toBe(0);
    });

    test('a result that comes after another worker has taken the delivery over is a lost claim', async () => {
      await database.db.transaction((tx) => createEndpoint(tx, { owner: 'eve', url: receiver.url('/taken'), events: ['*'] }));
      await database.db.transaction((tx) => publish(tx, 'order.paid', { n: 4 }, { owner: 'eve' }));
      const before = await value(`kit_webhooks_lost_claims_total${at()}`);
      const take = `update webhook_deliveries set claim_token = 'another' where status = 'pending' and claim_token is not null`;
      receiver.answer('/taken', (_request, response) => void database.db.query(take).then(() => response.writeHead(200).end()));
      await deliverDue(database.db);
      expect((await value(`kit_webhooks_lost_claims_total${at()}`)) - (Number.isNaN(before) ? 0 : before)).toBe(1);
    });

    test('endpoints that are disabled are counted', async () => {
      receiver.answer('/gone', 410);
      await database.db.transaction((tx) => createEndpoint(tx, { owner: 'bob', url: receiver.url('/gone'), events: ['*'] }));
      await database.db.transaction((tx) => publish(tx, 'order.paid', { n: 3 }, { owner: 'bob' }));
      await deliverDue(database.db);
      expect(await value(`kit_webhooks_endpoints_disabled_total${at()}`)).toBe(1);
      forgetReadings();
      expect(await value(`kit_webhooks_disabled_endpoints${at()}`)).toBe(1);
      // The one that answers 500 in the first test.
      expect(await value(`kit_webhooks_failing_endpoints${at()}`)).toBe(1);
    });

    test('events of the last hour that no endpoint can receive are counted', async () => {
      const series = `kit_webhooks_recent_events_without_endpoint${at()}`;
      forgetReadings();
      expect(await value(series)).toBe(0);
      await database.db.transaction((tx) => publish(tx, 'order.paid', { n: 4 }, { tenantKey: 'north' }));
      forgetReadings();
      expect(await value(series)).toBe(1);
      clock.advance(2 * 3_600_000);
      forgetReadings();
      expect(await value(series)).toBe(0);
    });

    test('what waits for an audience is neither pending nor old', async () => {
      await database.db.query('delete from webhook_deliveries');
      for (const orderingKey of [undefined, 'k'])
        await database.db.transaction((tx) =>
          publish(tx, 'order.paid', { n: 5 }, { owner: 'eve', ...(orderingKey === undefined ? {} : { orderingKey }) }),
        );
      await database.db.query('update webhook_events set audience = null');
      await deliverDue(database.db);
      clock.advance(90_000);
      forgetReadings();
      expect(await value(`kit_webhooks_pending${at()}`)).toBe(0);
      expect(await value(`kit_webhooks_oldest_pending_age_seconds${at()}`)).toBe(0);
      expect(await value(`kit_webhooks_oldest_due_age_seconds${at()}`)).toBe(0);
    });
  },
  { database: { clock } },
);
