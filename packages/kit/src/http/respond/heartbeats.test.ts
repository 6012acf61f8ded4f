import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { beatRegularly } from './heartbeats.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('thousands of streams have one timer, and each a heartbeat in every interval', () => {
  const beats = Array.from({ length: 2_000 }, () => 0);
  const ends = beats.map((_, index) => beatRegularly(16_000, { heartbeat: () => void ((beats[index] as number) += 1) }));
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(16_000);
  expect(new Set(beats)).toEqual(new Set([1]));
  vi.advanceTimersByTime(32_000);
  expect(new Set(beats)).toEqual(new Set([3]));
  for (const end of ends) end();
  expect(vi.getTimerCount()).toBe(0);
});

test('not all of them are written to at the same time', () => {
  let beats = 0;
  const ends = Array.from({ length: 1_600 }, () => beatRegularly(16_000, { heartbeat: () => void (beats += 1) }));
  vi.advanceTimersByTime(1_000);
  expect(beats).toBe(100);
  for (const end of ends) end();
});

test('a stream that has ended gets none, and ends once', () => {
  let beats = 0;
  const other = beatRegularly(160, { heartbeat: () => undefined });
  const end = beatRegularly(160, { heartbeat: () => void (beats += 1) });
  end();
  end();
  vi.advanceTimersByTime(1_000);
  expect(beats).toBe(0);
  expect(vi.getTimerCount()).toBe(1);
  other();
});
