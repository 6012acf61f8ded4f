import { expect, test } from 'vitest';
import { costRatio, sideOfTurn } from './against.ts';
import { contest, ratioOf, type Contender } from './contest.ts';
import { passes, ratioLine } from './ratio.ts';
import { cpuTime, isDisturbed, stolenShare } from './disturbance.ts';
import { ownContenders } from './turns.ts';

test('contenders take turns in every round, each goes first in turn, and the warm-up round does not count', async () => {
  const calls: string[] = [];
  const rate = (name: string, value: number) => ({ name, measure: async () => (calls.push(name), calls.length <= 2 ? 1e9 : value) });
  const context = { quick: true, rounds: 3, roundSeconds: 1, print: () => undefined };
  const result = await contest(context, [rate('ours', 50), rate('theirs', 100)]);
  expect(calls.join(' ')).toBe('ours theirs theirs ours ours theirs theirs ours');
  expect(ratioOf(result, 'ours', 'theirs')).toBe(0.5);
});

test('a ratio is of rates of the same round: a machine that is slow for some rounds does not change it', async () => {
  const machine = [1, 1, 0.1, 1, 0.1, 0.2];
  const rate = (name: string, value: number) => {
    let round = 0;
    return { name, measure: async () => value * (machine[round++] ?? 1) };
  };
  const context = { quick: true, rounds: machine.length - 1, roundSeconds: 1, print: () => undefined };
  expect(ratioOf(await contest(context, [rate('ours', 90), rate('theirs', 100)]), 'ours', 'theirs')).toBeCloseTo(0.9);
});

test('a ratio passes at its floor, or at its ceiling when it is a cost', () => {
  expect(ratioLine({ name: 'read', value: 0.75, goal: 0.75 })).toBe('RATIO read 0.7500 goal 0.75 pass');
  expect(ratioLine({ name: 'read', value: 0.7, goal: 0.75 })).toBe('RATIO read 0.7000 goal 0.75 fail');
  expect(passes({ name: 'cost', value: 1.3, goal: 1.2, atMost: true })).toBe(false);
});

test('two commits take turns, each goes first in turn, and what an operation costs is compared round by round', () => {
  expect(Array.from({ length: 8 }, (_, turn) => sideOfTurn(turn)).join(' ')).toBe('before after after before before after after before');
  // The machine is twice as slow in the second round and the warm-up does not count: after costs a tenth more.
  expect(costRatio({ contender: 'kit', before: [900, 10, 20, 10], after: [1, 11, 22, 11] })).toBeCloseTo(1.1);
});

test('of a contest between two commits only our own contenders are measured, and all where none is named so', async () => {
  const contender = (name: string): Contender => ({ name, measure: async () => 1 });
  const names = (all: readonly string[]) => ownContenders(all.map(contender)).map(({ name }) => name);
  expect(names(['kit', 'pg-boss', 'kit, cached', 'bare pg'])).toEqual(['kit', 'kit, cached']);
  expect(names(['config-server', 'nginx'])).toEqual(['config-server']);
  expect(names(['empty', 'a million finished'])).toEqual(['empty', 'a million finished']);
  const measured: string[] = [];
  const turns = { beginContest: () => undefined, measure: async ({ name }: Contender) => (measured.push(name), 1) };
  await contest({ quick: true, rounds: 1, roundSeconds: 1, print: () => undefined, turns }, [contender('kit'), contender('bullmq')]);
  expect(measured).toEqual(['kit', 'kit']);
});

test('CPU time that the host gave to others is a share of all time between two readings', () => {
  const reading = (user: number, idle: number, stolen: number) => cpuTime(`cpu  ${user} 0 10 ${idle} 5 0 0 ${stolen} 7 0\ncpu0 1 2 3\n`);
  expect(stolenShare(reading(100, 100, 20), reading(150, 120, 50))).toBe(0.3);
  expect(stolenShare(reading(100, 100, 20), reading(100, 100, 20))).toBe(0);
  expect(stolenShare(cpuTime(''), cpuTime(''))).toBe(0);
});

test('a run is disturbed when the host took time from it and from a machine that only computes, not when its own disk writes count as taken', () => {
  expect(isDisturbed({ during: 0.2, before: 0.1, after: 0 })).toBe(true);
  expect(isDisturbed({ during: 0.2, before: 0, after: 0.1 })).toBe(true);
  expect(isDisturbed({ during: 0.2, before: 0.01, after: 0.01 })).toBe(false);
  expect(isDisturbed({ during: 0.01, before: 0.2, after: 0.2 })).toBe(false);
});
