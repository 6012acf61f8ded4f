import { expect, onTestFinished, test, vi } from 'vitest';
import { memoryStorage } from './memory-storage.ts';
import { parseRate } from './rate.ts';
import { survivingFailure } from './storage-failure.ts';
import type { ThrottleLog, ThrottleStorage } from './storage.ts';

const NOW = new Date('2026-01-01T00:00:00Z');
const RATE = parseRate('2/min');

const refusing: ThrottleStorage = {
  take: () => Promise.reject(new Error('connection refused')),
  giveBack: () => Promise.reject(new Error('connection refused')),
};
const silent: ThrottleStorage = { take: () => new Promise(() => {}), giveBack: () => new Promise(() => {}) };

function opened(storage: ThrottleStorage): { storage: ThrottleStorage; records: string[] } {
  const records: string[] = [];
  const log: ThrottleLog = {
    error: (_, message) => records.push(`error ${message}`),
    warn: (_, message) => records.push(`warn ${message}`),
  };
  storage.open?.({ log } as never);
  return { storage, records };
}

test('while the storage is down each process limits on its own, and says so once', async () => {
  const { storage, records } = opened(survivingFailure(refusing, 'redis'));
  const allowed = [];
  for (let i = 0; i < 4; i += 1) allowed.push((await storage.take('k', RATE, NOW)).allowed);
  expect(allowed).toEqual([true, true, false, false]);
  expect(records).toEqual(['error The redis throttle storage does not answer: each process limits on its own until it does.']);
});

test('"allow" lets requests pass without inventing a budget', async () => {
  const { storage, records } = opened(survivingFailure(refusing, 'redis', { onFailure: 'allow' }));
  for (let i = 0; i < 4; i += 1) expect(await storage.take('k', RATE, NOW)).toMatchObject({ allowed: true, unmeasured: true });
  expect(records[0]).toContain('NOT limited');
});

test('"refuse" answers 503, also while the storage is left alone', async () => {
  const { storage } = opened(survivingFailure(refusing, 'redis', { onFailure: 'refuse' }));
  await expect(storage.take('k', RATE, NOW)).rejects.toMatchObject({ status: 503, code: 'unavailable' });
  await expect(storage.take('k', RATE, NOW)).rejects.toMatchObject({ status: 503, code: 'unavailable' });
});

test('a storage that never answers counts as failed after its deadline, once for all requests behind it', async () => {
  let asked = 0;
  const counting: ThrottleStorage = { ...silent, take: () => ((asked += 1), new Promise(() => {})) };
  const { storage } = opened(survivingFailure(counting, 'redis', { timeoutMs: 20 }));
  expect((await storage.take('k', RATE, NOW)).allowed).toBe(true);
  for (let i = 0; i < 5; i += 1) await storage.take('k', RATE, NOW);
  expect(asked).toBe(1);
});

test('a failed give-back never fails the request', async () => {
  const { storage } = opened(survivingFailure(silent, 'redis', { timeoutMs: 20 }));
  await expect(storage.giveBack('k', RATE, NOW)).resolves.toBeUndefined();
});

test('a storage that answers again is used again, and the log says so', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const inner = memoryStorage();
  let down = true;
  const flaky: ThrottleStorage = { ...inner, take: (...args) => (down ? refusing : inner).take(...args) };
  const { storage, records } = opened(survivingFailure(flaky, 'redis'));
  await storage.take('k', RATE, NOW);
  down = false;
  await storage.take('k', RATE, NOW);
  expect(inner.size).toBe(0);
  vi.advanceTimersByTime(1001);
  expect((await storage.take('k', RATE, NOW)).remaining).toBe(1);
  expect(inner.size).toBe(1);
  expect(records.at(-1)).toBe('warn The redis throttle storage answers again.');
});
