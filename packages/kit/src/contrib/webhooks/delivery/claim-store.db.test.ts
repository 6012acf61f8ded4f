import { afterEach, expect, test, vi } from 'vitest';
import { describeOutbox } from '../../../../test/webhooks/outbox.ts';
import type { Db } from '../../../db/engine/db.ts';
import { claimByEndpoint, claimDue, dueInOrder, type ClaimLimits } from './claim-store.ts';
import { Claimer } from './claimer.ts';
import { type EventToPublish, publish, publishMany } from '../publishing/publish.ts';

afterEach(() => void vi.restoreAllMocks());

const limitsOf = (now: Date, free: number): ClaimLimits => ({
  now,
  until: new Date(now.getTime() + 60_000),
  free,
  perEndpoint: 10,
  busy: new Map(),
});

/** So many events. */
const paid = (count: number, options: (n: number) => Pick<EventToPublish, 'owner' | 'orderingKey'>): EventToPublish[] =>
  Array.from({ length: count }, (_, n) => ({ type: 'order.paid', data: { n }, ...options(n) }));

describeOutbox('claiming from endpoint to endpoint', (outbox) => {
  test('does not read the backlog of an endpoint that is full, however long it is', async (context) => {
    const { db, owner, endpoint, clock } = outbox;
    context.skip(db.dialect !== 'postgres', 'the rows that PostgreSQL reads');
    const [slow, quick] = [owner(), owner()];
    const { id: full } = await endpoint({ owner: slow });
    for (let n = 0; n < 20; n++) await endpoint({ owner: quick, path: `/${quick}/${n}` });
    await db.transaction(async (tx) => {
      await publishMany(
        tx,
        paid(3000, () => ({ owner: slow })),
      );
      await publishMany(
        tx,
        paid(100, () => ({ owner: quick })),
      );
    });
    // With statistics: without them PostgreSQL would choose the right index by luck.
    await db.query('analyze webhook_deliveries');
    const limits = { ...limitsOf(clock.now(), 50), busy: new Map([[full, 10]]) };
    await db.transaction(async (tx) => {
      const before = await rowsRead(tx);
      const { claims } = await claimByEndpoint(tx, limits, null);
      expect((await rowsRead(tx)) - before).toBeLessThan(1000);
      expect(claims).toHaveLength(50);
      expect(claims.filter(({ endpoint: { id } }) => id === full)).toEqual([]);
    });
  });
});

describeOutbox('claiming by time', (outbox) => {
  test('an event with its payload and an endpoint with its secrets are sent to the worker once, however many of their deliveries it claims', async (context) => {
    const { db, owner, endpoint, clock } = outbox;
    context.skip(db.dialect !== 'postgres', 'SQLite answers from its own process');
    const mine = owner();
    for (let n = 0; n < 10; n++) await endpoint({ owner: mine, path: `/${mine}/${n}` });
    await db.transaction(async (tx) => {
      for (let n = 0; n < 5; n++) await publish(tx, 'order.paid', { n }, { owner: mine });
    });
    const query = vi.spyOn(db, 'query');
    const { claims } = await claimDue(db, limitsOf(clock.now(), 50));
    expect(claims).toHaveLength(50);
    const [[answer]] = query.mock.settledResults.map(({ value }) => value) as [[Record<'deliveries' | 'events' | 'endpoints', object[]>]];
    expect([answer.deliveries.length, answer.events.length, answer.endpoints.length]).toEqual([50, 5, 10]);
  });

  test('one claim in eleven begins at the head of the queue, one in thirty-one while the endpoint whose backlog is there is full', async (context) => {
    const { db, owner, endpoint, clock } = outbox;
    context.skip(db.dialect !== 'postgres', 'SQLite always begins at the head');
    const [slow, mine] = [owner(), owner()];
    const { id: full } = await endpoint({ owner: slow });
    for (let n = 0; n < 20; n++) await endpoint({ owner: mine, path: `/${mine}/${n}` });
    const query = vi.spyOn(db, 'query');
    /** Which of so many claims began there. */
    const fromHead = async (claims: number, busy: ReadonlyMap<string, number>): Promise<number[]> => {
      const claimer = new Claimer(db);
      const found: number[] = [];
      for (let n = 0; n < claims; n++) {
        query.mockClear();
        expect(await claimer.claim({ ...limitsOf(clock.now(), 5), busy })).toHaveLength(5);
        if (query.mock.calls.some(([, parameters]) => parameters?.at(-1) === '-infinity')) found.push(n);
      }
      return found;
    };
    await db.transaction(async (tx) => {
      for (let n = 0; n < 20; n++) await publish(tx, 'order.paid', { n }, { owner: mine });
    });
    expect(await fromHead(60, new Map())).toEqual([0, 11, 22, 33, 44, 55]);
    while ((await claimDue(db, limitsOf(clock.now(), 50))).claims.length > 0);
    await db.transaction(async (tx) => {
      for (let n = 0; n < 100; n++) await publish(tx, 'order.paid', { n }, { owner: slow });
    });
    clock.advance(1);
    await db.transaction(async (tx) => {
      for (let n = 0; n < 20; n++) await publish(tx, 'order.paid', { n }, { owner: mine });
    });
    expect(await fromHead(60, new Map([[full, 10]]))).toEqual([0, 31]);
  });
});

describeOutbox('looking for the heads of ordering keys', (outbox) => {
  test('does not read what waits behind a head that fails, however much it is', async () => {
    const { db, owner, endpoint, clock } = outbox;
    const [mine, other] = [owner(), owner()];
    await endpoint({ owner: mine });
    await endpoint({ owner: other });
    await db.transaction(async (tx) => {
      await publishMany(
        tx,
        paid(6000, () => ({ owner: mine, orderingKey: 'a' })),
      );
      await publishMany(
        tx,
        paid(150, (n) => ({ owner: n % 2 === 0 ? mine : other, orderingKey: `b-${n}` })),
      );
    });
    if (db.dialect === 'postgres') await db.query('analyze webhook_deliveries');
    let quickestMs = Infinity;
    for (let round = 0; round < 5 || (round < 200 && quickestMs >= 20); round++) {
      const start = performance.now();
      const { found } = await dueInOrder(db, clock.now(), null);
      quickestMs = Math.min(quickestMs, performance.now() - start);
      expect(found).toHaveLength(151);
    }
    // Two milliseconds here, and sixty when the backlog is read for every key.
    expect(quickestMs).toBeLessThan(20);
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
