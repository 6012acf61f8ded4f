import { expect, test } from 'vitest';
import { BEAT_MS, beatAfter } from './answer-beat.ts';

test('an answer leaves on the beat: not before a whole one has passed, whatever was done since', async () => {
  for (const workMs of [0, 3, 9, 17]) {
    const startedAt = performance.now();
    while (performance.now() < startedAt + workMs);
    await beatAfter(startedAt);
    const answeredAt = performance.now();
    expect(answeredAt - startedAt).toBeGreaterThanOrEqual(BEAT_MS);
    expect(answeredAt).toBeGreaterThanOrEqual((Math.floor(startedAt / BEAT_MS) + 2) * BEAT_MS);
  }
});

test('work that outlasts its beat is answered on a later one', async () => {
  const startedAt = performance.now();
  while (performance.now() < startedAt + 3 * BEAT_MS);
  const doneAt = performance.now();
  await beatAfter(startedAt);
  expect(Math.floor(performance.now() / BEAT_MS)).toBeGreaterThan(Math.floor(doneAt / BEAT_MS));
});

test('whoever waits for the same beat waits together', () => {
  const startedAt = performance.now();
  expect(beatAfter(startedAt)).toBe(beatAfter(startedAt));
});
