import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { describeOutbox } from '../../../test/webhooks/outbox.ts';
import { claimByIds, dueOfEvent, type Claim } from './claim-store.ts';
import { publish, type PublishOptions } from './publish.ts';
import { ResultWriter } from './result-writer.ts';
import { webhooksOf } from './webhooks.ts';

afterEach(() => void vi.useRealTimers());

describeOutbox('writing results', (outbox) => {
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
    const add = (claim: Claim): void =>
      writer.add({
        claim,
        result: { kind: 'response', status: 204, retryAfter: null },
        startedAt: clock.now(),
        endedAt: clock.now(),
        durationMs: 1,
        excerpt: '',
      });
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
