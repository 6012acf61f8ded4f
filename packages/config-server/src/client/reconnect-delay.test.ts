import { expect, test } from 'vitest';
import { reconnectDelay } from './reconnect-delay.ts';

const state = { failures: 0, retryMs: undefined, retryAfterMs: undefined, retryMaxMs: 30_000 };

test('attempts are spread over the whole interval and never immediate', () => {
  expect(reconnectDelay(state, 0)).toBe(100);
  expect(reconnectDelay(state, 0.999)).toBeGreaterThan(990);
});

test("the server's advice sets the interval, failures double it, the maximum bounds it", () => {
  expect(reconnectDelay({ ...state, retryMs: 3_000 }, 1)).toBe(3_000);
  expect(reconnectDelay({ ...state, retryMs: 3_000, failures: 2 }, 1)).toBe(12_000);
  expect(reconnectDelay({ ...state, failures: 1_000_000 }, 1)).toBe(30_000);
  expect(reconnectDelay({ ...state, retryMs: 999_999_999 }, 1)).toBe(30_000);
});

test('advice to come back at once is not followed', () => {
  expect(reconnectDelay({ ...state, retryMs: 0 }, 0)).toBe(50);
  expect(reconnectDelay({ ...state, retryMs: 0, failures: 1 }, 1)).toBe(1_000);
});

test('Retry-After is a floor', () => {
  expect(reconnectDelay({ ...state, retryAfterMs: 5_000 }, 0)).toBe(5_100);
});
