import { describe, expect, test } from 'vitest';
import { didYouMean, nearest } from './did-you-mean.ts';

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
    expect(performance.now() - began).toBeLessThan(1000);
  });
});
