import { expect, test } from 'vitest';
import { contest, ratioOf } from './contest.ts';
import { passes, ratioLine } from './ratio.ts';

test('contenders take turns in every round, each goes first in turn, and the warm-up round does not count', async () => {
  const calls: string[] = [];
  const rate = (name: string, value: number) => ({ name, measure: async () => (calls.push(name), calls.length <= 2 ? 1e9 : value) });
  const context = { quick: true, rounds: 3, roundSeconds: 1, print: () => undefined };
  const result = await contest(context, [rate('ours', 50), rate('theirs', 100)]);
  expect(calls.join(' ')).toBe('ours theirs theirs ours ours theirs theirs ours');
  expect(ratioOf(result, 'ours', 'theirs')).toBe(0.5);
});

test('a ratio passes at its floor, or at its ceiling when it is a cost', () => {
  expect(ratioLine({ name: 'read', value: 0.75, goal: 0.75 })).toBe('RATIO read 0.7500 goal 0.75 pass');
  expect(ratioLine({ name: 'read', value: 0.7, goal: 0.75 })).toBe('RATIO read 0.7000 goal 0.75 fail');
  expect(passes({ name: 'cost', value: 1.3, goal: 1.2, atMost: true })).toBe(false);
});
