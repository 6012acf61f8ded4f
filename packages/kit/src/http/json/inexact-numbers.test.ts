import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isInexact } from './inexact-numbers.ts';
import { parseJson, readJson } from './parse-json.ts';

test.each([
  ['9007199254740991', false],
  ['9007199254740992', false],
  ['9007199254740993', true],
  ['-9007199254740993', true],
  ['9007199254740993.0', true],
  ['9.007199254740993e15', true],
  ['90071992547409930e-1', true],
  ['12345678901234567890', true],
  ['1152921504606846976', true],
  ['100000000000000000000', false],
  ['1e300', false],
  ['0.1234567890123456789', false],
  ['123456789012345.123456789', false],
  ['0000', false],
])('%s is read as another number: %s', (literal, expected) => {
  expect(isInexact(literal)).toBe(expected);
});

test('what JSON.stringify writes is read exactly', () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
      expect(readJson(JSON.stringify(value)).inexact ?? []).toEqual([]);
    }),
  );
});

test('numbers that are not read exactly are found where they are, digits in strings are not', () => {
  const text = '{"id":"12345678901234567890","a":[1,{"b":12345678901234567890}],"12345678901234567890":9007199254740993,"c":1}';
  expect(readJson(text).inexact).toEqual([['a', 1, 'b'], ['12345678901234567890']]);
});

test('a body that is such a number is 422', () => {
  expect(() => parseJson(Buffer.from('12345678901234567890'))).toThrow(
    expect.objectContaining({ status: 422, errors: [expect.objectContaining({ code: 'number_not_exact', location: ['body'] })] }),
  );
});
