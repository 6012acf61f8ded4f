import { expect, test } from 'vitest';
import { describeOutbox } from '../../../../test/webhooks/outbox.ts';
import { deliverDue } from '../delivery/deliver.ts';
import { changeEndpoint } from '../endpoints/store.ts';

describeOutbox('audiences', (outbox) => {
  /** Which of the paths an event of this audience arrives at. */
  async function reached(options: Parameters<typeof outbox.publish>[1], paths: readonly string[]): Promise<string[]> {
    const id = await outbox.publish('order.paid', options);
    await deliverDue(outbox.db);
    const arrived = outbox.receiver.received.filter(({ headers }) => headers['webhook-id'] === `msg_${id}`).map(({ path }) => path);
    return arrived.filter((path) => paths.includes(path)).sort();
  }

  async function everyKind(): Promise<{ alice: string; tenant: string; paths: string[] }> {
    const [alice, bob, tenant, other] = [outbox.owner(), outbox.owner(), outbox.owner(), outbox.owner()];
    const make = async (name: string, owner: string, tenantKey = ''): Promise<string> => {
      const path = `/${alice}/${name}`;
      await outbox.endpoint({ owner, tenantKey, path, events: ['*'] });
      return path;
    };
    const paths = [
      await make('alice', alice),
      await make('alice-in-tenant', alice, tenant),
      await make('alice-in-other', alice, other),
      await make('bob', bob),
      await make('bob-in-tenant', bob, tenant),
      await make('bob-in-other', bob, other),
    ];
    return { alice, tenant, paths };
  }

  const names = (paths: readonly string[]): string[] => paths.map((path) => path.split('/').at(-1) ?? '');

  test('an owner’s event reaches that owner’s personal endpoints only', async () => {
    const { alice, paths } = await everyKind();
    expect(names(await reached({ owner: alice }, paths))).toEqual(['alice']);
  });

  test('an event for an owner in a tenant reaches endpoints where both match', async () => {
    const { alice, tenant, paths } = await everyKind();
    expect(names(await reached({ owner: alice, tenantKey: tenant }, paths))).toEqual(['alice-in-tenant']);
  });

  test('a tenant’s event reaches every subscriber within that tenant', async () => {
    const { tenant, paths } = await everyKind();
    expect(names(await reached({ tenantKey: tenant }, paths))).toEqual(['alice-in-tenant', 'bob-in-tenant']);
  });

  test('a broadcast reaches all subscribers', async () => {
    const { paths } = await everyKind();
    expect(await reached({ broadcast: true }, paths)).toEqual(paths.toSorted());
  });

  test('a pattern grants no access to another audience, not even a star', async () => {
    const { paths } = await everyKind();
    expect(await reached({ owner: outbox.owner() }, paths)).toEqual([]);
    expect(await reached({ tenantKey: outbox.owner() }, paths)).toEqual([]);
  });

  test('a subscription that is out of step with its endpoint may miss an event, and never leaks one', async () => {
    const [mine, stranger] = [outbox.owner(), outbox.owner()];
    const target = await outbox.endpoint({ owner: mine });
    for (const [subscription, audience] of [
      [{ owner: stranger, tenant: '' }, { owner: stranger }],
      [{ owner: stranger, tenant: 'acme' }, { tenantKey: 'acme' }],
      [
        { owner: stranger, tenant: 'acme' },
        { owner: stranger, tenantKey: 'acme' },
      ],
    ] as const) {
      const { owner, tenant } = subscription;
      await outbox.db.query('update webhook_subscriptions set owner_id = $2, tenant_key = $3 where endpoint_id = $1', [
        target.id,
        owner,
        tenant,
      ]);
      await outbox.publish('order.paid', audience);
      expect(await outbox.deliveries({ endpoint: target.id })).toEqual([]);
    }
  });

  test('a tenant whose key is an owner’s id gets nothing of that owner', async () => {
    const { alice, paths } = await everyKind();
    expect(await reached({ tenantKey: alice }, paths)).toEqual([]);
  });

  test('an endpoint that left the audience before sending gets nothing, and the delivery fails without an attempt', async () => {
    const mine = outbox.owner();
    const target = await outbox.endpoint({ owner: mine });
    await outbox.publish('order.paid', { owner: mine });
    await outbox.db.transaction((tx) => changeEndpoint(tx, target.id, { owner_id: outbox.owner() }, outbox.clock.now()));
    await deliverDue(outbox.db);
    expect(await outbox.deliveries({ endpoint: target.id })).toMatchObject([
      { status: 'failed', failure_reason: 'audience_changed', attempts: 0 },
    ]);
    expect(outbox.receiver.of(`/${mine}`)).toEqual([]);
  });

  test('an endpoint that moved is found under its new tenant', async () => {
    const [mine, tenant] = [outbox.owner(), outbox.owner()];
    const target = await outbox.endpoint({ owner: mine });
    await outbox.db.transaction((tx) => changeEndpoint(tx, target.id, { tenant_key: tenant }, outbox.clock.now()));
    await outbox.publish('order.paid', { tenantKey: tenant });
    await outbox.publish('order.paid', { owner: mine });
    expect(await outbox.deliveries({ endpoint: target.id })).toHaveLength(1);
  });

  test('an event without an audience is never sent, uses up no attempts, and goes out once an audience is assigned', async () => {
    const mine = outbox.owner();
    const target = await outbox.endpoint({ owner: mine });
    const id = await outbox.publish('order.paid', { owner: mine });
    await outbox.db.query('update webhook_events set audience = null, owner_id = $2 where id = $1', [id, '']);
    for (let i = 0; i < 3; i++) {
      await deliverDue(outbox.db);
      outbox.clock.advance(3_600_000);
    }
    expect(outbox.receiver.of(`/${mine}`)).toEqual([]);
    expect(await outbox.deliveries({ event: id })).toMatchObject([
      { status: 'pending', attempts: 0, next_attempt_at: null, claim_token: null },
    ]);
    await outbox.db.query(`update webhook_events set audience = 'owner', owner_id = $2 where id = $1`, [id, mine]);
    await outbox.db.query('update webhook_deliveries set next_attempt_at = $2 where event_id = $1', [id, outbox.clock.now()]);
    await deliverDue(outbox.db);
    expect(await outbox.deliveries({ endpoint: target.id })).toMatchObject([{ status: 'succeeded', attempts: 1 }]);
  });
});
