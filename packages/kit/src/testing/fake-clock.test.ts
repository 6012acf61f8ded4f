import { expect, test } from 'vitest';
import { fakeClock } from './fake-clock.ts';

test('the clock stands still until it is moved', () => {
  const clock = fakeClock('2026-03-01T00:00:00Z');
  expect(clock.now()).toEqual(clock.now());
  clock.advance(61_000);
  expect(clock.now().toISOString()).toBe('2026-03-01T00:01:01.000Z');
  clock.set('2020-02-29T00:00:00Z');
  expect(clock.now().toISOString()).toBe('2020-02-29T00:00:00.000Z');
});

test('changing a date that was handed out does not change the time', () => {
  const clock = fakeClock();
  clock.now().setFullYear(1999);
  expect(clock.now().getFullYear()).toBe(2026);
});

test('an instant or a step that is not one is refused with a sentence', () => {
  expect(() => fakeClock('yesterday')).toThrow('"yesterday" is not a date');
  expect(() => fakeClock().advance(Number.NaN)).toThrow('advance() takes milliseconds');
});
