import { expect, test } from 'vitest';
import { z } from 'zod';
import { compileCoercions } from '../json/coerce.ts';
import { readQuery } from './query-string.ts';
import { jsonSchemaOf } from '../declare/schema.ts';

test('a query string becomes texts, a repeated name a list', () => {
  expect(readQuery('/x?a=1&b=two%20words+more&a=2&a=3&empty=&flag&&%C3%A4=%F0%9F%98%80')).toEqual({
    a: ['1', '2', '3'],
    b: 'two words more',
    empty: '',
    flag: '',
    ä: '😀',
  });
  expect(readQuery('/x')).toEqual({});
  expect(readQuery('/x?')).toEqual({});
  expect(readQuery('/x?a=b=c')).toEqual({ a: 'b=c' });
});

test.each(['/x?a=%', '/x?a=%zz', '/x?%ff=1', '/x?a=%ED%A0%80'])('%s is refused with 400', (url) => {
  expect(() => readQuery(url)).toThrow(expect.objectContaining({ status: 400, code: 'malformed_url' }) as Error);
});

test.each(['/x?__proto__=1', '/x?a=1&__proto__=x'])('%s has an unknown parameter', (url) => {
  const errors = [expect.objectContaining({ location: ['query', '__proto__'], code: 'unknown_field' }) as unknown];
  expect(() => readQuery(url)).toThrow(expect.objectContaining({ status: 422, errors }) as Error);
});

test('inherited names are ordinary names', () => {
  expect(readQuery('/x?constructor=1&toString=2&constructor=3')).toEqual({ constructor: ['1', '3'], toString: '2' });
});

test('a flood of parameters is refused', () => {
  expect(() => readQuery(`/x?${'a&'.repeat(1001)}`)).toThrow(expect.objectContaining({ status: 414 }) as Error);
});

test('texts are coerced to what the schema takes, and left alone where they cannot be', () => {
  const schema = z.object({
    n: z.number(),
    i: z.int().optional(),
    b: z.boolean(),
    s: z.string(),
    either: z.union([z.string(), z.number()]),
    maybe: z.number().nullable(),
    list: z.array(z.int()),
    level: z.literal([1, 2]),
  });
  const coercions = compileCoercions(jsonSchemaOf(schema, 'input'));
  const coerce = (name: string, text: string | string[]) => coercions.get(name)?.(text) ?? text;
  expect([coerce('n', '1.5'), coerce('n', '-2e3'), coerce('i', '7'), coerce('maybe', '3'), coerce('level', '2')]).toEqual([
    1.5, -2000, 7, 3, 2,
  ]);
  expect([
    coerce('n', ''),
    coerce('n', ' 1'),
    coerce('n', '0x10'),
    coerce('n', '1,5'),
    coerce('i', 'Infinity'),
    coerce('i', '007'),
  ]).toEqual(['', ' 1', '0x10', '1,5', 'Infinity', '007']);
  expect([coerce('b', 'true'), coerce('b', 'false'), coerce('b', '1'), coerce('b', 'TRUE')]).toEqual([true, false, '1', 'TRUE']);
  expect([coerce('s', '1'), coerce('either', '1')]).toEqual(['1', '1']);
  expect([coerce('list', '1'), coerce('list', ['1', '2', 'x'])]).toEqual([[1], [1, 2, 'x']]);
  expect(coerce('n', ['1', '2'])).toEqual(['1', '2']);
});
