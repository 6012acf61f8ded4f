import { expect, test } from 'vitest';
import { describeOutbox } from '../../../../test/webhooks/outbox.ts';
import type { Db } from '../../../db/engine/db.ts';
import { requeueFailedOf } from './management-store.ts';
import { publish } from '../publishing/publish.ts';

/** The database's plans instead of what was asked for. */
function explaining(db: Db, plans: string[]): Db {
  const explain = db.dialect === 'postgres' ? 'explain' : 'explain query plan';
  const plan = async (text: string, parameters: readonly unknown[]): Promise<never[]> => {
    plans.push(JSON.stringify(await db.query(`${explain} ${text}`, parameters)));
    return [];
  };
  return {
    dialect: db.dialect,
    query: plan,
    execute: async (text: string, parameters: readonly unknown[]) => ({ rows: await plan(text, parameters), count: 0 }),
  } as unknown as Db;
}

describeOutbox('the few deliveries of an endpoint that failed', (outbox) => {
  test('are sent again without reading the many that succeeded, or that failed elsewhere', async () => {
    const { db, owner, endpoint, clock } = outbox;
    const [mine, broken] = [owner(), owner()];
    const { id } = await endpoint({ owner: mine });
    await endpoint({ owner: broken });
    await db.transaction(async (tx) => {
      for (let n = 0; n < 2000; n++) await publish(tx, n < 3 ? 'order.lost' : 'order.paid', { n }, { owner: mine });
      for (let n = 0; n < 1000; n++) await publish(tx, 'order.lost', { n }, { owner: broken });
    });
    await db.query(`update webhook_deliveries set status = case event_type when 'order.lost' then 'failed' else 'succeeded' end`);
    await db.query(db.dialect === 'postgres' ? 'analyze webhook_deliveries' : 'analyze');

    const plans: string[] = [];
    const planned = explaining(db, plans);
    const window = { since: new Date(0), now: clock.now(), limit: 100 };
    await requeueFailedOf(planned, id, window);
    expect(plans).toHaveLength(1);
    for (const plan of plans) expect(plan).toContain('webhook_deliveries_failed_of_endpoint');
    expect(await requeueFailedOf(db, id, window)).toBe(3);
  });
});
