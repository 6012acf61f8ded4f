import fc from 'fast-check';
import { expect, test } from 'vitest';
import { applyEnvironment, coerce, defaultPrefix, variablesOf } from './environment.ts';
import { toDocumentTable } from './formats.ts';
import type { LoadFailure } from './load-failure.ts';

function overlay(document: object, environment: Record<string, string>): unknown {
  const table = toDocumentTable(structuredClone(document) as Record<string, unknown>, 'test');
  return JSON.parse(JSON.stringify(applyEnvironment(table, variablesOf(environment, 'APP__')).document));
}

function failureOf(document: object, environment: Record<string, string>): LoadFailure {
  try {
    overlay(document, environment);
  } catch (error) {
    return error as LoadFailure;
  }
  throw new Error('it did not fail');
}

test('the default prefix is the application in capitals, other characters as underscores', () => {
  expect(defaultPrefix('billing')).toBe('BILLING__');
  expect(defaultPrefix('pay-roll.v2_x')).toBe('PAY_ROLL_V2_X__');
});

test('a segment matches an existing key in any case; a new key is lower case', () => {
  expect(overlay({ pool: { maxSize: 1 } }, { APP__POOL__MAXSIZE: '2' })).toEqual({ pool: { maxSize: 2 } });
  expect(overlay({ Pool: {} }, { APP__pool__NewKey: 'x' })).toEqual({ Pool: { newkey: 'x' } });
  expect(overlay({}, { APP__A__B__C: '1' })).toEqual({ a: { b: { c: 1 } } });
  expect(overlay({ max: 1, MAX: 2 }, { APP__MAX: '3' })).toEqual({ max: 1, MAX: 3 });
});

test('a blank variable, another prefix and the bare prefix are ignored', () => {
  expect(overlay({ a: 1 }, { APP__A: '  ', APP__B: '', OTHER__A: '2', APP__: '3', APPA: '4' })).toEqual({ a: 1 });
});

test('a variable belongs to an application by how it begins, exactly: not by what it holds, nor in another case', () => {
  expect(overlay({ name: 'x' }, { XAPP__NAME: '1', MY_APP__NAME: '1', app__NAME: '1', APP_NAME: '1', APP2__NAME: '1' })).toEqual({
    name: 'x',
  });
});

test('coercion', () => {
  const cases: [string, unknown][] = [
    ['true', true],
    ['false', false],
    ['True', 'True'],
    ['null', 'null'],
    ['5', 5],
    ['-1.50', -1.5],
    ['1e3', 1000],
    ['007', '007'],
    ['+5', '+5'],
    ['9007199254740991', 9_007_199_254_740_991],
    ['9007199254740993', '9007199254740993'],
    ['0.1', 0.1],
    ['0.12345678901234567890', '0.12345678901234567890'],
    ['1e400', '1e400'],
    ['NaN', 'NaN'],
    ['"5"', '5'],
    ['[1, "a", 9007199254740993]', [1, 'a', '9007199254740993']],
    ['[1', '[1'],
    ['{broken', '{broken'],
    ['plain text', 'plain text'],
    ['  padded ', '  padded '],
  ];
  for (const [text, value] of cases) expect([text, coerce(text)]).toEqual([text, value]);
});

test('a JSON object merges into a table, and a more specific variable overrides it', () => {
  expect(overlay({ pool: { a: 1, b: 2 } }, { APP__POOL: '{"b":3,"c":{"d":4}}', APP__POOL__C__D: '5' })).toEqual({
    pool: { a: 1, b: 3, c: { d: 5 } },
  });
});

test('arrays and scalars are replaced whole', () => {
  expect(overlay({ list: [1, 2, 3], scalar: 1 }, { APP__LIST: '[9]', APP__SCALAR: '[1]' })).toEqual({ list: [9], scalar: [1] });
});

test('a value over a table and a path below a scalar are failures that name the variable and not its value', () => {
  for (const [document, environment] of [
    [{ pool: { a: 1 } }, { APP__POOL: 'canary' }],
    [{ pool: { a: 1 } }, { APP__POOL: '[1]' }],
    [{ pool: 5 }, { APP__POOL__A: 'canary' }],
    [{ pool: null }, { APP__POOL__A: 'canary' }],
    [{ pool: [1] }, { APP__POOL__A: 'canary' }],
    [{}, { APP__A____B: 'canary' }],
  ] as [object, Record<string, string>][]) {
    const failure = failureOf(document, environment);
    const [name] = Object.keys(environment) as [string];
    expect([failure.kind, failure.origin]).toEqual(['env', `env ${name}`]);
    expect(failure.message).toContain(name);
    expect(failure.message).not.toContain('canary');
  }
});

test('a variable that nests without end is a failure, by its value or by its name', () => {
  const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;
  const named = `APP__${Array.from({ length: 3_000 }, () => 'A').join('__')}`;
  for (const environment of [
    { APP__A: nested(128) },
    { APP__A: nested(900) },
    { APP__A: nested(50_000) },
    { [named]: '{"a":1}' },
    { [named]: '1' },
  ]) {
    expect(failureOf({}, environment)).toMatchObject({
      kind: 'env',
      message: expect.stringMatching(/^APP__A.* nests tables and arrays deeper than 128 levels$/) as string,
    });
  }
  expect(JSON.stringify(overlay({}, { APP__A: nested(127) }))).toBe(`{"a":${nested(127)}}`);
});

test('__proto__ in a variable is a key like any other', () => {
  expect(JSON.stringify(overlay({}, { APP__PARENT: '{"__proto__":{"polluted":true}}' }))).toBe(
    '{"parent":{"__proto__":{"polluted":true}}}',
  );
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
});

test('whatever is set by full path is what is read back, and nothing else changes', () => {
  const key = fc.stringMatching(/^[a-z][a-z0-9]{0,5}$/);
  const path = fc.array(key, { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(path, fc.oneof(fc.integer(), fc.boolean()), (keys, value) => {
      const result = overlay({ untouched: { a: 1 } }, { [`APP__${keys.join('__').toUpperCase()}`]: String(value) }) as Record<
        string,
        unknown
      >;
      let at: unknown = result;
      for (const each of keys) at = (at as Record<string, unknown>)[each];
      expect(at).toBe(value);
      expect(keys[0] === 'untouched' || (result['untouched'] as { a: number }).a === 1).toBe(true);
    }),
  );
});

test('the order in which the environment lists variables does not matter', () => {
  const entry = fc.tuple(
    fc.constantFrom('A', 'A__B', 'A__B__C', 'D', 'D__E'),
    fc.constantFrom('{"x":1}', '{"y":{"z":2}}', '{"b":{"c":3}}'),
  );
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 5 }), (entries) => {
      const environment = new Map(entries.map(([name, text]) => [`APP__${name}`, text]));
      const forward = tryOverlay(Object.fromEntries(environment));
      const backward = tryOverlay(Object.fromEntries([...environment].reverse()));
      expect(forward).toEqual(backward);
    }),
  );
});

function tryOverlay(environment: Record<string, string>): unknown {
  try {
    return overlay({}, environment);
  } catch (error) {
    return (error as Error).message;
  }
}
