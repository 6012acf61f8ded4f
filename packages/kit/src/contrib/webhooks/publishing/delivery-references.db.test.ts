import { expect, test } from 'vitest';
import { untilSomebodyWaits } from '../../../../test/admin/lock-wait.ts';
import { describeOutbox } from '../../../../test/webhooks/outbox.ts';
import type { Db } from '../../../db/index.ts';
import { recoverEndpoint } from '../maintain/recover.ts';
import { prune } from '../delivery/prune.ts';
import { pingEndpoint } from '../endpoints/ping.ts';
import { deleteEndpoint, findEndpoint, type WebhookEndpoint } from '../endpoints/store.ts';
import { publish, publishMany } from './publish.ts';

// Deliveries have no foreign keys (see models.ts): what these would guarantee is tested here.
describeOutbox('a delivery never outlives its event or its endpoint', (outbox) => {
  const { owner, endpoint, deliveries } = outbox;

  const orphans = async (): Promise<number> => {
    const [row] = await outbox.db.query<{ count: number }>(
      `select count(*) as count from webhook_deliveries d left join webhook_events e on e.id = d.event_id
       left join webhook_endpoints p on p.id = d.endpoint_id where e.id is null or p.id is null`,
    );
    return row?.count ?? -1;
  };
  const attempts = async (): Promise<number> =>
    (
      await outbox.db.query<{ count: number }>(
        'select count(*) as count from webhook_attempts a left join webhook_deliveries d on d.id = a.delivery_id where d.id is null',
      )
    )[0]?.count ?? -1;

  test('deleting an event or an endpoint deletes its deliveries, and no others', async () => {
    const mine = owner();
    const [first, second] = [await endpoint({ owner: mine }), await endpoint({ owner: mine })];
    const [gone, kept] = [await outbox.publish('order.paid', { owner: mine }), await outbox.publish('order.paid', { owner: mine })];
    await outbox.db.query('delete from webhook_events where id = $1', [gone]);
    expect(await deliveries({ event: gone })).toEqual([]);
    expect(await deliveries({ event: kept })).toHaveLength(2);
    await deleteEndpoint(outbox.db, first.id);
    expect((await deliveries({ event: kept })).map(({ endpoint_id }) => endpoint_id)).toEqual([second.id]);
    expect([await orphans(), await attempts()]).toEqual([0, 0]);
  });

  test('a statement that deletes many events deletes the deliveries of all of them', async () => {
    const mine = owner();
    await endpoint({ owner: mine });
    const ids: string[] = [];
    for (let n = 0; n < 20; n++) ids.push(await outbox.publish('order.paid', { owner: mine }));
    await outbox.db.query('delete from webhook_events where owner_id = $1', [mine]);
    for (const id of ids) expect(await deliveries({ event: id })).toEqual([]);
  });

  test('prune removes deliveries whose event or endpoint is missing, and no others', async () => {
    const mine = owner();
    const [target, other] = [await endpoint({ owner: mine }), await endpoint({ owner: mine })];
    const id = await outbox.publish('order.paid', { owner: mine });
    const missing = crypto.randomUUID();
    await outbox.db.query('update webhook_deliveries set event_id = $1 where endpoint_id = $2', [missing, target.id]);
    const second = await outbox.publish('order.paid', { owner: mine });
    await outbox.db.query('update webhook_deliveries set endpoint_id = $1 where event_id = $2 and endpoint_id = $3', [
      missing,
      second,
      target.id,
    ]);
    expect(await orphans()).toBe(2);
    await prune(outbox.db, new Date(outbox.clock.now().getTime() + 1000), 1000);
    expect(await orphans()).toBe(0);
    expect((await deliveries({ event: id })).map(({ endpoint_id }) => endpoint_id)).toEqual([other.id]);
    expect((await deliveries({ event: second })).map(({ endpoint_id }) => endpoint_id)).toEqual([other.id]);
  });

  if (outbox.database.dialect === 'sqlite') return; // has one writer: the rest is about two

  /** Everything that writes deliveries to an endpoint; the answer is how many. */
  const writers: readonly [string, (tx: Db, target: WebhookEndpoint) => Promise<number>][] = [
    ['publish', async (tx, { owner_id: to }) => (await publish(tx, 'order.paid', {}, { owner: to })).deliveries],
    ['publish to everybody', async (tx) => (await publish(tx, 'order.paid', {}, { broadcast: true })).deliveries],
    [
      'publishMany',
      async (tx, { owner_id: to }) => {
        const each = { type: 'order.paid', data: {}, owner: to };
        return (await publishMany(tx, [each, each])).reduce((sum, { deliveries: count }) => sum + count, 0) / 2;
      },
    ],
    ['recover', async (tx, target) => (await recoverEndpoint(tx, target, new Date(0))).added],
    [
      'ping',
      (tx, target) =>
        pingEndpoint(tx, target).then(
          () => 1,
          (error: unknown) => ((error as { code?: string }).code === 'endpoint_not_found' ? 0 : Promise.reject(error)),
        ),
    ],
  ];

  /** An endpoint with one event that it has missed. */
  async function prepared(): Promise<{ target: WebhookEndpoint; missed: string }> {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    const missed = await outbox.publish('order.paid', { owner: mine });
    await outbox.db.query('delete from webhook_deliveries where event_id = $1', [missed]);
    return { target, missed };
  }

  test.each(writers)(
    '%s holds the endpoint until its transaction ends: a deletion waits, and takes the deliveries along',
    async (_, write) => {
      const { target } = await prepared();
      let deleting: Promise<unknown> | undefined;
      await outbox.db.transaction(async (tx) => {
        expect(await write(tx, target)).toBeGreaterThanOrEqual(1);
        deleting = deleteEndpoint(outbox.db, target.id);
        await untilSomebodyWaits(tx);
      });
      expect(await deleting).toBe(true);
      expect(await deliveries({ endpoint: target.id })).toEqual([]);
      expect(await orphans()).toBe(0);
    },
  );

  test.each(writers)('%s waits for a deletion of the endpoint, and then writes nothing for it', async (_, write) => {
    for (const end of ['commit', 'rollback'] as const) {
      const { target } = await prepared();
      let writing: Promise<number> | undefined;
      const deletion = outbox.db.transaction(async (tx) => {
        await deleteEndpoint(tx, target.id);
        writing = outbox.db.transaction((other) => write(other, target));
        await untilSomebodyWaits(tx);
        if (end === 'rollback') throw new Error('not deleted');
        return end;
      });
      expect(await deletion.catch((error: Error) => error.message)).toBe(end === 'commit' ? end : 'not deleted');
      const written = await writing;
      const found = await deliveries({ endpoint: target.id });
      expect(found.length > 0).toBe(end === 'rollback');
      expect(written).toBeGreaterThanOrEqual(end === 'rollback' ? 1 : 0);
      expect(await orphans()).toBe(0);
    }
  });

  test('a publisher in a stricter isolation fails rather than write for an endpoint that is gone', async () => {
    const { target } = await prepared();
    const publishing = outbox.db.transaction(
      async (tx) => {
        await tx.query('select 1 as one from webhook_endpoints');
        await deleteEndpoint(outbox.db, target.id);
        return publish(tx, 'order.paid', {}, { owner: target.owner_id });
      },
      { isolation: 'repeatable read' },
    );
    await expect(publishing).rejects.toMatchObject({ code: 'write_conflict' });
    expect(await orphans()).toBe(0);
  });

  test('an endpoint is given to another owner once the events to it are published, and goes with them', async () => {
    const { target } = await prepared();
    let moving: Promise<unknown> | undefined;
    await outbox.db.transaction(async (tx) => {
      await publish(tx, 'order.paid', {}, { owner: target.owner_id });
      moving = outbox.db
        .query('update webhook_endpoints set owner_id = $1 where id = $2', [owner(), target.id])
        .then(() => deleteEndpoint(outbox.db, target.id));
      await untilSomebodyWaits(tx);
    });
    await moving;
    expect(await deliveries({ endpoint: target.id })).toEqual([]);
    expect(await orphans()).toBe(0);
  });

  test('recover waits for a deletion of the event, and then writes nothing for it', async () => {
    const { target, missed } = await prepared();
    let recovering: Promise<unknown> | undefined;
    await outbox.db.transaction(async (tx) => {
      await tx.query('delete from webhook_events where id = $1', [missed]);
      recovering = outbox.db.transaction((other) => recoverEndpoint(other, target, new Date(0)));
      await untilSomebodyWaits(tx);
    });
    await recovering;
    expect(await deliveries({ event: missed })).toEqual([]);
    expect(await orphans()).toBe(0);
  });

  test('recover holds the event until its transaction ends: prune steps over it', async () => {
    const { target, missed } = await prepared();
    const after = new Date(outbox.clock.now().getTime() + 1000);
    await outbox.db.transaction(async (tx) => {
      expect((await recoverEndpoint(tx, target, new Date(0))).added).toBeGreaterThanOrEqual(1);
      await prune(outbox.db, after, 1000);
    });
    expect(await deliveries({ event: missed })).toHaveLength(1);
    expect(await orphans()).toBe(0);
  });

  test('publishers do not wait for one another, nor for a worker that writes the health of the endpoint', async () => {
    const { target } = await prepared();
    await outbox.db.transaction(async (tx) => {
      await tx.query('update webhook_endpoints set consecutive_failures = 3 where id = $1', [target.id]);
      const others = Array.from({ length: 3 }, () => outbox.publish('order.paid', { owner: target.owner_id }));
      expect(await Promise.all(others)).toHaveLength(3);
    });
    expect(await findEndpoint(outbox.db, target.id)).toMatchObject({ consecutive_failures: 3 });
  });

  test('publishers, recoveries, pings, deletions and a prune at once leave nothing behind', async () => {
    const owners = Array.from({ length: 3 }, () => owner());
    const targets = new Set<WebhookEndpoint>();
    const any = (): WebhookEndpoint | undefined => [...targets][Math.floor(Math.random() * targets.size)];
    const ignore = (error: unknown): void => {
      const { code } = error as { code?: string };
      if (code !== 'endpoint_not_found' && code !== 'write_conflict') throw error;
    };
    const actions: readonly (() => Promise<unknown>)[] = [
      async () => void targets.add(await endpoint({ owner: owners[Math.floor(Math.random() * 3)] ?? '' })),
      () => outbox.publish('order.paid', { owner: owners[Math.floor(Math.random() * 3)] ?? '' }),
      () => outbox.publish('order.paid', { broadcast: true }),
      async () => {
        const target = any();
        if (target !== undefined) await outbox.db.transaction((tx) => recoverEndpoint(tx, target, new Date(0))).catch(ignore);
      },
      async () => {
        const target = any();
        if (target !== undefined) await outbox.db.transaction((tx) => pingEndpoint(tx, target)).catch(ignore);
      },
      async () => {
        const target = any();
        if (target === undefined) return;
        targets.delete(target);
        await deleteEndpoint(outbox.db, target.id);
      },
      () =>
        outbox.db.query('delete from webhook_events where id in (select id from webhook_events order by random() limit 3)').catch(ignore),
      () => prune(outbox.db, new Date(outbox.clock.now().getTime() + 1000), 10),
    ];
    const worker = async (): Promise<void> => {
      for (let n = 0; n < 60; n++) await actions[Math.floor(Math.random() * actions.length)]?.();
    };
    await Promise.all(Array.from({ length: 8 }, worker));
    expect([await orphans(), await attempts()]).toEqual([0, 0]);
  });

  test('what a deletion under repeatable read could not see is removed by prune, and is never sent', async () => {
    const { target } = await prepared();
    await outbox.db.transaction(
      async (tx) => {
        await tx.query('select count(*) from webhook_deliveries');
        await outbox.publish('order.paid', { owner: target.owner_id });
        await deleteEndpoint(tx, target.id);
      },
      { isolation: 'repeatable read' },
    );
    await prune(outbox.db, new Date(outbox.clock.now().getTime() + 1000), 1000);
    expect(await orphans()).toBe(0);
  });

  test('truncating events or endpoints empties the deliveries and their attempts', async () => {
    for (const table of ['webhook_events', 'webhook_endpoints']) {
      const mine = owner();
      await endpoint({ owner: mine });
      await outbox.publish('order.paid', { owner: mine });
      await outbox.db.query(`truncate ${table} cascade`);
      expect([await orphans(), await attempts()]).toEqual([0, 0]);
      expect(await outbox.db.query('select 1 as one from webhook_deliveries')).toEqual([]);
    }
  });
});
