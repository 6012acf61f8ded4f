import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ClientPace } from './client-pace.ts';

let slow: string[] = [];
let pace: ClientPace;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
  slow = [];
  pace = new ClientPace({ verb: 'took', idleMs: 60_000, bytesPerSecond: 1000, onSlow: (why) => slow.push(why) });
});
afterEach(() => {
  pace.stop();
  vi.useRealTimers();
});

/** Takes `bytes` after every so many milliseconds of waiting. */
function take(bytes: number, everyMs: number, times: number): void {
  for (let n = 0; n < times; n += 1) {
    pace.wait();
    vi.advanceTimersByTime(everyMs);
    pace.moved(bytes);
  }
}

test('a client that takes nothing is too slow after the idle time, however much it took before', () => {
  take(100_000_000, 10, 1);
  pace.wait();
  vi.advanceTimersByTime(59_000);
  expect(slow).toEqual([]);
  vi.advanceTimersByTime(7_000);
  expect(slow).toEqual(['the client took nothing for 60000 ms']);
});

test('a client that takes less than the minimum on average is too slow, also when it took much at first', () => {
  take(100_000_000, 10, 1);
  take(1, 30_000, 1);
  take(500, 1_000, 200);
  expect(slow).toEqual(['the client took less than 1000 bytes per second over 60000 ms']);
});

test('a client at the minimum is not cut, and neither is one that takes much after long breaks', () => {
  take(1_200, 1_000, 600);
  take(60_000, 50_000, 20);
  expect(slow).toEqual([]);
});

test('time in which the client is not waited for does not count', () => {
  for (let n = 0; n < 20; n += 1) {
    take(10, 100, 1);
    vi.advanceTimersByTime(600_000);
  }
  expect(slow).toEqual([]);
});

test('time in which the process was blocked does not count', () => {
  pace.wait();
  vi.advanceTimersByTime(50_000);
  // The clock goes on, and no timer runs.
  vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 900_000);
  vi.advanceTimersToNextTimer();
  vi.restoreAllMocks();
  expect(slow).toEqual([]);
});

test('nothing is reported after the end', () => {
  pace.wait();
  pace.stop();
  vi.advanceTimersByTime(600_000);
  expect(slow).toEqual([]);
});
