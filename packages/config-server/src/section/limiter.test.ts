import { expect, test } from 'vitest';
import { Limiter } from './limiter.ts';

test('at most so many run at once, in the order they came, and a failure gives its place on', async () => {
  const limiter = new Limiter(8);
  const order: number[] = [];
  let running = 0;
  let most = 0;
  const work = async (index: number): Promise<void> => {
    order.push(index);
    most = Math.max(most, ++running);
    await new Promise((resolve) => setImmediate(resolve));
    running--;
    if (index % 3 === 0) throw new Error('failed');
  };
  const results = await Promise.allSettled(Array.from({ length: 50 }, (_, index) => limiter.run(() => work(index))));
  expect(most).toBe(8);
  expect(order).toEqual(Array.from({ length: 50 }, (_, index) => index));
  expect(results.filter((result) => result.status === 'rejected')).toHaveLength(17);
});
