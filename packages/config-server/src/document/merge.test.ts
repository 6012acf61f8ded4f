import fc from 'fast-check';
import { expect, test } from 'vitest';
import { winningOrigin } from './explain.ts';
import { toDocumentTable } from './formats.ts';
import { joinKeyPath, leafPaths, splitKeyPath, valueAt } from './key-path.ts';
import { merge } from './merge.ts';
import { emptyTable, isTable, sameValue, type Table } from './value.ts';

const json = fc.letrec<{ table: Record<string, unknown>; value: unknown }>((tie) => ({
  table: fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd.e', '__proto__', 'constructor', '1'), tie('value'), {
    maxKeys: 4,
    noNullPrototype: false,
  }),
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.integer(),
    fc.string(),
    fc.constant(null),
    fc.boolean(),
    fc.array(fc.integer(), { maxLength: 3 }),
    tie('table'),
  ),
}));
const table = json.table.map((raw) => toDocumentTable(raw, 'test'));

function merged(...layers: Table[]): Table {
  return layers.reduce(merge);
}

function of(raw: object): Table {
  return toDocumentTable(raw as Record<string, unknown>, 'test');
}

test('tables merge deep; arrays, scalars and null replace', () => {
  const result = merged(of({ a: { x: 1, y: 2 }, list: [1, 2], gone: { deep: 1 }, kept: 1 }), of({ a: { y: 3 }, list: [9], gone: null }));
  expect(JSON.stringify(result)).toBe('{"a":{"x":1,"y":3},"list":[9],"gone":null,"kept":1}');
});

test('key order is that of the first file that has the key', () => {
  expect(Object.keys(merged(of({ z: 1, a: 1 }), of({ b: 1, z: 2 })))).toEqual(['z', 'a', 'b']);
});

test('every leaf of the last layer wins', () => {
  fc.assert(
    fc.property(table, table, (under, over) => {
      const result = merged(under, over);
      for (const path of leafPaths(over)) {
        const wanted = valueAt(over, path)!;
        const got = valueAt(result, path)!;
        expect(isTable(wanted) ? isTable(got) : sameValue(got, wanted)).toBe(true);
      }
    }),
  );
});

test('merging is idempotent, has the empty table as its neutral element and changes no layer', () => {
  fc.assert(
    fc.property(table, table, table, (a, b, c) => {
      const before = JSON.stringify([a, b, c]);
      merged(a, b, c);
      expect(sameValue(merged(a, a), a)).toBe(true);
      expect(sameValue(merged(emptyTable(), a), a)).toBe(true);
      expect(JSON.stringify([a, b, c])).toBe(before);
      expect(({} as Record<string, unknown>)['a']).toBeUndefined();
    }),
  );
});

test('equality ignores the order of keys and nothing else', () => {
  expect(sameValue(of({ a: 1, b: { c: [1, 2] } }), of({ b: { c: [1, 2] }, a: 1 }))).toBe(true);
  for (const other of [
    { a: 1 },
    { a: 1, b: { c: [2, 1] } },
    { a: '1', b: { c: [1, 2] } },
    { a: 1, b: { c: [1, 2] }, d: null },
    { a: 1, b: null },
  ]) {
    expect(sameValue(of({ a: 1, b: { c: [1, 2] } }), of(other))).toBe(false);
  }
});

test('a key path names the same keys when it is split again', () => {
  fc.assert(
    fc.property(fc.array(fc.string(), { minLength: 1 }), (keys) => {
      expect(splitKeyPath(joinKeyPath(keys))).toEqual(keys);
    }),
  );
});

test('the origin that an explanation names for a leaf is a file that holds exactly the served value there', () => {
  fc.assert(
    fc.property(fc.array(table, { minLength: 1, maxLength: 4 }), (tables) => {
      const files = tables.map((each, index) => ({ origin: `file ${index}`, table: each }));
      const document = merged(...tables);
      for (const path of leafPaths(document)) {
        const origin = winningOrigin({ files, overrides: [] }, path);
        const said = valueAt(files.find((file) => file.origin === origin)!.table, path)!;
        expect(sameValue(said, valueAt(document, path)!)).toBe(true);
      }
    }),
  );
});
