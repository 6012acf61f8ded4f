import { describe, expect, test } from 'vitest';
import { t } from '../../db/index.ts';
import { keyText, readKey, readParameter } from './parameter-value.ts';

const whole = [t.int().settings, t.bigint().settings];

describe('keys in addresses and bodies', () => {
  test.each(whole)('an integer is written in one way', (settings) => {
    for (const text of ['0', '7', '-7', '10']) expect([text, readKey(settings, text).fault]).toEqual([text, undefined]);
    for (const text of ['07', '-0', '-07', '+7', '7.0', '7e0', '0x7', ' 7', '7 ', '', '٧'])
      expect([text, readKey(settings, text).fault]).toEqual([text, 'must be an integer']);
  });

  test.each(whole)('an integer may be a JSON number, as long as no digit is lost', (settings) => {
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

test('a moment that its offset moves out of the years 1 to 9999 is refused, in the words of a sentence', () => {
  const { settings } = t.timestamp();
  for (const text of ['0001-01-01T00:00:00+00:01', '9999-12-31T23:59:59-00:01'])
    expect(readParameter(settings, text)).toEqual({ fault: 'must be in the years 1 to 9999' });
  for (const text of ['0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z']) expect(readParameter(settings, text).fault).toBeUndefined();
});
