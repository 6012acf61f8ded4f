import { expect, test } from 'vitest';
import { untilSomebodyWaits } from '../../../test/admin/lock-wait.ts';
import { describeHookApp } from '../../../test/webhooks/hook-app.ts';
import type { Db } from '../../db/index.ts';
import { disableEndpoint } from './endpoints/disable.ts';
import { deleteEndpoint, lockEndpoint } from './endpoints/store.ts';
import { publish } from './publishing/publish.ts';

// An endpoint is locked before its deliveries: see delivery-references.db.test.ts for what writes new ones.
describeHookApp('changes of an endpoint and retries of its deliveries', {}, (app) => {
  const { call, create, person } = app;

  async function failedDelivery() {
    const user = await person();
    const { body: endpoint } = await create(user);
    await app.db.transaction((tx) => publish(tx, 'order.paid', {}, { owner: user.id }));
    const [delivery] = await app.db.query<{ id: string }>(
      `update webhook_deliveries set status = 'failed', next_attempt_at = null where endpoint_id = $1 returning id`,
      [endpoint.id],
    );
    const path = `/hooks/${endpoint.id}/deliveries/${delivery?.id}/retry`;
    return { id: endpoint.id as string, retry: () => call(user, 'POST', path) };
  }

  /** The endpoint is locked, a retry waits for it, and then the change reaches the deliveries. PostgreSQL would end one of two that wait for each other. */
  async function duringRetry(change: (tx: Db, id: string) => Promise<unknown>) {
    const { id, retry } = await failedDelivery();
    return app.db.transaction(async (tx) => {
      if (tx.dialect === 'postgres') await tx.query(`set local deadlock_timeout = '10ms'`);
      await lockEndpoint(tx, id);
      const retried = retry();
      await untilSomebodyWaits(tx);
      await change(tx, id);
      return { retried };
    });
  }

  test('disabling and a retry do not wait for each other: the retry sees the disabled endpoint', async () => {
    const { retried } = await duringRetry(async (tx, id) => {
      // Its deliveries fail, and the delivery that is to be retried is among them.
      await tx.query(`update webhook_deliveries set status = 'pending' where endpoint_id = $1`, [id]);
      expect(await disableEndpoint(tx, id, 'manual')).toBe(true);
    });
    expect(await retried).toMatchObject({ status: 409, body: { code: 'endpoint_disabled' } });
  });

  test('deleting and a retry do not wait for each other: the retry finds nothing', async () => {
    const { retried } = await duringRetry((tx, id) => deleteEndpoint(tx, id));
    expect((await retried).status).toBeGreaterThanOrEqual(404);
  });
});
