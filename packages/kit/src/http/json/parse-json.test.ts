import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { KitError } from '../../errors/kit-error.ts';
import { INPUT_LIMITS } from '../../options/input-limits.ts';
import { parseJson, readJson } from './parse-json.ts';

const parse = (text: string | Buffer, jsonDepth = 32) => parseJson(Buffer.from(text as string), { ...INPUT_LIMITS, jsonDepth });

function faultOf(text: string | Buffer, depthMax = 32): KitError {
  try {
    parse(text, depthMax);
  } catch (error) {
    return error as KitError;
  }
  throw new Error('it was accepted');
}

describe('acceptable JSON', () => {
  test('reads exactly what JSON.parse reads', () => {
    const acceptable = fc
      .jsonValue({ maxDepth: 5 })
      .filter((value) => !/__proto__|"constructor"|"prototype"|\\u0000|\\ud/.test(JSON.stringify(value)));
    fc.assert(
      fc.property(acceptable, fc.constantFrom(undefined, 2), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        expect(parse(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  test('colons, braces and quotes inside strings are text', () => {
    const value = { 'a:b': '{"c": [1, 2]}', 'q"': '\\":', nested: [{ x: '::' }] };
    expect(parse(JSON.stringify(value))).toEqual(value);
  });
});

describe('bad JSON', () => {
  const cases: readonly [text: string, code: string, location: readonly (string | number)[]][] = [
    ['{"a":1,"a":2}', 'duplicate_key', ['body', 'a']],
    ['{"a":1,"\\u0061":2}', 'duplicate_key', ['body', 'a']],
    ['[{"x":{"k":1,"k":1}}]', 'duplicate_key', ['body', 0, 'x', 'k']],
    ['{"__proto__":{"admin":true}}', 'forbidden_key', ['body', '__proto__']],
    ['{"a":[{"constructor":1}]}', 'forbidden_key', ['body', 'a', 0, 'constructor']],
    ['{"\\u005f_proto__":1}', 'forbidden_key', ['body', '__proto__']],
    ['{"a":1e999}', 'number_out_of_range', ['body', 'a']],
    ['[0,-1e400]', 'number_out_of_range', ['body', 1]],
    ['{"a":"x\\u0000y"}', 'invalid_text', ['body', 'a']],
    ['{"a":"\\ud800"}', 'invalid_text', ['body', 'a']],
    ['{"\\udc00":1}', 'invalid_text', ['body']],
    ['{"a":1,}', 'invalid_json', ['body']],
    ['{"a":tru}', 'invalid_json', ['body', 'a']],
    ['{"a":01}', 'invalid_json', ['body']],
    ["{'a':1}", 'invalid_json', ['body']],
    ['{"a":NaN}', 'invalid_json', ['body', 'a']],
    ['{"a" 1}', 'invalid_json', ['body', 'a']],
    ['[1,2', 'invalid_json', ['body']],
    ['{"a":"unterminated', 'invalid_json', ['body', 'a']],
    ['{"a":"tab\there"}', 'invalid_json', ['body', 'a']],
    ['{} {}', 'invalid_json', ['body']],
    ['\ufeff{}', 'invalid_json', ['body']],
    ['nope', 'invalid_json', ['body']],
  ];
  test.each(cases)('%s is refused as %s', (text, code, location) => {
    const error = faultOf(text);
    expect(error).toMatchObject({ status: 400, code: 'malformed_body' });
    expect(error.errors).toEqual([{ location, code, message: expect.any(String) as string }]);
  });

  test('the answer names line and column, and never quotes the body', () => {
    const error = faultOf('{\n  "password": "hunter2",\n  "password": "hunter2"\n}');
    expect(error.detail).toContain('line 3, column 3');
    expect(JSON.stringify(error) + error.message).not.toContain('hunter2');
  });

  test('text that no database can hold is refused in a key too, with long numbers, after any other body', () => {
    parseJson(Buffer.from(String.raw`{"after":1,"\\":2}`));
    expect(faultOf(String.raw`{"after":1,"\u0000":3.5758871775028694e+134}`)).toMatchObject({ status: 400, code: 'malformed_body' });
    expect(parseJson(Buffer.from(String.raw`{"after":1,"\n":12345678901234567890}`))).toEqual({ after: 1, '\n': 12345678901234567000 });
  });

  test('bytes that are not UTF-8 are refused', () => {
    expect(faultOf(Buffer.from([0x22, 0xff, 0xfe, 0x22]))).toMatchObject({ status: 400, code: 'malformed_body' });
    expect(faultOf(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]))).toMatchObject({ code: 'malformed_body' });
  });

  test('nesting beyond the limit is refused, at the limit accepted', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
    expect(parse(nested(32))).toBeInstanceOf(Array);
    expect(faultOf(nested(33))).toMatchObject({ status: 400, code: 'too_deep', extensions: { depth_max: 32 } });
    expect(faultOf(nested(100_000))).toMatchObject({ code: 'too_deep' });
    expect(faultOf('{"a":'.repeat(33))).toMatchObject({ code: 'too_deep' });
  });

  test('whatever arrives is read or refused with 400, and refused exactly when it has a fault', () => {
    const pieces = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      '"',
      ':',
      ',',
      'a',
      '1',
      '\\',
      ' ',
      'e',
      '-',
      '.',
      'null',
      'true',
      '"a"',
      '"b":',
      '\u0000',
      '😀',
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 30 }), (parts) => {
        const text = parts.join('');
        const native = outcome(() => JSON.parse(text) as unknown);
        const strict = outcome(() => parse(text));
        // What the native parser refuses is refused; what it accepts is read alike, unless it has a fault of ours.
        const expected = 'value' in native && !('fault' in strict) ? native : { fault: 400 };
        expect(strict).toEqual(expected);
      }),
      { numRuns: 2000 },
    );
  });
});

function outcome(work: () => unknown): { readonly value: unknown } | { readonly fault: number | undefined } {
  try {
    return { value: work() };
  } catch (error) {
    return { fault: (error as KitError).status };
  }
}

test('members of all objects together have a limit, which is found before anything is parsed', () => {
  const body = (count: number) => Buffer.from(`[{${Array.from({ length: count }, (_, index) => `"k${index}":{"a":1}`).join(',')}}]`);
  expect(() => parseJson(body(5000))).not.toThrow();
  expect(() => parseJson(body(5001))).toThrow(
    expect.objectContaining({ code: 'too_many_members', status: 400, extensions: { members_max: 10_000 } }) as Error,
  );
  expect(() => parseJson(body(6), { ...INPUT_LIMITS, jsonMembers: 11 })).toThrow(
    expect.objectContaining({ code: 'too_many_members' }) as Error,
  );
  // Not JSON at all, and still not parsed.
  expect(readJson('::::', { ...INPUT_LIMITS, jsonMembers: 3 })).toEqual({
    fault: expect.objectContaining({ code: 'too_many_members' }) as unknown,
  });
  expect(parseJson(Buffer.from('{"a":"::::::::::::"}'), { ...INPUT_LIMITS, jsonMembers: 1 })).toEqual({ a: '::::::::::::' });
});

test('items of all arrays together have a limit, which is found before anything is parsed', () => {
  const limits = { ...INPUT_LIMITS, jsonItems: 4 };
  const parsed = (text: string) => parseJson(Buffer.from(text), limits);
  for (const text of [
    '[1,2,3,4]',
    '[ [ ] , [], [ "a,b,[" ] ]',
    '{"a":[1,2],"b":[{"c":1,"d":2},[]]}',
    '{"a":1,"b":2,"c":{},"d":{},"e":4,"f":5}',
  ])
    expect(parsed(text)).toEqual(JSON.parse(text));
  for (const text of ['[1,2,3,4,5]', '[[1],[2],[3]]', '{"a":[1,2],"b":[{"c":1},[3]]}', '[{},{},{},{},{}]'])
    expect(() => parsed(text)).toThrow(
      expect.objectContaining({ code: 'too_many_items', status: 400, extensions: { items_max: 4 } }) as Error,
    );
  expect(() => parseJson(Buffer.from(`[${'0,'.repeat(49_999)}0]`))).not.toThrow();
  expect(() => parseJson(Buffer.from(`[${'0,'.repeat(50_000)}0]`))).toThrow(expect.objectContaining({ code: 'too_many_items' }) as Error);
});

test('counted items are those that JSON.parse finds', () => {
  const itemsOf = (value: unknown): number =>
    Array.isArray(value)
      ? value.reduce<number>((sum, each) => sum + 1 + itemsOf(each), 0)
      : typeof value === 'object' && value !== null
        ? Object.values(value).reduce<number>((sum, each) => sum + itemsOf(each), 0)
        : 0;
  fc.assert(
    fc.property(fc.json(), (text) => {
      const jsonItems = itemsOf(JSON.parse(text));
      const limits = { ...INPUT_LIMITS, jsonItems, jsonDepth: 1000 };
      expect(readJson(text, limits).fault?.code).not.toBe('too_many_items');
      expect(readJson(text, { ...limits, jsonItems: jsonItems - 1 }).fault?.code).toBe('too_many_items');
    }),
  );
});
