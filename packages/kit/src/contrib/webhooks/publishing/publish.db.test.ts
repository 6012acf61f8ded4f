import { describe, expect, test, vi } from 'vitest';
import { isBehindPooler, NOTIFICATIONS_ARE_LOST } from '../../../../../../test/provision/behind-pooler.ts';
import { countQueries, openDatabase, uuidv7, type Db } from '../../../db/index.ts';
import { describeOutbox, LOOPBACK } from '../../../../test/webhooks/outbox.ts';
import type { SqlExecutor, SqlParameter } from '../../../db/engine/foreign/sql-executor.ts';
import { InvalidAudience } from './audience.ts';
import { createEndpoint } from '../endpoints/create-endpoint.ts';
import { deliverDue } from '../delivery/deliver.ts';
import { PublishRefused } from '../errors.ts';
import { publish, publishMany } from './publish.ts';
import { WAKE_CHANNEL } from './publish-store.ts';
import { BUSY_WAKE_INTERVAL_MS } from '../../../work/wake-workers.ts';
import { OnCommitTaskQueue } from '../delivery/on-commit-task-queue.ts';
import { changeEndpoint, findEvent } from '../endpoints/store.ts';
import { useWebhooks, unbindWebhooks } from '../webhooks.ts';

describeOutbox('publish', (outbox) => {
  const { database, clock, endpoint, owner, publish: publishNow, deliveries } = outbox;
  const events = async () => (await database.db.query<{ count: number }>('select count(*) as count from webhook_events'))[0]?.count;

  test('an event and its pending deliveries are written in the publisher’s transaction', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine, events: ['order.*'] });
    const other = await endpoint({ owner: mine, events: ['invoice.*'] });
    const published = await database.db.transaction(async (tx) => {
      const event = await publish(tx, 'order.paid', { total: '12.00', z: 1, a: 2 }, { owner: mine });
      expect(await findEvent(database.db, event.id)).toBeNull();
      return event;
    });
    expect(published).toMatchObject({ created: true, deliveries: 1 });
    expect(await findEvent(database.db, published.id)).toMatchObject({
      type: 'order.paid',
      data: '{"total":"12.00","z":1,"a":2}',
      audience: 'owner',
      owner_id: mine,
      tenant_key: '',
      timestamp: clock.now(),
    });
    expect(await deliveries({ endpoint: target.id })).toMatchObject([
      { event_id: published.id, event_type: 'order.paid', status: 'pending', attempts: 0, next_attempt_at: clock.now(), claim_token: null },
    ]);
    expect(await deliveries({ endpoint: other.id })).toEqual([]);
  });

  test('an event of a rolled-back transaction does not exist', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    const before = await events();
    const failing = database.db.transaction(async (tx) => {
      await publish(tx, 'order.paid', {}, { owner: mine });
      throw new Error('the business change failed');
    });
    await expect(failing).rejects.toThrow('the business change failed');
    expect(await events()).toBe(before);
    expect(await deliveries({ endpoint: target.id })).toEqual([]);
  });

  test('a rolled-back savepoint takes its event with it and leaves the others', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    await database.db.transaction(async (tx) => {
      await publish(tx, 'kept.event', {}, { owner: mine });
      await tx
        .transaction(async (savepoint) => {
          await publish(savepoint, 'dropped.event', {}, { owner: mine });
          throw new Error('no');
        })
        .catch(() => undefined);
    });
    expect((await deliveries({ endpoint: target.id })).map(({ event_type }) => event_type)).toEqual(['kept.event']);
  });

  const cyclic: Record<string, unknown> = {};
  cyclic['self'] = cyclic;
  const throwing = {
    toJSON() {
      // oxlint-disable-next-line no-throw-literal -- anybody may
      throw null;
    },
  };
  const refusals: readonly [string, string, unknown, object | undefined][] = [
    ['no audience', 'audience_missing', {}, {}],
    ['broadcast false and nothing else', 'audience_missing', {}, { broadcast: false }],
    ['broadcast with an owner', 'audience_conflict', {}, { broadcast: true, owner: 'x' }],
    ['broadcast with a tenant', 'audience_conflict', {}, { broadcast: true, tenantKey: 'x' }],
    ['an empty tenant key', 'tenant_key_invalid', {}, { tenantKey: '' }],
    ['an empty owner', 'owner_invalid', {}, { owner: '' }],
    ['a null owner beside a tenant', 'owner_invalid', {}, { owner: null, tenantKey: 'x' }],
    ['a long owner', 'key_invalid', {}, { owner: 'x'.repeat(256) }],
    ['an empty ordering key', 'key_invalid', {}, { owner: 'x', orderingKey: '' }],
    ['a long idempotency key', 'key_invalid', {}, { owner: 'x', idempotencyKey: 'k'.repeat(256) }],
    ['data that is not an object', 'data_invalid', [1], { owner: 'x' }],
    ['data that turns into text', 'data_invalid', { toJSON: () => 'text' }, { owner: 'x' }],
    ['data that is not JSON', 'data_invalid', { big: 1n }, { owner: 'x' }],
    ['data over 256 KiB', 'payload_too_large', { text: 'x'.repeat(256 * 1024) }, { owner: 'x' }],
    ['another database’s alias', 'wrong_database', {}, { owner: 'x', using: 'reports' }],
    ['no option at all', 'audience_missing', {}, undefined],
    ['an option that does not exist', 'option_unknown', {}, { owner: 'x', tenant_key: 'acme' }],
    ['an invalid queue', 'queue_invalid', {}, { owner: 'x', queue: {} }],
    ['a queue that is null', 'queue_invalid', {}, { owner: 'x', queue: null }],
    ['an invalid task', 'queue_invalid', {}, { owner: 'x', task: 'deliver' }],
    ['data that contains itself', 'data_invalid', cyclic, { owner: 'x' }],
    ['data that throws anything', 'data_invalid', throwing, { owner: 'x' }],
    ['data without an object', 'data_invalid', new Date(0), { owner: 'x' }],
    ['a key with half a character', 'key_invalid', {}, { owner: 'x', orderingKey: '\ud800' }],
    ['a key that PostgreSQL cannot store', 'key_invalid', {}, { owner: 'a\0' }],
    ['data over the limit in bytes, not in characters', 'payload_too_large', { text: 'é'.repeat(128 * 1024) }, { owner: 'x' }],
  ];
  for (const [what, code, data, options] of refusals) {
    test(`${what} is refused with ${code} before anything is written`, async () => {
      const before = await events();
      await database.db.transaction(async (tx) => {
        const refused = await publish(tx, 'order.paid', data as object, options as object).catch((error: unknown) => error);
        expect(refused).toMatchObject({ code });
        expect(refused instanceof PublishRefused || refused instanceof InvalidAudience).toBe(true);
      });
      expect(await events()).toBe(before);
    });
  }

  test.each(['', 'order..paid', 'order.*', 'a'.repeat(101), 'ordér', 3])('the type %j is refused', async (type) => {
    await database.db.transaction(async (tx) => {
      await expect(publish(tx, type as string, {}, { owner: 'x' })).rejects.toMatchObject({ code: 'event_type_invalid' });
    });
  });

  test('everything that is wrong with a call is named at once, and the code is that of the first fault', async () => {
    const options = { owner: '', tenantKey: 'x'.repeat(256), broadcast: 'yes', tenant_key: 'acme', orderingKey: '', queue: {}, ownr: 1 };
    const more = { ...options, idempotencyKey: 7, using: 'reports' };
    await database.db.transaction(async (tx) => {
      const refused = await publish(tx, 'order..paid', [1], more as object).catch((error: unknown) => error);
      const codes = ['option_unknown', 'wrong_database', 'event_type_invalid', 'data_invalid', 'owner_invalid', 'key_invalid'];
      expect(refused).toBeInstanceOf(PublishRefused);
      expect(refused).toMatchObject({
        code: 'option_unknown',
        faults: [...codes, 'broadcast_invalid', 'key_invalid', 'key_invalid', 'queue_invalid'].map((code) => ({ code })),
      });
      for (const word of ['"tenant_key"', '"ownr"', 'reports', 'tenantKey must', 'orderingKey must', 'idempotencyKey must'])
        expect((refused as Error).message).toContain(word);
      const audience = await publish(tx, 'order.paid', { big: 1n }, { owner: 'x', broadcast: true }).catch((error: unknown) => error);
      expect(audience).toMatchObject({ code: 'data_invalid', faults: [{ code: 'data_invalid' }, { code: 'audience_conflict' }] });
      const alone = await publish(tx, 'order.paid', {}, { orderingKey: '' }).catch((error: unknown) => error);
      expect(alone).toBeInstanceOf(InvalidAudience);
      expect(alone).toMatchObject({ code: 'audience_missing', faults: [{ code: 'audience_missing' }, { code: 'key_invalid' }] });
    });
  });

  test('data of exactly the limit is stored as it is', async () => {
    const text = 'x'.repeat(256 * 1024 - '{"text":""}'.length);
    const id = await publishNow('order.paid', { owner: owner() }, { text });
    expect((await findEvent(database.db, id))?.data).toBe(JSON.stringify({ text }));
  });

  test('the limit of the database’s own settings holds, also through the handle of another library', async () => {
    const handle = await database.open({ clock });
    useWebhooks(handle, { payloadBytesMax: 4096 });
    try {
      await handle.transaction(async (tx) => {
        const foreign = { dialect: tx.dialect, query: tx.query.bind(tx), database: handle };
        for (const executor of [tx, foreign]) {
          await publish(executor, 'order.paid', { text: 'x'.repeat(4096 - '{"text":""}'.length) }, { owner: 'x' });
          const refused = publish(executor, 'order.paid', { text: 'x'.repeat(4096) }, { owner: 'x' });
          await expect(refused).rejects.toMatchObject({ code: 'payload_too_large' });
        }
      });
    } finally {
      unbindWebhooks(handle);
    }
  });

  test('data of exactly the limit in bytes is stored, whatever the characters', async () => {
    const text = 'é'.repeat((256 * 1024 - '{"text":""}'.length - 1) / 2) + 'x';
    expect(Buffer.byteLength(JSON.stringify({ text }))).toBe(256 * 1024);
    const id = await publishNow('order.paid', { owner: owner() }, { text });
    expect((await findEvent(database.db, id))?.data).toBe(JSON.stringify({ text }));
  });

  test('data is stored and sent as JSON says it, down to odd keys and characters', async () => {
    const mine = owner();
    await endpoint({ owner: mine });
    const data = JSON.parse('{"__proto__":{"a":1},"constructor":2,"nul":"\\u0000","half":"\\ud800"}') as Record<string, unknown>;
    Object.assign(data, { nan: NaN, zero: -0, at: new Date(0), gone: undefined, list: [undefined], map: new Map([[1, 2]]) });
    const id = await publishNow('order.paid', { owner: mine }, data);
    const text =
      '{"__proto__":{"a":1},"constructor":2,"nul":"\\u0000","half":"\\ud800","nan":null,"zero":0,"at":"1970-01-01T00:00:00.000Z","list":[null],"map":{}}';
    expect((await findEvent(database.db, id))?.data).toBe(text);
    await deliverDue(outbox.db);
    expect(outbox.receiver.of(`/${mine}`)[0]?.body).toContain(`"data":${text}}`);
  });

  test('a transaction on another kind of database than the named one is refused', async () => {
    await database.db.transaction(async (tx) => {
      const dialect = tx.dialect === 'sqlite' ? 'postgres' : 'sqlite';
      const foreign = { dialect, query: tx.query.bind(tx), database: database.db } as const;
      await expect(publish(foreign, 'order.paid', {}, { owner: 'x' })).rejects.toMatchObject({ code: 'wrong_database' });
    });
  });

  test('nothing, or something that is no transaction, is refused', async () => {
    for (const tx of [undefined, null, {}, 'tx'])
      await expect(publish(tx as never, 'order.paid', {}, { owner: 'x' })).rejects.toMatchObject({ code: 'no_transaction' });
  });

  test('a handle without an open transaction is refused', async () => {
    await expect(publish(database.db, 'order.paid', {}, { owner: 'x' })).rejects.toMatchObject({ code: 'no_transaction' });
  });

  test('a database without webhooks is refused, whatever its alias', async () => {
    const foreign = await openDatabase('sqlite::memory:');
    try {
      await foreign.transaction(async (tx) => {
        await expect(publish(tx, 'order.paid', {}, { owner: 'x' })).rejects.toMatchObject({ code: 'not_installed' });
      });
    } finally {
      await foreign.close();
    }
  });

  test('up to 100 endpoints are reached with one statement on PostgreSQL, two on SQLite', async () => {
    const mine = owner();
    const targets = 100;
    const unlimited = await database.open({ clock });
    useWebhooks(unlimited, { endpointsPerOwnerMax: targets, urlPolicy: LOOPBACK });
    await unlimited.transaction(async (tx) => {
      for (let i = 0; i < targets; i++) await createEndpoint(tx, { owner: mine, url: 'http://127.0.0.1:9/', events: ['*', 'order.*'] });
    });
    unbindWebhooks(unlimited);
    await database.db.transaction(async (tx) => {
      const { result, count } = await countQueries(() => publish(tx, 'order.paid', {}, { owner: mine }));
      expect(result.deliveries).toBe(targets);
      expect(count).toBe(tx.dialect === 'postgres' ? 1 : 2);
    });
  });

  test('every delivery has a key of its own that begins as that of its event, so that deliveries sort as their events do', async () => {
    const mine = owner();
    for (let n = 0; n < 10; n++) await endpoint({ owner: mine });
    for (const id of [await outbox.publish('order.paid', { owner: mine }), await outbox.publish('order.paid', { owner: mine })]) {
      const keys = (await deliveries({ event: id })).map((delivery) => delivery.id);
      expect(new Set(keys).size).toBe(10);
      for (const key of keys) expect(key).toMatch(new RegExp(`^${id.slice(0, 18)}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`));
    }
  });

  test('workers are woken after the commit and by no statement of the transaction, which would let transactions commit one at a time', async (context) => {
    context.skip(outbox.db.dialect === 'postgres' && isBehindPooler(), NOTIFICATIONS_ARE_LOST);
    const mine = owner();
    await endpoint({ owner: mine });
    const woken = vi.fn();
    const stop = await database.db.listen(WAKE_CHANNEL, woken);
    // What the tests before asked for may be sent an interval later.
    await new Promise((done) => setTimeout(done, 2 * BUSY_WAKE_INTERVAL_MS));
    await database.db.notify(database.db, WAKE_CHANNEL, 'the last of them');
    await vi.waitFor(() => expect(woken).toHaveBeenCalledWith('the last of them'), { timeout: 300_000 });
    woken.mockClear();
    const publishing = async (tx: Db) => {
      await publish(tx, 'order.paid', {}, { owner: mine });
      const event = { type: 'order.paid', data: {}, owner: mine };
      await publishMany(tx, [event, event]);
    };
    const failing = database.db.transaction(async (tx) => {
      await publishing(tx);
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    const { queries } = await countQueries(() =>
      database.db.transaction(async (tx) => {
        await publishing(tx);
        expect(woken).not.toHaveBeenCalled();
      }),
    );
    expect(queries.length).toBeGreaterThan(1);
    expect(queries.filter(({ sql }) => /notify/i.test(sql))).toEqual([]);
    await vi.waitFor(() => expect(woken).toHaveBeenCalled(), { timeout: 300_000 });
    await stop();
  });

  test('an endpoint gets the first event after its subscription, also over connections that have published to none for long', async () => {
    const mine = owner();
    const connection = await database.open({ clock, ...(database.dialect === 'postgres' ? { poolMax: 1 } : {}) });
    useWebhooks(connection, { urlPolicy: LOOPBACK });
    const publishOnce = () => connection.transaction((tx) => publish(tx, 'order.paid', {}, { owner: mine }));
    // More often than a statement is planned for its parameters: from then on PostgreSQL uses one plan for all.
    for (let n = 0; n < 10; n++) expect(await publishOnce()).toMatchObject({ created: true, deliveries: 0 });
    const target = await endpoint({ owner: mine });
    const { id } = await publishOnce();
    expect((await deliveries({ endpoint: target.id })).map(({ event_id }) => event_id)).toEqual([id]);
    const inside = await connection.transaction(async (tx) => {
      await createEndpoint(tx, { owner: mine, url: 'http://127.0.0.1:9/', events: ['*'] });
      return publish(tx, 'order.paid', {}, { owner: mine });
    });
    expect(inside.deliveries, 'a subscription of the same transaction counts').toBe(2);
    unbindWebhooks(connection);
  });

  test('a transaction of another library and one without prepared statements reach the same endpoints, once each', async () => {
    const [ada, bob, tenant] = [owner(), owner(), `tenant-${owner()}`];
    const ofAda = await endpoint({ owner: ada, events: ['*', 'same.*', 'same.sent'] });
    const inTenant = await endpoint({ owner: ada, tenantKey: tenant, events: ['same.sent'] });
    const ofBob = await endpoint({ owner: bob, tenantKey: tenant, events: ['same.*'] });
    const disabled = await endpoint({ owner: ada, events: ['*'] });
    await changeEndpoint(database.db, disabled.id, { is_active: false }, clock.now());
    // A subscription that is out of step with its endpoint may miss an event, but never leaks one.
    const moved = await endpoint({ owner: bob, events: ['*'] });
    await database.db.query('update webhook_subscriptions set owner_id = $1 where endpoint_id = $2', [ada, moved.id]);
    const unprepared = await database.open({ clock, prepare: false });
    useWebhooks(unprepared, { urlPolicy: LOOPBACK });
    const foreign = (tx: Db) => ({ dialect: tx.dialect, query: tx.query.bind(tx) });
    const ways = [
      (work: (tx: Parameters<typeof publish>[0]) => Promise<{ id: string }>) => database.db.transaction(work),
      (work: (tx: Parameters<typeof publish>[0]) => Promise<{ id: string }>) => unprepared.transaction(work),
      (work: (tx: Parameters<typeof publish>[0]) => Promise<{ id: string }>) => database.db.transaction((tx) => work(foreign(tx))),
    ];
    const audiences = [{ owner: ada }, { owner: ada, tenantKey: tenant }, { tenantKey: tenant }, { broadcast: true }, { owner: owner() }];
    const mine = new Set([ofAda.id, inTenant.id, ofBob.id, disabled.id, moved.id]);
    const reached = [];
    for (const audience of audiences) {
      for (const way of ways) {
        const { id } = await way((tx) => publish(tx, 'same.sent', {}, { ...audience, orderingKey: 'k' }));
        reached.push((await deliveries({ event: id })).map((delivery) => delivery.endpoint_id).filter((target) => mine.has(target)));
        expect(await findEvent(database.db, id)).toMatchObject({ type: 'same.sent', data: '{}', ordering_key: 'k', idempotency_key: null });
      }
    }
    const expected = [[ofAda.id], [inTenant.id], [inTenant.id, ofBob.id], [ofAda.id, inTenant.id, ofBob.id, moved.id], []];
    expect(reached.map((ids) => ids.toSorted())).toEqual(expected.flatMap((ids) => ways.map(() => ids.toSorted())));
    unbindWebhooks(unprepared);
  });

  test('an event of an owner reads subscriptions and endpoints by index, however small the tables are', async () => {
    if (database.dialect !== 'postgres') return;
    await database.db.query('analyze webhook_subscriptions');
    await database.db.transaction(async (tx) => {
      const { queries } = await countQueries(() => publish(tx, 'order.paid', {}, { owner: owner() }));
      const event = {
        place: 0,
        id: uuidv7(),
        type: 'order.paid',
        data: '{}',
        timestamp: new Date(),
        audience: 'owner',
        owner: owner(),
        tenant: '',
      };
      const document = JSON.stringify([{ ...event, patterns: ['order.paid', 'order.*', '*'] }]);
      const plan = await tx.query<{ 'QUERY PLAN': string }>(`explain ${queries[0]?.sql ?? ''}`, [document]);
      const text = plan.map((row) => row['QUERY PLAN']).join('\n');
      expect(text).toMatch(/Index Cond: .*pattern.*owner_id/);
      expect(text).not.toContain('Seq Scan on webhook_endpoints');
      // Only of broadcast events, which ask for the subscriptions of everybody.
      expect(text.match(/Seq Scan on webhook_subscriptions/g) ?? []).toHaveLength(
        text.includes('Seq Scan on webhook_subscriptions s_2') ? 1 : 0,
      );
    });
  });

  test('an endpoint with several matching patterns gets the event once', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine, events: ['*', 'order.*', 'order.paid'] });
    await publishNow('order.paid', { owner: mine });
    expect(await deliveries({ endpoint: target.id })).toHaveLength(1);
  });

  test('a disabled endpoint gets no new deliveries', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    await changeEndpoint(database.db, target.id, { is_active: false }, clock.now());
    await publishNow('order.paid', { owner: mine });
    expect(await deliveries({ endpoint: target.id })).toEqual([]);
  });

  test('a second publish under the same idempotency key writes nothing and returns the first event', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    const options = { owner: mine, idempotencyKey: 'order-7-paid' };
    const first = await database.db.transaction((tx) => publish(tx, 'order.paid', { n: 7 }, options));
    const second = await database.db.transaction((tx) => publish(tx, 'order.paid', { n: 7 }, options));
    expect(second).toEqual({ id: first.id, created: false, deliveries: 0 });
    expect(await deliveries({ endpoint: target.id })).toHaveLength(1);
    const other = database.db.transaction((tx) => publish(tx, 'order.paid', { n: 8 }, options));
    await expect(other).rejects.toMatchObject({ code: 'idempotency_key_reused' });
    const elsewhere = await database.db.transaction((tx) => publish(tx, 'order.paid', { n: 8 }, { ...options, owner: owner() }));
    expect(elsewhere.created).toBe(true);
  });

  test('the same idempotency key at the same time makes one event, and another payload under it is refused', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    const results = await Promise.allSettled(
      Array.from({ length: 12 }, (_, n) =>
        database.db.transaction((tx) => publish(tx, 'order.paid', { n: n % 2 }, { owner: mine, idempotencyKey: 'same' })),
      ),
    );
    const stored = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    expect(stored).toHaveLength(6);
    expect(stored.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(stored.map(({ id }) => id)).size).toBe(1);
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
    for (const reason of refused) expect(reason).toMatchObject({ code: 'idempotency_key_reused' });
    expect(await deliveries({ endpoint: target.id })).toHaveLength(1);
  });

  test('an event that is pruned while its idempotency key is used again makes room for the next one', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    const options = { owner: mine, idempotencyKey: 'pruned' };
    const first = await database.db.transaction((tx) => publish(tx, 'order.paid', { n: 1 }, options));
    const second = await database.db.transaction((tx) => {
      let isPruned = false;
      const pruning: SqlExecutor = {
        dialect: tx.dialect,
        database: tx.database,
        isTransaction: true,
        async query<R>(text: string, parameters: readonly SqlParameter[]): Promise<R[]> {
          // As another process does after the key was found to be taken, and before the event is read.
          if (!isPruned && text.startsWith('select id, data from webhook_events')) {
            isPruned = true;
            await tx.query('delete from webhook_events where id = $1', [first.id]);
          }
          return (await tx.query(text, parameters)) as R[];
        },
      };
      return publish(pruning, 'order.paid', { n: 2 }, options);
    });
    expect(second).toMatchObject({ created: true, deliveries: 1 });
    expect(await deliveries({ endpoint: target.id })).toMatchObject([{ event_id: second.id }]);
  });

  test('an idempotency key of a transaction that was rolled back is free again', async () => {
    const options = { owner: owner(), idempotencyKey: 'again' };
    const failing = database.db.transaction(async (tx) => {
      await publish(tx, 'order.paid', { n: 1 }, options);
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(await database.db.transaction((tx) => publish(tx, 'order.paid', { n: 2 }, options))).toMatchObject({ created: true });
  });

  test('a queue is called after the commit of that database, with the event and the alias, and not after a rollback', async () => {
    const mine = owner();
    const calls: unknown[] = [];
    const queue = { enqueue: (...values: [string, string]) => void calls.push(values.slice(0, 2)) };
    const id = await database.db.transaction(async (tx) => {
      const event = await publish(tx, 'order.paid', {}, { owner: mine, using: 'default', queue });
      expect(calls).toEqual([]);
      return event.id;
    });
    expect(calls).toEqual([[id, 'default']]);
    await database.db
      .transaction(async (tx) => {
        await publish(tx, 'order.paid', {}, { owner: mine, queue });
        throw new Error('rolled back');
      })
      .catch(() => undefined);
    expect(calls).toHaveLength(1);
  });

  test('an immediate queue sends after the commit and never what was rolled back', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    const queue = new OnCommitTaskQueue();
    await database.db
      .transaction(async (tx) => {
        await publish(tx, 'order.dropped', {}, { owner: mine, queue });
        throw new Error('rolled back');
      })
      .catch(() => undefined);
    await database.db.transaction((tx) => publish(tx, 'order.paid', {}, { owner: mine, queue }));
    await queue.settled();
    expect(await deliveries({ endpoint: target.id })).toMatchObject([{ event_type: 'order.paid', status: 'succeeded', attempts: 1 }]);
  });

  test('a custom task gets the event’s id and the alias, with and without a queue of its own', async () => {
    const calls: unknown[] = [];
    const task = (...values: [string, string]): void => void calls.push(values.slice(0, 2));
    const queue = new OnCommitTaskQueue({ task });
    const first = await publishNow('order.paid', { owner: owner(), queue });
    const second = await publishNow('order.paid', { owner: owner(), task });
    await queue.settled();
    expect(calls).toEqual([
      [first, 'default'],
      [second, 'default'],
    ]);
  });

  test('a task that fails is reported and hurts neither the publisher nor the delivery, which a worker sends', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    const failures: unknown[] = [];
    const task = (): never => {
      throw new Error('the queue is down');
    };
    const queue = new OnCommitTaskQueue({ task, onError: (error) => failures.push(error) });
    await publishNow('order.paid', { owner: mine, queue });
    await queue.settled();
    expect(failures).toMatchObject([{ message: 'the queue is down' }]);
    expect(await deliveries({ endpoint: target.id })).toMatchObject([{ status: 'pending', attempts: 0 }]);
    await deliverDue(outbox.db);
    expect(await deliveries({ endpoint: target.id })).toMatchObject([{ status: 'succeeded' }]);
  });

  test('a queue is refused on a transaction that cannot tell when it commits', async () => {
    await database.db.transaction(async (tx) => {
      const foreign = { dialect: tx.dialect, query: tx.query.bind(tx) };
      const refused = publish(foreign, 'order.paid', {}, { owner: 'x', queue: new OnCommitTaskQueue() });
      await expect(refused).rejects.toMatchObject({ code: 'no_commit_hook' });
      expect(await publish(foreign, 'order.paid', {}, { owner: 'x' })).toMatchObject({ created: true });
    });
  });

  test('after its transaction has ended publish is refused', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    const kept: Parameters<typeof publish>[0][] = [];
    await database.db.transaction(async (tx) => void kept.push(tx));
    for (const tx of kept)
      await expect(publish(tx, 'order.paid', {}, { owner: mine })).rejects.toMatchObject({ code: 'transaction_finished' });
    expect(kept).toHaveLength(1);
    expect(await deliveries({ endpoint: target.id })).toEqual([]);
  });

  test('publish without await leaves the event with its deliveries or nothing', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    const publishing: Promise<unknown>[] = [];
    for (let turns = 0; turns < 12; turns++) {
      await database.db.transaction(async (tx) => {
        publishing.push(publish(tx, 'order.paid', { turns }, { owner: mine }).catch(() => undefined));
        for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      });
    }
    await Promise.all(publishing);
    const events = await database.db.query<{ id: string }>('select id from webhook_events where owner_id = $1 order by id', [mine]);
    const sent = await deliveries({ endpoint: target.id });
    expect(sent.map(({ event_id }) => event_id).sort()).toEqual(events.map(({ id }) => id));
  });

  test('a library that cannot say whether a transaction is open is refused outside one, and nothing is written', async () => {
    const mine = owner();
    const foreign = { dialect: database.db.dialect, query: database.db.query.bind(database.db) };
    await expect(publish(foreign, 'order.paid', {}, { owner: mine })).rejects.toMatchObject({ code: 'no_transaction' });
    expect(await database.db.query('select id from webhook_events where owner_id = $1', [mine])).toEqual([]);
  });

  test('an event published beside a savepoint that is rolled back is never reported as saved', async () => {
    const mine = owner();
    await endpoint({ owner: mine });
    const unprepared = await database.open({ clock, prepare: false });
    useWebhooks(unprepared, { urlPolicy: LOOPBACK });
    const beside = (handle: typeof database.db, work: (tx: Db) => Promise<unknown>) =>
      handle.transaction(async (tx) => {
        const started = Promise.withResolvers<void>();
        const published = Promise.withResolvers<void>();
        const savepoint = tx.transaction(async (inner) => {
          await inner.query('select 1 as one');
          started.resolve();
          await published.promise;
          throw new Error('no');
        });
        await started.promise;
        await work(tx);
        published.resolve();
        await savepoint.catch(() => undefined);
      });
    for (const handle of [database.db, unprepared]) {
      const ways: readonly ((tx: Db) => Promise<unknown>)[] = [
        (tx) => publish(tx, 'order.paid', {}, { owner: mine }),
        (tx) => publish(tx, 'order.paid', {}, { owner: mine, idempotencyKey: 'beside' }),
        (tx) => publishMany(tx, [{ type: 'order.paid', data: {}, owner: mine }]),
      ];
      for (const way of ways) await expect(beside(handle, way)).rejects.toMatchObject({ code: 'transaction_aborted' });
    }
    unbindWebhooks(unprepared);
    expect(await database.db.query('select id from webhook_events where owner_id = $1', [mine])).toEqual([]);
  });

  describe('many events at once', () => {
    test('reach the endpoints that publish reaches, each event its own', async () => {
      const [ada, bob, tenant] = [owner(), owner(), `tenant-${owner()}`];
      const ofAda = await endpoint({ owner: ada, events: ['order.*', 'order.paid'] });
      const ofBob = await endpoint({ owner: bob, events: ['*'] });
      const inTenant = await endpoint({ owner: ada, tenantKey: tenant, events: ['invoice.sent', 'order.item.*'] });
      const events = [
        { type: 'order.paid', data: { n: 0 }, owner: ada },
        { type: 'order.item.added', data: { n: 1 }, owner: ada },
        { type: 'order.paid', data: { n: 2 }, owner: bob },
        { type: 'invoice.sent', data: { n: 3 }, tenantKey: tenant },
        { type: 'order.item.added', data: { n: 4 }, owner: ada, tenantKey: tenant },
        { type: 'invoice.sent', data: { n: 5 }, owner: bob, tenantKey: tenant },
        { type: 'unheard.of', data: { n: 6 }, owner: ada },
      ];
      const together = await database.db.transaction((tx) => publishMany(tx, events));
      expect(together.map(({ created, deliveries: count }) => [created, count])).toEqual(
        [1, 1, 1, 1, 1, 0, 0].map((count) => [true, count]),
      );
      const alone = await database.db.transaction(async (tx) => {
        const published = [];
        for (const { type, data, ...audience } of events) published.push(await publish(tx, type, data, audience));
        return published;
      });
      expect(alone.map(({ deliveries: count }) => count)).toEqual(together.map(({ deliveries: count }) => count));
      const reached = async (id: string) => (await deliveries({ event: id })).map(({ endpoint_id }) => endpoint_id);
      expect(await Promise.all(together.map(({ id }) => reached(id)))).toEqual([
        [ofAda.id],
        [ofAda.id],
        [ofBob.id],
        [inTenant.id],
        [inTenant.id],
        [],
        [],
      ]);
      expect(await Promise.all(alone.map(({ id }) => reached(id)))).toEqual(await Promise.all(together.map(({ id }) => reached(id))));
    });

    test('a broadcast reaches everybody once', async () => {
      const mine = owner();
      const target = await endpoint({ owner: mine, events: ['many.sent', 'many.*'] });
      const events = [1, 2, 3].map((n) => ({ type: 'many.sent', data: { n }, broadcast: true }));
      const published = await database.db.transaction((tx) => publishMany(tx, events));
      const sent = await deliveries({ endpoint: target.id });
      expect(sent.map(({ event_id }) => event_id)).toEqual(published.map(({ id }) => id));
    });

    test('cost one statement, on SQLite two', async () => {
      const mine = owner();
      await endpoint({ owner: mine });
      const events = Array.from({ length: 100 }, (_, n) => ({ type: 'order.paid', data: { n }, owner: mine }));
      const { count, result } = await countQueries(() => database.db.transaction((tx) => publishMany(tx, events)));
      expect(count).toBe(database.dialect === 'postgres' ? 1 : 2);
      expect(result).toHaveLength(100);
      expect(await database.db.transaction((tx) => publishMany(tx, []))).toEqual([]);
    });

    test('one that is refused refuses all, before anything is written', async () => {
      const mine = owner();
      const events = [
        { type: 'order.paid', data: {}, owner: mine },
        { type: 'order.paid', data: {} },
      ];
      await expect(database.db.transaction((tx) => publishMany(tx, events))).rejects.toMatchObject({ code: 'audience_missing' });
      const invalid = [...events, { type: 'order..paid', data: {}, owner: '' }];
      await expect(database.db.transaction((tx) => publishMany(tx, invalid))).rejects.toMatchObject({
        code: 'audience_missing',
        faults: [
          { code: 'audience_missing', message: expect.stringMatching(/^events\[1\]: /) as string },
          { code: 'event_type_invalid', message: expect.stringMatching(/^events\[2\]: /) as string },
          { code: 'owner_invalid', message: expect.stringMatching(/^events\[2\]: /) as string },
        ],
      });
      const misspelt = [{ type: 'order.paid', data: {}, owner: mine, tenant_key: 'x' }];
      await expect(database.db.transaction((tx) => publishMany(tx, misspelt))).rejects.toMatchObject({ code: 'option_unknown' });
      expect(await database.db.query('select id from webhook_events where owner_id = $1', [mine])).toEqual([]);
    });

    test('an idempotency key counts once, among them and across calls', async () => {
      const mine = owner();
      await endpoint({ owner: mine });
      const once = { type: 'order.paid', data: { n: 1 }, owner: mine, idempotencyKey: 'k' };
      const [first, second, other] = await database.db.transaction((tx) =>
        publishMany(tx, [once, once, { type: 'order.paid', data: { n: 2 }, owner: mine }]),
      );
      expect(first).toMatchObject({ created: true, deliveries: 1 });
      expect(second).toEqual({ id: first?.id, created: false, deliveries: 0 });
      expect(other).toMatchObject({ created: true, deliveries: 1 });
      expect(await database.db.transaction((tx) => publish(tx, once.type, once.data, { owner: mine, idempotencyKey: 'k' }))).toMatchObject({
        id: first?.id,
        created: false,
      });
    });

    test('are rolled back with the transaction, and are refused after it', async () => {
      const mine = owner();
      await endpoint({ owner: mine });
      const events = [1, 2].map((n) => ({ type: 'order.paid', data: { n }, owner: mine }));
      const failing = database.db.transaction(async (tx) => {
        expect(await publishMany(tx, events)).toHaveLength(2);
        throw new Error('undo');
      });
      await expect(failing).rejects.toThrow('undo');
      const outside = { dialect: database.db.dialect, query: database.db.query.bind(database.db) };
      await expect(publishMany(outside, events)).rejects.toMatchObject({ code: 'no_transaction' });
      expect(await database.db.query('select id from webhook_events where owner_id = $1', [mine])).toEqual([]);
      const inside = await database.db.transaction((tx) => publishMany({ dialect: tx.dialect, query: tx.query.bind(tx) }, events));
      expect(inside).toMatchObject([{ deliveries: 1 }, { deliveries: 1 }]);
    });
  });

  test('nothing is sent by publish itself', async () => {
    const mine = owner();
    await endpoint({ owner: mine, path: '/quiet' });
    // Hundreds of the tests before would be sent with it.
    await database.db.query('delete from webhook_deliveries');
    await publishNow('order.paid', { owner: mine });
    expect(outbox.receiver.of('/quiet')).toEqual([]);
    await deliverDue(outbox.db);
    expect(outbox.receiver.of('/quiet')).toHaveLength(1);
  });
});
