import { expect, test, vi } from 'vitest';
import { Retention } from './retention.ts';

const nap = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test('batches follow one another until nothing is left, and take a tenth of the time', async () => {
  const begun: number[] = [];
  const failed = vi.fn();
  const retention = new Retention(
    {
      prune: async () => {
        begun.push(performance.now());
        await nap(20);
        return begun.length < 4 ? 500 : 0;
      },
      failed,
    },
    { firstMs: 1 },
  );
  retention.start();
  await vi.waitFor(() => expect(begun).toHaveLength(4));
  await nap(300);
  await retention.stop();
  expect(begun).toHaveLength(4);
  const pauses = begun.slice(1).map((at, index) => at - (begun[index] ?? 0));
  for (const pause of pauses) expect(pause).toBeGreaterThan(150);
  expect(failed).not.toHaveBeenCalled();
});

test('an error is reported and does not end it; a stop waits for the batch under way', async () => {
  const failed = vi.fn();
  let ended = false;
  const retention = new Retention(
    {
      prune: async () => {
        await nap(50);
        ended = true;
        throw new Error('the database is away');
      },
      failed,
    },
    { firstMs: 1 },
  );
  retention.start();
  await nap(20);
  await retention.stop();
  expect(ended).toBe(true);
  expect(failed).toHaveBeenCalledOnce();
});

test('a stop before the first batch removes nothing', async () => {
  const prune = vi.fn(async () => 0);
  const retention = new Retention({ prune, failed: () => undefined });
  retention.start();
  await retention.stop();
  expect(prune).not.toHaveBeenCalled();
});
