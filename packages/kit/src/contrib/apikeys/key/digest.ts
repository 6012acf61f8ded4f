import { createHmac, hash, timingSafeEqual } from 'node:crypto';

/**
 * The only stored form of a secret, in hexadecimal: SHA-256, or HMAC-SHA-256 under the app's pepper. A fast hash is right here: the secret
 * has 256 random bits, so there is nothing to guess, and a slow one would make every request slow.
 */
export function secretDigest(secret: string, pepper: string | null): string {
  return pepper === null ? hash('sha256', secret) : createHmac('sha256', pepper).update(secret).digest('hex');
}

/** A digest in hexadecimal. */
const DIGEST_LENGTH = 64;
// Overwritten by every comparison, which never waits: new memory for both sides would cost three times as much.
const [left, right] = [Buffer.alloc(DIGEST_LENGTH), Buffer.alloc(DIGEST_LENGTH)];

/** Compares two digests without telling, by the time it takes, how much of them agrees. */
export function sameDigest(a: string, b: string): boolean {
  if (a.length !== DIGEST_LENGTH || b.length !== DIGEST_LENGTH) return false;
  left.write(a, 'latin1');
  right.write(b, 'latin1');
  return timingSafeEqual(left, right);
}

/** Stands in where there is no row: of no known secret, and as long as a real one, so that the comparison is the same work. */
export const NO_DIGEST = '0'.repeat(64);
