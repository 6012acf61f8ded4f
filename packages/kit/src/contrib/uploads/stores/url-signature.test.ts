import { expect, test } from 'vitest';
import { readUrlKeys, signAddress, verifiesAddress, type SignedAddress } from './url-signature.ts';

const keys = ['a'.repeat(32), 'b'.repeat(32)];
const address: SignedAddress = { method: 'PUT', id: 'u1', expires: 1_700_000_000, length: 5, type: 'image/png', sha256: 'c2hh' };
const signatureOf = (made: string) => new URLSearchParams(made).get('signature') ?? '';

test('the first key signs, every key verifies, others do not', () => {
  const [first = '', second = ''] = keys;
  const signature = signatureOf(signAddress(address, keys));
  expect(verifiesAddress(address, signature, keys)).toBe(true);
  expect(verifiesAddress(address, signature, [second, first])).toBe(true);
  expect(verifiesAddress(address, signature, [second])).toBe(false);
  expect(verifiesAddress(address, signature, [])).toBe(false);
});

test.each<[string, Partial<SignedAddress>]>([
  ['method', { method: 'GET' }],
  ['id', { id: 'u2' }],
  ['expiry', { expires: 1_700_000_001 }],
  ['length', { length: 6 }],
  ['no length', { length: undefined }],
  ['type', { type: 'text/html' }],
  ['no type', { type: undefined }],
  ['checksum', { sha256: 'c2hi' }],
  ['no checksum', { sha256: undefined }],
  ['part', { part: 1 }],
  ['disposition', { disposition: 'inline' }],
  ['members that look like others', { type: 'image/png","sha256":"c2hh' }],
])('an altered %s is refused', (_, change) => {
  expect(verifiesAddress({ ...address, ...change }, signatureOf(signAddress(address, keys)), keys)).toBe(false);
});

test('garbage is no signature', () => {
  for (const signature of ['', 'x', '=', 'é', 'A'.repeat(43), 'A'.repeat(10_000)])
    expect(verifiesAddress(address, signature, keys)).toBe(false);
});

test('keys are separated by commas', () => {
  expect(readUrlKeys(` ${keys[0]},\n${keys[1]} , `)).toEqual(keys);
  expect(readUrlKeys('')).toEqual([]);
});
