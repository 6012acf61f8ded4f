import { expect, test } from 'vitest';
import { ResponseTimes } from './response-times.ts';

function measured() {
  let now = 0;
  const times = new ResponseTimes(() => now);
  return { times, wait: (ms: number) => (now += ms) };
}

test('the site is slow when more than 5 of 100 requests of the last minute took a second, and says how long', () => {
  const { times } = measured();
  for (let each = 0; each < 95; each += 1) times.note(20);
  for (let each = 0; each < 5; each += 1) times.note(2_400);
  expect(times.part).toMatchObject({ tone: 'good', text: '95 of 100 requests of the last minute took 20 ms or less.' });
  times.note(2_400);
  expect(times.part).toEqual({ name: 'Slow', tone: 'warning', text: 'in the last minute, 5 of 100 requests took 2.4 s or longer.' });
});

test('a few slow requests say nothing, and those of more than a minute ago do not count', () => {
  const { times, wait } = measured();
  for (let each = 0; each < 19; each += 1) times.note(5_000);
  expect(times.p95()).toBeNull();
  wait(60_001);
  for (let each = 0; each < 30; each += 1) times.note(10);
  expect(times.p95()).toBe(10);
});

test('of very many requests the last ones count', () => {
  const { times } = measured();
  for (let each = 0; each < 5_000; each += 1) times.note(3_000);
  for (let each = 0; each < 1_024; each += 1) times.note(7);
  expect(times.p95()).toBe(7);
});
