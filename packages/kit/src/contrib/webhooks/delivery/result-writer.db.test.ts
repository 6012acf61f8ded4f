import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { describeOutbox } from '../../../../test/webhooks/outbox.ts';
import { claimByIds, dueOfEvent, type Claim } from './claim-store.ts';
import { publish, type PublishOptions } from '../publishing/publish.ts';
import { ResultWriter } from './result-writer.ts';
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
