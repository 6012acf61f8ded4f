import { createHash, createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { NO_DIGEST, sameDigest, secretDigest } from './digest.ts';

test('without a pepper the digest is SHA-256 of the secret, with one HMAC-SHA-256 under it', () => {
  expect(secretDigest('abc', null)).toBe(createHash('sha256').update('abc').digest('hex'));
  expect(secretDigest('abc', 'pepper')).toBe(createHmac('sha256', 'pepper').update('abc').digest('hex'));
});

test('digests are the same only when all of them is', () => {
  const digest = secretDigest('abc', null);
  expect(sameDigest(digest, secretDigest('abc', null))).toBe(true);
  expect(sameDigest(digest, secretDigest('abd', null))).toBe(false);
  expect(sameDigest(digest, digest.slice(1))).toBe(false);
  expect(sameDigest(digest, NO_DIGEST)).toBe(false);
});
