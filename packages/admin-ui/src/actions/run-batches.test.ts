import { expect, test } from 'vitest';
import { runBatches, type BatchProgress } from './run-batches.ts';

const ids = Array.from({ length: 250 }, (_, index) => `id-${index}`);

test('every record is hit once, in batches, and the way is shown', async () => {
  const sent: string[][] = [];
  const seen: number[] = [];
  const end = await runBatches({
    ids,
    size: 100,
    send: (batch) => {
      sent.push([...batch]);
      return Promise.resolve({ message: 'done' });
    },
    onProgress: ({ done }) => seen.push(done),
    isStopped: () => false,
  });
  expect(sent.map((batch) => batch.length)).toEqual([100, 100, 50]);
  expect(sent.flat()).toEqual(ids);
  expect(seen).toEqual([100, 200, 250]);
  expect(end.rest).toEqual([]);
});

test('stopping ends after the batch under way, and the rest is known', async () => {
  let stopped = false;
  const end = await runBatches({
    ids,
    size: 100,
    send: () => Promise.resolve({ message: 'done' }),
    onProgress: () => (stopped = true),
    isStopped: () => stopped,
  });
  expect(end.done).toBe(100);
  expect(end.rest).toEqual(ids.slice(100));
});

test('what a failed request was about is not counted as done', async () => {
  let last: BatchProgress | undefined;
  let turn = 0;
  const run = runBatches({
    ids,
    size: 100,
    send: () => (++turn === 2 ? Promise.reject(new Error('gone')) : Promise.resolve({ message: 'done' })),
    onProgress: (progress) => (last = progress),
    isStopped: () => false,
  });
  await expect(run).rejects.toThrow('gone');
  expect(last?.rest).toEqual(ids.slice(100));
});

test('work that the server has left is sent next, and counts as done when nothing of it is left', async () => {
  const sent: string[][] = [];
  const seen: number[] = [];
  const end = await runBatches({
    ids: ['a', 'b'],
    size: 100,
    send: (batch) => {
      sent.push([...batch]);
      return Promise.resolve(sent.length === 1 ? { message: 'some', rest: ['a, the rest', 'b'] } : { message: 'all' });
    },
    onProgress: ({ done }) => seen.push(done),
    isStopped: () => false,
  });
  expect(sent).toEqual([
    ['a', 'b'],
    ['a, the rest', 'b'],
  ]);
  expect(seen).toEqual([0, 2]);
  expect(end).toMatchObject({ done: 2, rest: [] });
});

test('what failed for single records is gathered over all batches', async () => {
  const end = await runBatches({
    ids,
    size: 100,
    send: (batch) => Promise.resolve({ message: 'done', failures: [{ id: batch[0] ?? '', message: 'held by a worker' }] }),
    onProgress: () => {},
    isStopped: () => false,
  });
  expect(end.failures.map(({ id }) => id)).toEqual(['id-0', 'id-100', 'id-200']);
});
