import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { describeOutbox } from '../../../../test/webhooks/outbox.ts';
import { rejectUpdates } from '../../../../test/reject-updates.ts';
import { claimByIds, dueOfEvent, type Claim } from './claim-store.ts';
import type { PublishOptions } from '../publishing/checked-call.ts';
import { publish } from '../publishing/publish.ts';
import { readStats } from './maintenance-store.ts';
import { ResultWriter } from './result-writer.ts';
import { findEndpoint } from '../endpoints/store.ts';
import type { SendReport } from './sender.ts';
import { webhooksOf } from '../webhooks.ts';

afterEach(() => void vi.useRealTimers());

describeOutbox('writing results', (outbox) => {
  test('two hundred at most go into one statement', async () => {
    const { db, owner, endpoint, clock } = outbox;
    const mine = owner();
    await endpoint({ owner: mine });
    const claims = await db.transaction(async (tx) => {
      for (let n = 0; n < 450; n++) await publish(tx, 'order.paid', { n }, { owner: mine });
      const due = await tx.query<{ id: string }>(
        `select d.id from webhook_deliveries d join webhook_endpoints p on p.id = d.endpoint_id where p.owner_id = $1`,
        [mine],
      );
      const limits = { now: clock.now(), until: new Date(clock.now().getTime() + 60_000) };
      return claimByIds(
        tx,
        due.map(({ id }) => id),
        limits,
      );
    });
    const sizes: number[] = [];
    const writer = new ResultWriter(webhooksOf(db), 'a worker', (reports) => sizes.push(reports.length));
    for (const claim of claims) writer.add(answered(claim, clock.now()));
    await writer.flush();
    expect(sizes.toSorted((a, b) => b - a)).toEqual([200, 200, 50]);
    expect(writer.summary.succeeded).toBe(450);
  });

  test('a row that another transaction has locked holds up neither the other results nor a stop, and is written when it is free', async ({
    skip,
  }) => {
    const { db, owner, endpoint, clock } = outbox;
    if (db.dialect === 'sqlite') skip('SQLite has one writer at a time');
    const mine = owner();
    const target = await endpoint({ owner: mine });
    const claims = await Promise.all([1, 2, 3, 4].map(() => claimNew(mine)));
    const [locked, failing, ...others] = claims as [Claim, Claim, Claim, Claim];
    const stored: string[] = [];
    const writer = new ResultWriter(webhooksOf(db), 'a worker', (reports) => stored.push(...reports.map(({ claim }) => claim.id)));
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const { promise: isHeld, resolve: holding } = Promise.withResolvers<void>();
    const holder = db.transaction(async (tx) => {
      await tx.query('select id from webhook_deliveries where id = $1 for update', [locked.id]);
      await tx.query('select id from webhook_endpoints where id = $1 for update', [target.id]);
      holding();
      await held;
    });
    await isHeld;
    for (const claim of [locked, ...others]) writer.add(answered(claim, clock.now()));
    writer.add({ ...answered(failing, clock.now()), result: { kind: 'response', status: 500, retryAfter: null } });
    await vi.waitUntil(() => stored.length === 3, { timeout: 300_000 });
    expect(stored).not.toContain(locked.id);
    release();
    await holder;
    await writer.flush();
    expect(stored).toContain(locked.id);
    expect(writer.summary).toEqual({ succeeded: 3, retrying: 1, failed: 0, disabled_endpoints: 0, lost_claims: 0 });
    const rows = await outbox.deliveries({ endpoint: target.id });
    expect(rows.filter(({ status }) => status === 'succeeded')).toHaveLength(3);
    expect(await findEndpoint(db, target.id)).toMatchObject({ consecutive_failures: 1 });
  });

  test('a claim that was lost is counted where operators see it, while the worker runs', async () => {
    const { db, owner, endpoint, clock } = outbox;
    const mine = owner();
    await endpoint({ owner: mine });
    const claim = await claimNew(mine);
    await db.query('update webhook_deliveries set claim_token = $2 where id = $1', [claim.id, 'another']);
    const before = (await readStats(db, clock.now())).lost_claims;
    const writer = new ResultWriter(webhooksOf(db), 'a worker', () => undefined);
    writer.add(answered(claim, clock.now()));
    await writer.flush();
    expect((await readStats(db, clock.now())).lost_claims).toBe(before + 1);
  });

  test('a result that the database rejects fails its delivery, and the other results of its batch are stored', async () => {
    const { db, owner, endpoint, clock } = outbox;
    const mine = owner();
    const target = await endpoint({ owner: mine });
    const claims = await Promise.all([1, 2, 3, 4, 5, 6].map(() => claimNew(mine)));
    const [culprit, failing] = claims as [Claim, Claim];
    const allow = await rejectUpdates(db, 'webhook_deliveries', `new.last_status_code in (299, 599)`);
    const stored: string[] = [];
    const writer = new ResultWriter(webhooksOf(db), 'a worker', (reports) => stored.push(...reports.map(({ claim }) => claim.id)));
    for (const claim of claims) {
      const status = claim === culprit ? 299 : claim === failing ? 599 : 204;
      writer.add({ ...answered(claim, clock.now()), result: { kind: 'response', status, retryAfter: null } });
    }
    await writer.flush();
    await allow();
    expect(stored).toHaveLength(6);
    expect(writer.summary).toEqual({ succeeded: 4, retrying: 0, failed: 2, disabled_endpoints: 0, lost_claims: 0 });
    const rows = await outbox.deliveries({ endpoint: target.id });
    for (const { id } of [culprit, failing])
      expect(rows.find((row) => row.id === id)).toMatchObject({
        status: 'failed',
        attempts: 1,
        last_error: 'The result of the attempt could not be stored.',
      });
    // It says nothing about the endpoint.
    expect(await findEndpoint(db, target.id)).toMatchObject({ consecutive_failures: 0, failing_since: null });
  });

  test('a delivery of which nothing can be stored is given up: its claim expires, and the writer goes on', async () => {
    const { db, owner, endpoint, clock } = outbox;
    const mine = owner();
    await endpoint({ owner: mine });
    const [culprit, other] = [await claimNew(mine), await claimNew(mine)];
    const allow = await rejectUpdates(db, 'webhook_deliveries', `new.id = '${culprit.id}' and new.claim_token is null`);
    const writer = new ResultWriter(webhooksOf(db), 'a worker', () => undefined);
    for (const claim of [culprit, other]) writer.add(answered(claim, clock.now()));
    await writer.flush();
    await allow();
    expect(writer.summary).toMatchObject({ succeeded: 1, failed: 0 });
  });

  test('a culprit beside a row that another transaction has locked does not stop the results between them', async ({ skip }) => {
    const { db, owner, endpoint, clock } = outbox;
    if (db.dialect === 'sqlite') skip('SQLite has one writer at a time');
    const mine = owner();
    await endpoint({ owner: mine });
    const [culprit, locked, ...others] = (await Promise.all([1, 2, 3, 4].map(() => claimNew(mine)))) as [Claim, Claim, Claim, Claim];
    const allow = await rejectUpdates(db, 'webhook_deliveries', 'new.last_status_code = 299');
    const stored: string[] = [];
    const writer = new ResultWriter(webhooksOf(db), 'a worker', (reports) => stored.push(...reports.map(({ claim }) => claim.id)));
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const { promise: isHeld, resolve: holding } = Promise.withResolvers<void>();
    const holder = db.transaction(async (tx) => {
      await tx.query('select id from webhook_deliveries where id = $1 for update', [locked.id]);
      holding();
      await held;
    });
    await isHeld;
    for (const claim of [culprit, locked, ...others]) {
      const status = claim === culprit ? 299 : 204;
      writer.add({ ...answered(claim, clock.now()), result: { kind: 'response', status, retryAfter: null } });
    }
    await vi.waitUntil(() => stored.length === 3, { timeout: 300_000 });
    expect(stored).not.toContain(locked.id);
    release();
    await holder;
    await writer.flush();
    await allow();
    expect(writer.summary).toMatchObject({ succeeded: 3, failed: 1 });
  });

  async function claimNew(mine: string): Promise<Claim> {
    const { db, clock } = outbox;
    const event = await db.transaction((tx) => publish(tx, 'order.paid', {}, { owner: mine }));
    const found = await dueOfEvent(db, event.id, clock.now());
    const limits = { now: clock.now(), until: new Date(clock.now().getTime() + 60_000) };
    const [claim] = await claimByIds(
      db,
      found.map(({ id }) => id),
      limits,
    );
    if (claim === undefined) throw new Error('Nothing could be claimed.');
    return claim;
  }

  test('waits for more while they come by the dozen, unless a delivery with an ordering key waits for one of them', async () => {
    const { db, owner, endpoint, clock } = outbox;
    const mine = owner();
    await endpoint({ owner: mine });
    const claimOne = async (options: Partial<PublishOptions> = {}): Promise<Claim> => {
      const event = await db.transaction((tx) => publish(tx, 'order.paid', {}, { owner: mine, ...options }));
      const found = await dueOfEvent(db, event.id, clock.now());
      const limits = { now: clock.now(), until: new Date(clock.now().getTime() + 60_000) };
      const [claim] = await claimByIds(
        db,
        found.map(({ id }) => id),
        limits,
      );
      if (claim === undefined) throw new Error('Nothing could be claimed.');
      return claim;
    };
    const claims = await Promise.all(Array.from({ length: 30 }, () => claimOne()));
    const [one, ordered] = [await claimOne(), await claimOne({ orderingKey: 'a' })];

    const stored: string[] = [];
    const writer = new ResultWriter(webhooksOf(db), 'a worker', (reports) => stored.push(...reports.map(({ claim }) => claim.id)));
    const add = (claim: Claim): void => writer.add(answered(claim, clock.now()));
    for (const claim of claims) add(claim);
    await writer.flush();
    expect(stored).toHaveLength(30);

    vi.useFakeTimers({ toFake: ['setTimeout'] });
    add(one);
    await pause(50);
    expect(stored).not.toContain(one.id);
    add(ordered);
    await writer.flush();
    expect(stored).toEqual(expect.arrayContaining([one.id, ordered.id]));
    expect(writer.summary).toMatchObject({ succeeded: 32, lost_claims: 0 });
  });
});

function answered(claim: Claim, at: Date): SendReport {
  return { claim, result: { kind: 'response', status: 204, retryAfter: null }, startedAt: at, endedAt: at, durationMs: 1, excerpt: '' };
}
