import { expect, test } from 'vitest';
import { describeHookApp } from '../../../../test/webhooks/hook-app.ts';
import { observeQueries, type QueryEvent } from '../../../db/engine/query-observer.ts';
import type { WebhookDelivery } from '../endpoints/store.ts';

describeHookApp('lists of deliveries in large tables', {}, (app) => {
  const { create, call, person } = app;
  const series = (count: number) =>
    app.db.dialect === 'postgres'
      ? `select n from generate_series(1, ${count}) as n`
      : `with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${count}) select n from numbers`;
  const idSql = (prefix: string) =>
    app.db.dialect === 'postgres'
      ? `cast('${prefix}-0000-7000-8000-' || to_char(n, 'FM000000000000') as uuid)`
      : `'${prefix}-0000-7000-8000-' || printf('%012d', n)`;
  const deliver = async (endpoint: string, prefix: string, count: number, failed: number) => {
    const now = app.clock.now();
    await app.db.query(
      `insert into webhook_events (id, type, data, timestamp, audience) select ${idSql(prefix)}, 'order.paid', '{}', $1, 'owner' from (${series(count)}) s`,
      [now],
    );
    await app.db.query(
      `insert into webhook_deliveries (id, event_id, endpoint_id, event_type, status, created_at)
       select ${idSql(prefix)}, ${idSql(prefix)}, $2, 'order.paid', case when n <= ${failed} then 'failed' else 'succeeded' end, $1 from (${series(count)}) s`,
      [now, endpoint],
    );
  };
  /** The plans of what a list reads of deliveries, for any parameters. */
  const plansOf = async (read: () => Promise<unknown>): Promise<string[]> => {
    const events: QueryEvent[] = [];
    await observeQueries((event) => events.push(event), read);
    const explain = app.db.dialect === 'postgres' ? 'explain (generic_plan)' : 'explain query plan';
    const plans: string[] = [];
    for (const { sql, parameterCount } of events)
      if (/from "?webhook_deliveries/.test(sql))
        plans.push(
          JSON.stringify(
            await app.db.query(
              `${explain} ${sql}`,
              app.db.dialect === 'postgres' ? [] : Array.from({ length: parameterCount }, () => null),
            ),
          ),
        );
    return plans;
  };

  test('read and count the few that failed by the index of these, whatever succeeded, or failed elsewhere', async () => {
    const [mine, broken] = [await person(), await person()];
    const { id } = (await create(mine)).body;
    await deliver(id, '01890000', 10_100, 3);
    await deliver((await create(broken)).body.id, '01891111', 3_000, 3_000);
    await app.db.query(app.db.dialect === 'postgres' ? 'analyze webhook_deliveries' : 'analyze');
    const list = (query: string) => call(mine, 'GET', `/hooks/${id}/deliveries${query}`);
    const failed = (await list('?status=failed')).body;
    expect(failed).toMatchObject({ count: 3, next: null });
    expect(failed.items.map(({ status }: WebhookDelivery) => status)).toEqual(['failed', 'failed', 'failed']);
    expect((await list('?limit=2')).body).toMatchObject({ count: null });
    const plansOfFailed = await plansOf(() => list('?status=failed&limit=2'));
    expect(plansOfFailed).toHaveLength(2);
    for (const plan of plansOfFailed) expect(plan).toContain('webhook_deliveries_failed_of_endpoint');
  });
});
