import { expect, test } from 'vitest';
import { enforceThrottles, throttledError } from './enforce.ts';
import { memoryStorage } from './memory-storage.ts';
import type { ThrottleContext } from './throttle.ts';
import { anonymousThrottle, clientThrottle } from './throttles.ts';

const NOW = new Date('2026-01-01T00:00:00Z');
const context: ThrottleContext = { clientAddress: '203.0.113.7', principal: null, tenant: null, rates: {} };

test('throttles of another phase are not asked', async () => {
  const storage = memoryStorage();
  const throttles = [clientThrottle('1/min'), anonymousThrottle('1/min')];
  const outcome = await enforceThrottles(throttles, 'client', context, storage, NOW);
  expect(outcome.results.map(({ policy }) => policy)).toEqual(['client']);
  expect(storage.size).toBe(1);
});

test('a request refused by one budget is given back to the others', async () => {
  const storage = memoryStorage();
  const sustained = anonymousThrottle('1000/day', { name: 'sustained' });
  const throttles = [sustained, anonymousThrottle('2/min', { name: 'burst' })];
  const outcomes = [];
  for (let i = 0; i < 10; i += 1) outcomes.push(await enforceThrottles(throttles, 'principal', context, storage, NOW));
  expect(outcomes.filter(({ refused }) => refused === null)).toHaveLength(2);
  expect(outcomes.at(-1)?.refused?.policy).toBe('burst');
  expect(outcomes.at(-1)?.results[0]?.decision.remaining).toBe(998);
  const after = await enforceThrottles([sustained], 'principal', context, storage, NOW);
  expect(after.results[0]?.decision.remaining).toBe(997);
});

test('the 429 says when to come back and which policy refused, in whole seconds rounded up', async () => {
  const storage = memoryStorage();
  const throttles = [anonymousThrottle('7/min')];
  for (let i = 0; i < 7; i += 1) await enforceThrottles(throttles, 'principal', context, storage, NOW);
  const { refused } = await enforceThrottles(throttles, 'principal', context, storage, NOW);
  if (refused === null) throw new Error('the eighth request must be refused');
  const error = throttledError(refused);
  expect(error).toMatchObject({ status: 429, code: 'throttled', headers: { 'retry-after': '9' }, extensions: { policy: 'anonymous' } });
  expect(error.detail).toBe('Too many requests. Try again in 9 seconds.');
});
