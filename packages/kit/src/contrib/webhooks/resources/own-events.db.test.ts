import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { User } from '../../../auth/index.ts';
import { describeHookApp } from '../../../../test/webhooks/hook-app.ts';
import { observeQueries, type QueryEvent } from '../../../db/engine/query-observer.ts';
import type { PublishOptions } from '../publishing/checked-call.ts';
import { publish } from '../publishing/publish.ts';
import type { WebhookEvent } from '../endpoints/store.ts';

type Listed = Pick<WebhookEvent, 'id' | 'type'> & { readonly sent: string };

describeHookApp('the events of a customer', {}, (app) => {
  const { call, create, person } = app;
  const send = async (type: string, audience: PublishOptions): Promise<string> => {
    const { id } = await app.db.transaction((tx) => publish(tx, type, { secret: 'of the event' }, audience));
    return id;
  };
  const listed = async (user: User, path: string, tenant?: string): Promise<readonly Listed[]> => {
    const { status, body } = await call(user, 'GET', path, undefined, tenant === undefined ? {} : { 'x-tenant': tenant });
    expect(status, `answer ${JSON.stringify(body)}`).toBe(200);
    return body.items;
  };
  const typesOf = (items: readonly Listed[]) => items.map(({ type }) => type);
  const become = (event: string, endpoint: string, status: string) =>
    app.db.query('update webhook_deliveries set status = $1 where event_id = $2 and endpoint_id = $3', [status, event, endpoint]);

  test('are their own: no broadcast, nothing of others, of a tenant or without an audience, and no data', async () => {
    const [me, other] = [await person(), await person()];
    const mine = [await send('order.paid', { owner: me.id }), await send('order.refunded', { owner: me.id })];
    const others = [
      await send('order.paid', { owner: other.id }),
      await send('order.paid', { broadcast: true }),
      await send('order.paid', { tenantKey: 'acme' }),
      await send('order.paid', { tenantKey: 'acme', owner: me.id }),
    ];
    await app.db.query(`insert into webhook_events (id, type, data, timestamp, owner_id) values ($1, 'old', '{}', $2, $3)`, [
      '01890000-0000-7000-8000-000000000001',
      app.clock.now(),
      me.id,
    ]);
    const { body } = await call(me, 'GET', '/hooks/events');
    expect(body).toMatchObject({ count: 2, next: null });
    expect(body.items.map(({ id }: Listed) => id)).toEqual(mine.toReversed());
    expect(Object.keys(body.items[0]).sort()).toEqual(['id', 'sent', 'timestamp', 'type']);
    const read = await call(me, 'GET', `/hooks/events/${mine[0]}`);
    expect(read).toMatchObject({ status: 200, body: { id: mine[0], type: 'order.paid', sent: 'none' } });
    expect(JSON.stringify([body, read.body])).not.toContain('secret');
    for (const id of [...others, '01890000-0000-7000-8000-000000000001'])
      expect(await call(me, 'GET', `/hooks/events/${id}`)).toMatchObject({ status: 404, body: { code: 'event_not_found' } });
    expect(typesOf(await listed(me, '/hooks/events?type=order.refunded'))).toEqual(['order.refunded']);
    expect(await listed(me, '/hooks/events?since=2999-01-01T00:00:00Z')).toEqual([]);
  });

  test('of a tenant: those for it, and those for the caller in it', async () => {
    const [me, other] = [await person(), await person()];
    await send('for.tenant', { tenantKey: 'north' });
    await send('for.me', { tenantKey: 'north', owner: me.id });
    await send('for.other', { tenantKey: 'north', owner: other.id });
    await send('for.south', { tenantKey: 'south' });
    await send('for.me.in.south', { tenantKey: 'south', owner: me.id });
    await send('personal', { owner: me.id });
    await send('broadcast', { broadcast: true });
    expect(typesOf(await listed(me, '/tenant/events', 'north'))).toEqual(['for.me', 'for.tenant']);
    expect(typesOf(await listed(other, '/tenant/events', 'north'))).toEqual(['for.other', 'for.tenant']);
    expect(typesOf(await listed(me, '/tenant/events', 'south'))).toEqual(['for.me.in.south', 'for.south']);
    // The endpoints of the tenant itself get nothing that is for one person in it.
    expect(typesOf(await listed(me, '/owned/events', 'north'))).toEqual(['for.tenant']);
    expect((await call(me, 'GET', '/tenant/events')).body.code).toBe('tenant_required');
  });

  test('say what became of them at the endpoints of the caller, and nothing of the endpoints of others', async () => {
    const [me, other] = [await person(), await person()];
    const of = async (user: User) =>
      (await call(user, 'POST', '/tenant', { url: 'https://hooks.example.com/a', events: ['*'] }, { 'x-tenant': 'west' })).body
        .id as string;
    const before = await send('order.paid', { tenantKey: 'west' });
    const [mine, second, others] = [await of(me), await of(me), await of(other)];
    const after = await send('order.paid', { tenantKey: 'west' });
    const sent = async (user: User) => (await listed(user, '/tenant/events?type=order.paid', 'west')).map((each) => each.sent);
    expect(await sent(me)).toEqual(['pending', 'none']);
    await become(after, others, 'failed');
    expect(await sent(me)).toEqual(['pending', 'none']);
    expect(await sent(other)).toEqual(['failed', 'none']);
    await become(after, mine, 'succeeded');
    expect(await sent(me)).toEqual(['pending', 'none']);
    await become(after, second, 'failed');
    expect(await sent(me)).toEqual(['failed', 'none']);
    await become(after, second, 'succeeded');
    expect(await sent(me)).toEqual(['succeeded', 'none']);
    const deliveries = await call(me, 'GET', `/tenant/${mine}/deliveries?event_id=${after}`, undefined, { 'x-tenant': 'west' });
    expect(deliveries.body).toMatchObject({ count: 1, items: [{ event_id: after }] });
    const none = await call(me, 'GET', `/tenant/${mine}/deliveries?event_id=${before}`, undefined, { 'x-tenant': 'west' });
    expect(none.body.items).toEqual([]);
    // A ping is for one endpoint.
    await create(me);
    expect(typesOf(await listed(me, '/hooks/events'))).toEqual([]);
  });

  test('are found by the index of their tenant or owner, however many others there are', async () => {
    const me = await person();
    await send('mine', { owner: me.id });
    await send('of.ours', { tenantKey: 'ours' });
    const numbers =
      app.db.dialect === 'postgres'
        ? 'select n from generate_series(1, 20000) as n'
        : 'with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 20000) select n from numbers';
    const id = app.db.dialect === 'postgres' ? 'gen_random_uuid()' : `printf('01890000-0000-7000-8000-%012d', n)`;
    const addMany = async (first: string, kind: string, tenant: string, owner: string) =>
      app.db.query(
        `insert into webhook_events (id, type, data, timestamp, audience, tenant_key, owner_id)
         select ${id.replace('01890000', first)}, 'many', '{}', $1, '${kind}', ${tenant}, ${owner} from (${numbers}) s`,
        [app.clock.now()],
      );
    const analyze = async () => app.db.query(app.db.dialect === 'postgres' ? 'analyze webhook_events' : 'analyze');
    await addMany('01891111', 'tenant', "'t' || (n % 50)", "''");
    await addMany('01892222', 'owner', "''", "'u' || (n % 50)");
    await analyze();
    const plansOf = async (read: () => Promise<unknown>): Promise<string[]> => {
      const queries: QueryEvent[] = [];
      await observeQueries((event) => queries.push(event), read);
      const isPostgres = app.db.dialect === 'postgres';
      const plans: string[] = [];
      for (const { sql, parameterCount } of queries.filter((each) => /from "?webhook_events/.test(each.sql)))
        plans.push(
          JSON.stringify(
            await app.db.query(
              // Its own text each time: one that came before is a prepared statement, which wants the values.
              `${isPostgres ? `explain (generic_plan) /* ${plans.length} of ${randomUUID()} */` : 'explain query plan'} ${sql}`,
              isPostgres ? [] : Array.from({ length: parameterCount }, () => null),
            ),
          ),
        );
      return plans;
    };
    for (const [path, tenant, index] of [
      ['/hooks/events?limit=2', undefined, 'webhook_events_of_owner'],
      ['/tenant/events?limit=2', 'ours', 'webhook_events_of_tenant'],
      ['/owned/events?limit=2', 'ours', 'webhook_events_of_tenant'],
    ] as const) {
      const plans = await plansOf(() => listed(me, path, tenant));
      expect(plans.length, `path ${path}`).toBeGreaterThan(0);
      for (const plan of plans) expect(plan, `path ${path}`).toContain(index);
    }
    // Among many events of their own, a type that is rare or absent.
    await addMany('01893333', 'tenant', "'ours'", "''");
    await addMany('01894444', 'owner', "''", `'${me.id}'`);
    await analyze();
    for (const [path, tenant, index] of [
      ['/hooks/events?type=mine', undefined, 'webhook_events_of_owner_by_type'],
      ['/tenant/events?type=absent&since=2020-01-01T00:00:00Z', 'ours', 'webhook_events_of_tenant_by_type'],
      ['/owned/events?type=of.ours', 'ours', 'webhook_events_of_tenant_by_type'],
    ] as const) {
      const [plan] = await plansOf(() => listed(me, path, tenant));
      expect(plan, `path ${path}`).toContain(index);
    }
  });
});
