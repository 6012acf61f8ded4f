import { expect, test } from 'vitest';
import { StatementNames } from './statement-names.ts';

const twice = (names: StatementNames, text: string) => [names.nameOf(text), names.nameOf(text)][1];

test('a text is named the second time it is seen, and no more than a thousand have a name at a time', () => {
  const names = new StatementNames();
  expect(names.nameOf('select 0')).toBeUndefined();
  const first = names.nameOf('select 0');
  expect(first).toBe('k1');
  expect(names.nameOf('select 0')).toBe(first);
  const given = new Set([first]);
  for (let number = 1; number < 3000; number += 1) given.add(twice(names, `select ${number}`));
  expect(given.size).toBe(3000);
  expect(names.staleOf([...given] as string[])).toHaveLength(2000);
});

test('texts in use keep their names, however many others come', () => {
  const names = new StatementNames(10);
  const used = twice(names, 'used');
  for (let number = 0; number < 100; number += 1) {
    twice(names, `select ${number}`);
    expect(names.nameOf('used')).toBe(used);
  }
});

test('a text that lost its name gets another one, and no name is given twice', () => {
  const names = new StatementNames(2);
  const first = twice(names, 'a');
  twice(names, 'b');
  twice(names, 'c');
  expect(names.nameOf('a')).toBeUndefined();
  expect(names.nameOf('a')).toBe('k4');
  expect(first).toBe('k1');
});

test('statements that a connection holds are stale only when there are many of them', () => {
  const names = new StatementNames(2);
  const held = Array.from({ length: 252 }, (_, index) => twice(names, `select ${index}`) as string);
  expect(names.staleOf(held)).toEqual([]);
  held.push(twice(names, 'one more') as string);
  expect(names.staleOf(held)).toEqual(held.slice(0, -2));
});

test('after a change of tables every name is a new one', () => {
  const names = new StatementNames();
  const before = twice(names, 'select 1');
  names.startOver();
  expect(twice(names, 'select 1')).not.toBe(before);
  expect(before).toBeDefined();
});
