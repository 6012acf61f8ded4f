import { expect, test } from 'vitest';
import { describeOutbox } from '../../../test/webhooks/outbox.ts';
import type { Db } from '../../db/db.ts';
import { claimByEndpoint } from './claim-store.ts';
import { publish } from './publish.ts';

describeOutbox('claiming from endpoint to endpoint', (outbox) => {
  test('does not read the backlog of an endpoint that is full, however long it is', async (context) => {
    const { db, owner, endpoint, clock } = outbox;
    context.skip(db.dialect !== 'postgres', 'the rows that PostgreSQL reads');
    const [slow, quick] = [owner(), owner()];
    const { id: full } = await endpoint({ owner: slow });
    for (let n = 0; n < 20; n++) await endpoint({ owner: quick, path: `/${quick}/${n}` });
    await db.transaction(async (tx) => {
      for (let n = 0; n < 3000; n++) await publish(tx, 'order.paid', { n }, { owner: slow });
      for (let n = 0; n < 100; n++) await publish(tx, 'order.paid', { n }, { owner: quick });
    });
    // With statistics: without them PostgreSQL would choose the right index by luck.
    await db.query('analyze webhook_deliveries');
    const now = clock.now();
    const limits = { now, until: new Date(now.getTime() + 60_000), free: 50, perEndpoint: 10, busy: new Map([[full, 10]]) };
    await db.transaction(async (tx) => {
      const before = await rowsRead(tx);
      const { claims } = await claimByEndpoint(tx, limits, null);
      expect((await rowsRead(tx)) - before).toBeLessThan(1000);
      expect(claims).toHaveLength(50);
      expect(claims.filter(({ endpoint: { id } }) => id === full)).toEqual([]);
    });
  });
});

/** Deliveries that this connection has read and not reported yet. */
async function rowsRead(tx: Db): Promise<number> {
  const [counted] = await tx.query<{ rows: number }>(
    `select (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::integer as rows from pg_stat_xact_user_tables
     where relname = 'webhook_deliveries'`,
  );
  return counted?.rows ?? 0;
}
