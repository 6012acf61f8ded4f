import { expect, test, vi } from 'vitest';
import { WorkLoop } from './work-loop.ts';

interface Row {
  readonly id: string;
}

/** A table of rows in memory, and what a loop did with it. */
function rowsFor(concurrency: number, run: (row: Row) => Promise<void>) {
  let next = 0;
  const asked: number[] = [];
  const released: Row[] = [];
  const ended: Row[] = [];
  let left = 0;
  let running = 0;
  let runningMax = 0;
  const loop: WorkLoop<Row, void> = new WorkLoop<Row, void>(
    {
      async claim(max) {
        asked.push(max);
        // As long as a statement takes.
        await new Promise((resolve) => setTimeout(resolve, 5));
        const count = Math.min(max, left);
        left -= count;
        return Array.from({ length: count }, () => ({ id: `r${next++}` }));
      },
      async run(row) {
        runningMax = Math.max(runningMax, ++running);
        await run(row);
        running--;
      },
      ended(row) {
        ended.push(row);
        setImmediate(() => loop.stored([row]));
      },
      async release(rows) {
        released.push(...rows);
      },
      claimFailed: () => undefined,
    },
    { concurrency, pollIntervalMs: 10, roundsAhead: 3 },
  );
  return {
    loop,
    asked,
    released,
    ended,
    add: (count: number) => void (left += count),
    runningMax: () => runningMax,
  };
}

test('rows that are run faster than they are claimed are claimed ahead, a few rounds at most, and run in the slots', async () => {
  const rows = rowsFor(10, async () => undefined);
  rows.add(500);
  await rows.loop.runOnce();
  expect(rows.ended).toHaveLength(500);
  expect(Math.max(...rows.asked)).toBeGreaterThan(10);
  expect(Math.max(...rows.asked)).toBeLessThanOrEqual(40);
  expect(rows.runningMax()).toBeLessThanOrEqual(10);
});

test('rows that were claimed ahead and find no slot are given back', async () => {
  const { promise: slow, resolve: finish } = Promise.withResolvers<void>();
  let isSlow = false;
  const rows = rowsFor(10, () => (isSlow ? slow : Promise.resolve()));
  rows.add(200);
  await rows.loop.runOnce();
  isSlow = true;
  rows.add(200);
  const running = rows.loop.runOnce();
  await vi.waitUntil(() => rows.released.length > 0, { timeout: 20_000 });
  expect(rows.loop.held).toHaveLength(10);
  await rows.loop.drain(0);
  finish();
  await running;
});

test('a row that is claimed again before its first attempt is reported as stored is waited for', async () => {
  const { promise: second, resolve: finish } = Promise.withResolvers<void>();
  const attempts: Row[] = [];
  let ended = 0;
  const loop: WorkLoop<Row, void> = new WorkLoop<Row, void>(
    {
      async claim() {
        // Due, and after its failure due again at once.
        if (attempts.length !== ended || ended === 2) return [];
        const row = { id: 'r' };
        attempts.push(row);
        return [row];
      },
      run: (row) => (row === attempts[0] ? Promise.resolve() : second),
      ended: () => void (ended += 1),
      release: async () => undefined,
      claimFailed: () => undefined,
    },
    { concurrency: 2, pollIntervalMs: 10 },
  );
  let isOver = false;
  const running = loop.runOnce().then(() => (isOver = true));
  await vi.waitUntil(() => attempts.length === 2, { timeout: 20_000 });
  loop.stored(attempts.slice(0, 1));
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  expect([isOver, loop.held]).toEqual([false, [attempts[1]]]);
  finish();
  await vi.waitUntil(() => ended === 2, { timeout: 20_000 });
  loop.stored(attempts.slice(1));
  await running;
});

test('a stop ends at its deadline, even if the time of day is set back meanwhile', async () => {
  const { promise: slow, resolve: finish } = Promise.withResolvers<void>();
  const rows = rowsFor(1, () => slow);
  rows.add(1);
  const running = rows.loop.start({ listen: async () => async () => undefined }, 'rows');
  await vi.waitUntil(() => rows.loop.held.length === 1, { timeout: 20_000 });
  vi.useFakeTimers({ toFake: ['Date'] });
  try {
    const drained = rows.loop.drain(50);
    await new Promise((resolve) => setImmediate(resolve));
    vi.setSystemTime(Date.now() - 3_600_000);
    await drained;
    expect(rows.loop.held).toHaveLength(1);
  } finally {
    vi.useRealTimers();
  }
  finish();
  await running;
});
