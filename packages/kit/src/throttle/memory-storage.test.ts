import { expect, test } from 'vitest';
import { memoryStorage } from './memory-storage.ts';
import { parseRate } from './rate.ts';

const START_MS = Date.UTC(2026, 0, 1);
const at = (ms: number): Date => new Date(START_MS + ms);

test('budgets that are whole again are forgotten', async () => {
  const storage = memoryStorage();
  const rate = parseRate('10/s');
  for (let i = 0; i < 900; i += 1) await storage.take(`k${i}`, rate, at(0));
  expect(storage.size).toBe(900);
  for (let i = 0; i < 200; i += 1) await storage.take('other', parseRate('1000/s'), at(60_000 + i));
  expect(storage.size).toBe(1);
});

test('a flood of new callers evicts the budgets unused for longest and never grows past the bound', async () => {
  const storage = memoryStorage({ keysMax: 100 });
  const rate = parseRate('2/hour');
  await storage.take('early', rate, at(0));
  for (let i = 0; i < 99; i += 1) await storage.take(`k${i}`, rate, at(1));
  await storage.take('early', rate, at(2));
  for (let i = 0; i < 50; i += 1) await storage.take(`flood${i}`, rate, at(3));
  expect(storage.size).toBe(100);
  expect((await storage.take('early', rate, at(4))).allowed).toBe(false);
});

test('a bound below one is refused', () => {
  expect(() => memoryStorage({ keysMax: 0 })).toThrow('keysMax');
});
