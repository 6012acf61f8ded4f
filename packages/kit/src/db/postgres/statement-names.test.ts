import { expect, test } from 'vitest';
import { StatementNames } from './statement-names.ts';

test('a text is named the second time it is seen, and no more than a thousand are ever named', () => {
  const names = new StatementNames();
  expect(names.nameOf('select 0')).toBeUndefined();
  const first = names.nameOf('select 0');
  expect(first).toMatch(/^k0_/);
  expect(names.nameOf('select 0')).toBe(first);
  for (let number = 1; number < 3000; number += 1) for (let time = 0; time < 2; time += 1) names.nameOf(`select ${number}`);
  const named = Array.from({ length: 3000 }, (_, number) => names.nameOf(`select ${number}`)).filter((name) => name !== undefined);
  expect(named).toHaveLength(1000);
  expect(new Set(named).size).toBe(1000);
});

test('after a change of tables every name is a new one', () => {
  const names = new StatementNames();
  names.nameOf('select 1');
  const before = names.nameOf('select 1');
  names.startOver();
  names.nameOf('select 1');
  expect(names.nameOf('select 1')).not.toBe(before);
});
