import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalDecimal, parseDecimal } from './decimal.ts';

test.each([
  ['1', 2, '1.00'],
  ['1.', 2, '1.00'],
  ['001.10', 2, '1.10'],
  ['-0.00', 2, '0.00'],
  ['-0.01', 2, '-0.01'],
  ['1.1000', 2, '1.10'],
  ['7', 0, '7'],
])('%s with scale %i is %s', (text, scale, canonical) => {
  expect(parseDecimal(text, scale)).toBe(canonical);
});

test.each([['1.001'], [''], ['.5'], ['1e2'], ['+1'], ['1,5'], [' 1'], ['--1'], ['NaN']])('%j is no decimal of scale 2', (text) => {
  expect(parseDecimal(text, 2)).toBeUndefined();
});

test('too many digits before the point are refused by precision', () => {
  expect(parseDecimal('999.99', 2, 5)).toBe('999.99');
  expect(parseDecimal('1000.00', 2, 5)).toBeUndefined();
  expect(parseDecimal('0.99', 2, 2)).toBe('0.99');
});

test('canonical spelling is a fixed point and keeps the value', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(10n ** 18n), max: 10n ** 18n }), fc.nat({ max: 6 }), (units, scale) => {
      const digits = (units < 0n ? -units : units).toString().padStart(scale + 1, '0');
      const text = `${units < 0n ? '-' : ''}${digits.slice(0, digits.length - scale)}${scale > 0 ? `.${digits.slice(-scale)}` : ''}`;
      expect(parseDecimal(text, scale)).toBe(text);
      expect(canonicalDecimal(`${text}${scale > 0 ? '0' : ''}`, scale)).toBe(text);
    }),
  );
});

test.each([`${'0'.repeat(200_000)}x`, `0.${'0'.repeat(200_000)}1`, `1.${'0'.repeat(200_000)}`])(
  'a text of 200,000 zeros is read in one go, not in the square of their number',
  (text) => {
    const started = performance.now();
    expect(parseDecimal(text, 2)).toBe(text.startsWith('1') ? '1.00' : undefined);
    // Before, 20,000 zeros took 1.5 s, and ten times as many a hundred times as long.
    expect(performance.now() - started).toBeLessThan(5_000);
  },
);
