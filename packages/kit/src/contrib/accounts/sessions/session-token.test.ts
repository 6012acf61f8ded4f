import { expect, test } from 'vitest';
import { csrfToken, isCsrfToken, isSessionToken, newSessionToken, sessionDigest } from './session-token.ts';

test('a session token is recognized by its form alone', () => {
  expect(isSessionToken(newSessionToken())).toBe(true);
  for (const other of ['', 'x', `${newSessionToken()}=`, newSessionToken().slice(1), ` ${newSessionToken()}`])
    expect(isSessionToken(other)).toBe(false);
});

test('neither what is stored nor the CSRF token contains the session token', () => {
  const token = newSessionToken();
  expect(sessionDigest(token)).not.toContain(token);
  expect(csrfToken(token)).not.toContain(token);
  expect(csrfToken(token)).not.toBe(sessionDigest(token));
});

test('a CSRF token is good for its own session only', () => {
  const [mine, other] = [newSessionToken(), newSessionToken()];
  expect(isCsrfToken(csrfToken(mine), mine)).toBe(true);
  expect(isCsrfToken(csrfToken(other), mine)).toBe(false);
  for (const bad of ['', 'x', `${csrfToken(mine)}x`, csrfToken(mine).toLowerCase()]) expect(isCsrfToken(bad, mine)).toBe(false);
});
