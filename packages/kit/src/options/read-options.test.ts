import { describe, expect, test } from 'vitest';
import { InvalidOptions, objectOf, optionFaults, type OptionRules, readOptions, refuseUnknownNames } from './read-options.ts';
import { either, filledText, flag, listOf, nullable, oneOf, recordOf, required, rule, secret, text, wholeNumber } from './value-rule.ts';

interface Options {
  readonly name: string;
  readonly keysMax?: number;
  readonly tags?: readonly string[];
  readonly mode?: 'fast' | 'safe';
  readonly cache?: { readonly maxAgeMs: number } | null;
  readonly password?: string;
  readonly limits?: Readonly<Record<string, number>>;
}

const rules: OptionRules<Options> = {
  name: required(filledText),
  keysMax: wholeNumber(1, 10),
  tags: listOf(text, { min: 1 }),
  mode: oneOf('fast', 'safe'),
  cache: nullable(objectOf<{ readonly maxAgeMs: number }>({ maxAgeMs: required(wholeNumber(1)) })),
  password: secret('8 characters or more', (value) => typeof value === 'string' && value.length >= 8),
  limits: recordOf(wholeNumber(0)),
};

const faultsOf = (given: unknown) =>
  optionFaults('shop()', given as Options, rules).map(({ id, message, hint }) => `${id} ${message} ${hint ?? ''}`.trim());

describe('options', () => {
  test('that are valid come back as they were given', () => {
    const given: Options = { name: 'a', keysMax: 10, tags: ['x'], mode: 'safe', cache: null, limits: { a: 0 } };
    expect(readOptions('shop()', given, rules)).toBe(given);
  });

  test('of an unknown name are refused, with the one that was meant', () => {
    expect(faultsOf({ name: 'a', keysmax: 1 })).toEqual(['E001 shop(): unknown option "keysmax". Did you mean "keysMax"?']);
    expect(faultsOf({ name: 'a', keys_max: 1 })).toEqual(['E001 shop(): unknown option "keys_max". Did you mean "keysMax"?']);
    expect(faultsOf({ name: 'a', x: 1 })).toEqual([
      'E001 shop(): unknown option "x". Known: name, keysMax, tags, mode, cache, password, limits.',
    ]);
    expect(faultsOf({ name: 'a', cache: { maxAgeMs: 1, maxAge: 2 } })).toEqual([
      'E001 shop(): unknown option "cache.maxAge". Did you mean "maxAgeMs"?',
    ]);
  });

  test.each([
    [{ keysMax: 11 }, 'keysMax is 11; use an integer from 1 to 10.'],
    [{ keysMax: '5' }, 'keysMax is "5"; use an integer from 1 to 10.'],
    [{ keysMax: null }, 'keysMax is null; use an integer from 1 to 10.'],
    [{ tags: 'x' }, 'tags is "x"; use a list: [ … ].'],
    [{ tags: [] }, 'tags is empty; name at least one.'],
    [{ tags: ['x', 2] }, 'tags[1] is 2; use a string.'],
    [{ mode: 'saef' }, 'mode is "saef"; use "fast" or "safe".'],
    [{ cache: {} }, 'cache.maxAgeMs is missing; use an integer of 1 or more.'],
    [{ cache: 5 }, 'cache is 5; use an object: { maxAgeMs }.'],
    [{ limits: { a: -1 } }, 'limits.a is -1; use an integer of 0 or more.'],
    [{ name: undefined }, 'name is missing; use a non-empty string.'],
  ])('with a wrong value say what is expected: %o', (given, sentence) => {
    expect(faultsOf({ name: 'a', ...given })[0]).toContain(sentence);
  });

  test.each([null, 5, 'x', []])('that are not an object are refused: %o', (given) => {
    expect(faultsOf(given)[0]).toContain('shop(): the options object is');
  });

  test('never show a secret', () => {
    expect(faultsOf({ name: 'a', password: 'hunter2' })).toEqual(['E011 shop(): password is not valid; use 8 characters or more.']);
  });

  test('report every fault at once, one line each', () => {
    const call = () => readOptions('shop()', { nmae: 'a', keysMax: 0 } as unknown as Options, rules);
    expect(call).toThrow(InvalidOptions);
    expect(call).toThrow(TypeError);
    expect(call).toThrow(
      'shop(): unknown option "nmae". Did you mean "name"?\n' +
        'shop(): name is missing; use a non-empty string.\n' +
        'shop(): keysMax is 0; use an integer from 1 to 10.',
    );
  });

  test('of a function that runs often are checked by name alone', () => {
    const known = new Set(['force']);
    expect(() => refuseUnknownNames('retry()', { force: true }, known)).not.toThrow();
    expect(() => refuseUnknownNames('retry()', { forse: true }, known)).toThrow('retry(): unknown option "forse". Did you mean "force"?');
  });

  test('may follow one of several rules', () => {
    const size = either(
      'a number or "all"',
      wholeNumber(1),
      rule('"all"', (value) => value === 'all'),
    );
    expect(size('all', 'f()', 'size')).toEqual([]);
    expect(size(3, 'f()', 'size')).toEqual([]);
    expect(size(0, 'f()', 'size')).toEqual([{ id: 'E011', message: 'f(): size is 0; use a number or "all".' }]);
    expect(flag(1, 'f()', 'deep')).toEqual([{ id: 'E011', message: 'f(): deep is 1; use true or false.' }]);
  });
});
