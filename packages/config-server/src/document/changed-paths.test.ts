import fc from 'fast-check';
import { expect, test } from 'vitest';
import { changedPaths } from './changed-paths.ts';
import { leafPaths, valueAt } from './key-path.ts';
import { isTable, sameValue, type Table } from './value.ts';

const changes = (before: unknown, after: unknown): string[] => changedPaths(before as Table, after as Table).map((path) => path.join('/'));

test('added, removed and changed leaves are named; equal ones and moved ones are not', () => {
  const before = { a: 1, b: { c: [1, 2], d: null, e: { f: 1 } }, gone: { x: 1, y: { z: 2 } }, empty: {} };
  const after = { b: { e: { f: 2 }, c: [2, 1], d: null, added: true }, a: 1, empty: {}, fresh: {}, gone: 3 };
  expect(changes(before, after)).toEqual(['b/c', 'b/e/f', 'b/added', 'gone/x', 'gone/y/z', 'gone', 'fresh']);
  expect(changes(before, structuredClone(before))).toEqual([]);
});

test('a key such as __proto__ is data', () => {
  const table = (value: number): Table => Object.assign(Object.create(null) as Table, { ['__proto__']: value, constructor: 1 });
  expect(changedPaths(table(1), table(2))).toEqual([['__proto__']]);
});

test('a document has no changed paths exactly when it equals the other one', () => {
  const document = fc.letrec<{ table: unknown; value: unknown }>((tie) => ({
    table: fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('value'), { maxKeys: 3 }),
    value: fc.oneof({ maxDepth: 3 }, fc.constantFrom(1, 2, null, 'x'), fc.array(fc.constantFrom(1, 2), { maxLength: 2 }), tie('table')),
  })).table;
  fc.assert(
    fc.property(document, document, (before, after) => {
      const [a, b] = [before as Table, after as Table];
      const changed = changedPaths(a, b);
      expect(changed.length === 0).toBe(sameValue(a, b));
      // A leaf of both documents is named exactly when its value differs.
      const named = new Set(changed.map((path) => path.join('/')));
      for (const path of leafPaths(b)) {
        const [old, fresh] = [valueAt(a, path), valueAt(b, path)];
        // A table that lost its last key is reported by the keys it lost.
        if (isTable(fresh)) continue;
        expect(named.has(path.join('/'))).toBe(old === undefined || !sameValue(old, fresh!));
      }
    }),
  );
});
