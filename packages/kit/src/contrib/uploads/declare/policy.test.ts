import { expect, test } from 'vitest';
import { acceptedType, readUploadPolicy } from './policy.ts';

test('the defaults: any type, 10 MiB, 600 and 900 seconds, no checksum, no quota', () => {
  expect(readUploadPolicy('X.policy')).toEqual({
    contentTypes: ['*/*'],
    bytesMax: 10 * 1024 * 1024,
    expiresInSeconds: 600,
    graceSeconds: 900,
    requireChecksum: false,
    quotaPerOwner: { bytes: null, count: null },
    partBytes: 8 * 1024 * 1024,
  });
});

test('every fault at once, with its remedy', () => {
  const wrong = { contentTypes: ['png'], bytesMax: 0, graceSecond: 1, quotaPerOwner: { byte: 1 }, partBytes: 1 };
  expect(() => readUploadPolicy('X.policy', wrong as never)).toThrow(
    /unknown option "graceSecond"\. Did you mean "graceSeconds"\?[\s\S]*contentTypes\[0\] is "png"; use "image\/png"[\s\S]*bytesMax is 0[\s\S]*quotaPerOwner\.byte[\s\S]*partBytes is 1/,
  );
  expect(() => readUploadPolicy('X.policy', { bytesMax: 5 * 1024 ** 3 + 1 })).toThrow('bytesMax');
});

const policy = readUploadPolicy('X.policy', { contentTypes: ['image/*'], bytesMax: 10, requireChecksum: true });
const file = { contentType: 'Image/PNG; x=y', size: 10, checksumSha256: 'x', multipart: false };

test('an accepted type is normalised', () => expect(acceptedType(policy, file)).toBe('image/png'));

test.each([
  ['type_not_allowed', { contentType: 'text/html' }],
  ['type_not_allowed', { contentType: 'image/svg+xml' }],
  ['type_not_allowed', { contentType: 'nonsense' }],
  ['upload_too_large', { size: 11 }],
  ['checksum_required', { checksumSha256: null }],
])('%s', (code, change) => {
  expect(() => acceptedType(policy, { ...file, ...change })).toThrow(expect.objectContaining({ code }));
});
