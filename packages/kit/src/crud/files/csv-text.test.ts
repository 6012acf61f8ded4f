import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type ColumnSettings, t } from '../../db/declare/column.ts';
import { csvWriter, unguarded } from './csv-text.ts';

const column = (settings: ColumnSettings | undefined) => csvWriter([{ path: ['x'], settings }], true);
const text = column(t.text().settings);
const json = column(t.json().settings);
const computed = column(undefined);

test('text that a spreadsheet would run as a formula is marked, at its start and after what other programs take for a separator', () => {
  const cells: Readonly<Record<string, string>> = {
    '=1+1': "'=1+1",
    '＝1': "'＝1",
    '＋1': "'＋1",
    '－1': "'－1",
    '＠a': "'＠a",
    ' =1': "' =1",
    ';=1': ";'=1",
    'a;=1': "a;'=1",
    'a;  ＝1': "a;'  ＝1",
    'a;;-1;b': "a;;'-1;b",
    'a\t@b': "a\t'@b",
    'a\r+b': `"a\r'+b"`,
    'a\n- b': `"a\n'- b"`,
    '\t=1': "'\t'=1",
    "'=1": "''=1",
    "a;'x": "a;''x",
    'a-b = c': 'a-b = c',
    'x;y': 'x;y',
  };
  for (const [given, cell] of Object.entries(cells)) {
    expect(text([{ x: given }])).toBe(`${cell}\r\n`);
    expect(computed([{ x: given }])).toBe(`${cell}\r\n`);
  }
});

test('JSON hides such a separator in its own way', () => {
  const [first = ''] = json([{ x: { a: 'b;=1', c: 'd;e' } }]).split('\r\n');
  expect(first).toBe(String.raw`"{""a"":""b\u003b=1"",""c"":""d;e""}"`);
  expect(JSON.parse(first.slice(1, -1).replaceAll('""', '"'))).toEqual({ a: 'b;=1', c: 'd;e' });
  expect(computed([{ x: ['1;@a'] }])).toBe(String.raw`"[""1\u003b@a""]"` + '\r\n');
});

test('what was marked is read back as it was, and no cell starts a formula', () => {
  const pieces = fc.constantFrom('=', '+', '-', '@', '＝', '＠', "'", ';', '\t', '\r', '\n', ' ', '\u00A0', 'a', '1');
  fc.assert(
    fc.property(fc.array(pieces, { minLength: 1, maxLength: 12 }), (parts) => {
      const given = parts.join('');
      const line = text([{ x: given }]).slice(0, -2);
      const cell = line.startsWith('"') ? line.slice(1, -1).replaceAll('""', '"') : line;
      expect(unguarded(cell)).toBe(given);
      expect(cell.split(/[;\t\r\n]/).filter((each) => /^[ \u00A0]*[=+\-@＝＋－＠]/u.test(each))).toEqual([]);
    }),
    { numRuns: 2000 },
  );
});
