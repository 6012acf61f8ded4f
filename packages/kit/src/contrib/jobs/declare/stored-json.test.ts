import { expect, test } from 'vitest';
import { jsonTextOf, jsonValueOf } from './stored-json.ts';

const circle: Record<string, unknown> = {};
circle['self'] = circle;

const nested = (levels: number): unknown => Array.from({ length: levels }).reduce((inner) => [inner], 1);

test('a value has at most 500 levels, however deep it is', () => {
  expect(jsonTextOf(nested(500))).toHaveProperty('text');
  for (const levels of [501, 3000, 20_000])
    expect(jsonTextOf(nested(levels))).toEqual({ fault: 'It has more than 500 levels of objects and lists.' });
});

test('a value whose getter throws cannot be stored, for the reason that the getter gives', () => {
  const value = {
    get lines(): never {
      throw new Error('the connection is closed');
    },
  };
  expect(jsonTextOf(value)).toEqual({ fault: 'the connection is closed' });
});

test.each([
  [new Map([[1, 2]]), 'It is a Map, which JSON cannot store.'],
  [{ lines: [1, new Set()] }, 'lines.1 is a Set, which JSON cannot store.'],
  [{ at: { n: Number.NaN } }, 'at.n is NaN, which JSON cannot store.'],
  [[Infinity], '0 is Infinity, which JSON cannot store.'],
  [{ error: new Error('lost') }, 'error is an Error, which JSON cannot store.'],
  [{ error: new TypeError('lost') }, 'error is an Error, which JSON cannot store.'],
  [[undefined], '0 is undefined, which JSON cannot store.'],
  // oxlint-disable-next-line no-sparse-arrays -- a hole is what the test is about
  [[1, , 2], '1 is undefined, which JSON cannot store.'],
  [{ run: () => 1 }, 'run is a function, which JSON cannot store.'],
  [Symbol('x'), 'It is a symbol, which JSON cannot store.'],
  [{ big: 1n }, 'big is a bigint, which JSON cannot store.'],
  [new Uint8Array(2), 'It is a Uint8Array, which JSON cannot store.'],
  [{ bytes: Buffer.from('x') }, 'bytes is a Buffer, which JSON cannot store.'],
  [{ at: new Date(Number.NaN) }, 'at is an invalid date, which JSON cannot store.'],
  [Promise.resolve(), 'It is a Promise, which JSON cannot store.'],
  [/x/, 'It is a RegExp, which JSON cannot store.'],
  [circle, 'self is an object that contains itself, which JSON cannot store.'],
])('a value that JSON would change is named with its place: %o', (value, fault) => {
  expect(jsonTextOf(value)).toEqual({ fault });
});

class Row {
  readonly id = 1;
}

test.each([
  [{ a: [1, 'x', null, true], b: { c: undefined } }, '{"a":[1,"x",null,true],"b":{}}'],
  [new Date(0), '"1970-01-01T00:00:00.000Z"'],
  [new Row(), '{"id":1}'],
  [Object.create(null), '{}'],
  [[circle['none'] ?? null, { a: 1 }, { a: 1 }], '[null,{"a":1},{"a":1}]'],
  [null, 'null'],
  [undefined, ''],
])('a value that JSON has is stored: %o', (value, text) => {
  expect(jsonTextOf(value)).toEqual({ text });
});

test('undefined comes back as undefined, null as null', () => {
  expect(jsonValueOf('')).toBeUndefined();
  expect(jsonValueOf('null')).toBeNull();
});
