import { expect, test } from 'vitest';
import { Steps } from './steps.ts';

test('a step runs once, and everyone who asks gets its result', async () => {
  const steps = new Steps<'open' | 'close'>();
  let runs = 0;
  const open = (): Promise<number> => steps.run('open', async () => (runs += 1));
  expect(await Promise.all([open(), open()])).toEqual([1, 1]);
  expect(await open()).toBe(1);
  expect([steps.hasBegun('open'), steps.hasBegun('close')]).toEqual([true, false]);
});

test('a step that failed is not tried again, and waiting for it does not fail', async () => {
  const steps = new Steps<'open' | 'close'>();
  const open = (): Promise<never> => steps.run('open', () => Promise.reject(new Error('no database')));
  await expect(open()).rejects.toThrow('no database');
  await expect(open()).rejects.toThrow('no database');
  await steps.settled('open', 'close');
});

test('a step that is asked for from inside itself is not run a second time', async () => {
  const steps = new Steps<'close'>();
  let runs = 0;
  const close = (): Promise<void> =>
    steps.run('close', async () => {
      runs += 1;
      await Promise.resolve();
      void close();
    });
  await close();
  expect(runs).toBe(1);
});
