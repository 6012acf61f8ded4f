import { expect, test } from 'vitest';
import { TICK_MS, waitForRefusalTick } from './refusal-tick.ts';

test('a refusal is sent on a tick: not before a whole one has passed, whatever was done since', async () => {
  for (const workMs of [0, 3, 9, 17]) {
    const startedAt = performance.now();
    while (performance.now() < startedAt + workMs);
    await waitForRefusalTick(startedAt);
    const answeredAt = performance.now();
    expect(answeredAt - startedAt).toBeGreaterThanOrEqual(TICK_MS);
    expect(answeredAt).toBeGreaterThanOrEqual((Math.floor(startedAt / TICK_MS) + 2) * TICK_MS);
  }
});

test('work that outlasts its tick is answered on a later one', async () => {
  const startedAt = performance.now();
  while (performance.now() < startedAt + 3 * TICK_MS);
  const doneAt = performance.now();
  await waitForRefusalTick(startedAt);
  expect(Math.floor(performance.now() / TICK_MS)).toBeGreaterThan(Math.floor(doneAt / TICK_MS));
});

test('requests that wait for the same tick share it', () => {
  const startedAt = performance.now();
  expect(waitForRefusalTick(startedAt)).toBe(waitForRefusalTick(startedAt));
});
