import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalJson, plainJson } from './canonical-json.ts';

test('the order of members does not change the text that is hashed, at any depth', () => {
  const shuffled = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(shuffled);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .map(([name, member]) => [name, shuffled(member)] as const)
        .reverse(),
    );
  };
  fc.assert(fc.property(fc.jsonValue(), (value) => canonicalJson(value) === canonicalJson(shuffled(plainJson(value)))));
});

test('values have the same text exactly when they are equal', () => {
  const small = fc.letrec((tie) => ({
    value: fc.oneof({ maxDepth: 2 }, fc.constantFrom(null, 0, 1, '', '1', 'a'), fc.array(tie('value'), { maxLength: 2 }), tie('object')),
    object: fc.dictionary(fc.constantFrom('', 'a', 'b', '1'), tie('value'), { maxKeys: 2 }),
  })).value;
  fc.assert(
    fc.property(small, small, (a, b) => (canonicalJson(a) === canonicalJson(b)) === isDeepStrictEqual(plainJson(a), plainJson(b))),
    { numRuns: 2000 },
  );
  expect(canonicalJson({ a: 1 })).not.toBe(canonicalJson([['a', 1]]));
  expect(canonicalJson(['1'])).not.toBe(canonicalJson([1]));
  expect(canonicalJson({ a: { b: 1 } })).not.toBe(canonicalJson({ a: [['b', 1]] }));
});

test('dates, bigints, toJSON and what JSON leaves out read as they come back from a JSON column', () => {
  const odd = fc.oneof(fc.date(), fc.bigInt(), fc.constant(undefined), fc.constant(Number.NaN), fc.constant(-0));
  const value = fc.oneof(odd, fc.dictionary(fc.string(), fc.oneof(odd, fc.jsonValue())), fc.array(fc.oneof(odd, fc.jsonValue())));
  fc.assert(fc.property(value, (item) => canonicalJson(item) === canonicalJson(plainJson(item))));
});

test('the text stays as it was: hashes of stored entries depend on it', () => {
  expect(canonicalJson({ b: [1, { 2: 'x', 10: null }], a: 'é"', __proto__: undefined })).toBe(
    '{"":[["a","é\\""],["b",[1,{"":[["10",null],["2","x"]]}]]]}',
  );
});
