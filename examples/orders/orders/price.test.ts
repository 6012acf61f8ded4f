import fc from 'fast-check';
import { expect, test } from 'vitest';
import { totalOf } from './price.ts';

test('a total is exact to the cent', () => {
  expect(totalOf('12.50', 3)).toBe('37.50');
  expect(totalOf('0.01', 1)).toBe('0.01');
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 99_999_999 }), fc.integer({ min: 1, max: 10_000 }), (cents, quantity) => {
      const price = `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, '0')}`;
      expect(BigInt(totalOf(price, quantity).replace('.', ''))).toBe(BigInt(cents) * BigInt(quantity));
    }),
  );
});
