import { describe, expect, test } from 'vitest';
import { fromBase32, matchingStep, otpauthUri, stepAt, toBase32, totpCode } from './totp.ts';

// RFC 6238, appendix B, for SHA-1; the RFC prints eight digits, of which the last six are the code of six digits.
const SECRET = new TextEncoder().encode('12345678901234567890');

describe('codes', () => {
  test.each([
    [59, '94287082'],
    [1_111_111_109, '07081804'],
    [1_111_111_111, '14050471'],
    [1_234_567_890, '89005924'],
    [2_000_000_000, '69279037'],
    [20_000_000_000, '65353130'],
  ])('at %i seconds are those of RFC 6238', (seconds, printed) => {
    expect(totpCode(SECRET, stepAt(new Date(seconds * 1000)))).toBe(printed.slice(2));
  });

  test('are taken one step early and one step late, and no more', () => {
    const now = new Date('2026-06-01T12:00:10Z');
    const step = stepAt(now);
    for (const near of [-1, 0, 1]) expect(matchingStep(SECRET, totpCode(SECRET, step + near), now)).toBe(step + near);
    for (const far of [-2, 2]) expect(matchingStep(SECRET, totpCode(SECRET, step + far), now)).toBeNull();
    for (const wrong of ['', '12345', '1234567', 'abcdef', '１２３４５６', '-12345']) expect(matchingStep(SECRET, wrong, now)).toBeNull();
  });
});

describe('base32', () => {
  // RFC 4648, section 10, without padding.
  test.each([
    ['', ''],
    ['f', 'MY'],
    ['fo', 'MZXQ'],
    ['foo', 'MZXW6'],
    ['foob', 'MZXW6YQ'],
    ['fooba', 'MZXW6YTB'],
    ['foobar', 'MZXW6YTBOI'],
  ])('of %j is %j, and back', (text, encoded) => {
    expect(toBase32(Buffer.from(text))).toBe(encoded);
    expect(Buffer.from(fromBase32(encoded)).toString()).toBe(text);
  });

  test('rejects other letters', () => {
    for (const wrong of ['a', '0', '1', '8', 'MY=']) expect(() => fromBase32(wrong)).toThrow('base32');
  });
});

test('the URI names issuer and account, whatever characters they have', () => {
  const uri = new URL(otpauthUri('MZXW6YTB', { issuer: 'Fish & Chips: London', account: 'ada+x' }));
  expect(uri.protocol).toBe('otpauth:');
  expect(decodeURIComponent(uri.pathname)).toContain('Fish & Chips: London:ada+x');
  expect(uri.searchParams.get('issuer')).toBe('Fish & Chips: London');
  expect(uri.searchParams.get('secret')).toBe('MZXW6YTB');
});
