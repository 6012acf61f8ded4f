import { expect, test } from 'vitest';
import { groupDigits } from './group-digits.ts';

test('digits are grouped as toLocaleString groups them', () => {
  for (const whole of [0, 7, 999, 1000, 50_000, 123_456, 1_000_000, 9_007_199_254_740_991, -1000, -123])
    expect(groupDigits(whole)).toBe(whole.toLocaleString('en'));
});
