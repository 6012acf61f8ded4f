import { expect, test } from 'vitest';
import { rateLimitHeaders } from './headers.ts';
import { parseRate } from './rate.ts';
import type { ThrottleDecision } from './storage.ts';

const decision = (given: Partial<ThrottleDecision>): ThrottleDecision => ({
  allowed: true,
  limit: 10,
  remaining: 5,
  resetMs: 30_000,
  nextMs: 4500,
  retryAfterMs: 0,
  ...given,
});

test('one budget is stated in both generations of headers', () => {
  expect(rateLimitHeaders([{ policy: 'user', rate: parseRate('10/min'), decision: decision({}) }])).toEqual({
    'ratelimit-limit': '10',
    'ratelimit-remaining': '5',
    'ratelimit-reset': '30',
    'ratelimit-policy': '"user";q=10;w=60',
    ratelimit: '"user";r=5;t=5',
  });
});

test('of several budgets the tightest fills the single-valued headers, the lists name all', () => {
  const burst = { policy: 'burst', rate: parseRate('10/s'), decision: decision({ remaining: 9, resetMs: 100, nextMs: 100 }) };
  const daily = { policy: 'daily', rate: parseRate('1000/day'), decision: decision({ limit: 1000, remaining: 3, resetMs: 80_000_000 }) };
  const headers = rateLimitHeaders([burst, daily]);
  expect(headers).toMatchObject({ 'ratelimit-limit': '1000', 'ratelimit-remaining': '3', 'ratelimit-reset': '80000' });
  expect(headers['ratelimit-policy']).toBe('"burst";q=10;w=1, "daily";q=1000;w=86400');
  expect(headers['ratelimit']).toBe('"burst";r=9;t=1, "daily";r=3;t=5');
});

test('a refusing budget is the tightest', () => {
  const open = { policy: 'a', rate: parseRate('10/s'), decision: decision({ remaining: 0 }) };
  const refused = { policy: 'b', rate: parseRate('7/s'), decision: decision({ allowed: false, limit: 7, remaining: 2 }) };
  expect(rateLimitHeaders([open, refused])['ratelimit-limit']).toBe('7');
});

test('an answer no budget governs has no headers, and an unmeasured one invents none', () => {
  expect(rateLimitHeaders([])).toEqual({});
  expect(rateLimitHeaders([{ policy: 'user', rate: parseRate('1/s'), decision: decision({ unmeasured: true }) }])).toEqual({});
});
