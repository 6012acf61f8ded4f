import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

const TOKEN = /^[A-Za-z0-9_-]{43}$/;

/** 256 random bits; exists only in the cookie. */
export function newSessionToken(): string {
  return randomBytes(32).toString('base64url');
}

/** Anything else in the cookie is no session, found out without asking the database. */
export function isSessionToken(text: string): boolean {
  return TOKEN.test(text);
}

/** What is stored. The token is random over 256 bits, so a plain digest cannot be searched backwards. */
export function sessionDigest(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/**
 * The session's CSRF token: derived from the session token, so it needs no storage, ends with the session, and knowing
 * it does not reveal the session.
 */
export function csrfToken(sessionToken: string): string {
  return createHmac('sha256', sessionToken).update('kit csrf 1').digest('base64url');
}

export function isCsrfToken(given: string, sessionToken: string): boolean {
  const expected = Buffer.from(csrfToken(sessionToken));
  const presented = Buffer.from(given);
  return presented.length === expected.length && timingSafeEqual(presented, expected);
}
