import { describe, expect, test } from 'vitest';
import { didYouMean, nearest } from './did-you-mean.ts';
import { INPUT_LIMITS } from './input-limits.ts';

describe('didYouMean()', () => {
  test('names the known name that differs by a slip, and nothing when none does', () => {
    expect(didYouMean('tgas', ['title', 'tags'])).toBe(' Did you mean "tags"?');
    expect(didYouMean('tag', ['title', 'tags'])).toBe(' Did you mean "tags"?');
    expect(didYouMean('colour', ['title', 'tags'])).toBe('');
  });

  test('a name of a megabyte, which anyone may send, is not compared letter by letter', () => {
    const known = Array.from({ length: 50 }, (_, index) => `known_name_${index}`);
    const began = performance.now();
    expect(nearest('x'.repeat(1_000_000), known)).toBeUndefined();
    // Comparing took 25 s.
    expect(performance.now() - began).toBeLessThan(10_000);
  });
});

test('names that callers send cost a bounded time: long ones, and one among very many, get no hint', () => {
  const { suggestedNameLength, suggestedNames } = INPUT_LIMITS;
  const long = 'a'.repeat(suggestedNameLength);
  expect(nearest(`${long.slice(1)}b`, [long])).toBe(long);
  expect(nearest(`${long}b`, [`${long}c`])).toBeUndefined();
  const names = Array.from({ length: suggestedNames }, (_, index) => `column${index}`);
  expect(nearest('colunm7', names)).toBe('column7');
  expect(nearest('colunm7', [...names, 'one_more'])).toBeUndefined();
});
