import { expect, test } from 'vitest';
import { table } from './terminal.ts';

test('columns line up and no line ends in spaces', () => {
  expect(
    table(
      ['A', 'LONG', 'C'],
      [
        ['1', '2', '3'],
        ['wide cell', '', ''],
      ],
    ),
  ).toEqual(['A          LONG  C', '1          2     3', 'wide cell']);
  expect(table(['A', 'B'], [])).toEqual(['A  B']);
});
