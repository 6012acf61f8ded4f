import { expect, test } from 'vitest';
import { table, tree } from './terminal.ts';

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

test('a tree shows what belongs to what, and keeps a text of several lines in its place', () => {
  const below = [
    { text: 'a', below: [{ text: 'one\ntwo' }, { text: 'three' }] },
    { text: 'b', below: [{ text: 'four\nfive' }] },
  ];
  expect(tree({ text: 'root', below })).toEqual([
    'root',
    '├─ a',
    '│  ├─ one',
    '│  │  two',
    '│  └─ three',
    '└─ b',
    '   └─ four',
    '      five',
  ]);
});
