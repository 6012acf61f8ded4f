import { describe, expect, test } from 'vitest';
import { t } from '../db/index.ts';
import { keyText, readKey } from './parameter-value.ts';

const whole = [t.int().settings, t.bigint().settings];

describe('keys in addresses and bodies', () => {
  test.each(whole)('a whole number is written in one way', (settings) => {
    for (const text of ['0', '7', '-7', '10']) expect([text, readKey(settings, text).fault]).toEqual([text, undefined]);
    for (const text of ['07', '-0', '-07', '+7', '7.0', '7e0', '0x7', ' 7', '7 ', '', '٧'])
      expect([text, readKey(settings, text).fault]).toEqual([text, 'must be a whole number']);
  });

  test.each(whole)('a whole number may be a JSON number, as long as no digit is lost', (settings) => {
    expect([7, -7, -0, '7', '07'].map((json) => keyText(settings, json))).toEqual(['7', '-7', '0', '7', '07']);
    expect([2 ** 53, -(2 ** 53), 1e21, true, null, undefined, {}, [7]].map((json) => keyText(settings, json))).toEqual(
      Array.from({ length: 8 }, () => undefined),
    );
  });

  test('other keys are text', () => {
    for (const { settings } of [t.text(20), t.uuid(), t.decimal(10, 2)])
      expect(['7', 7].map((json) => keyText(settings, json))).toEqual(['7', undefined]);
  });
});
