import { expect, test } from 'vitest';
import { readCookie } from '../../../http/declare/read-cookie.ts';
import { clearedSessionCookie, sessionCookie } from './cookie.ts';

test('the session cookie is out of reach of scripts, other sites and sibling hosts', () => {
  expect(sessionCookie('abc', 60, { secure: true })).toBe('__Host-kit_session=abc; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure');
});

test('in development over plain http only Secure and its prefix are given up', () => {
  expect(sessionCookie('abc', 60, { secure: false })).toBe('kit_session=abc; Path=/; Max-Age=60; HttpOnly; SameSite=Lax');
  expect(clearedSessionCookie({ secure: false })).toContain('Max-Age=0');
});

test.each([
  [undefined, null],
  ['', null],
  ['other=1', null],
  ['s=abc', 'abc'],
  ['a=1; s=abc; b=2', 'abc'],
  ['a=1;s=abc', 'abc'],
  ['xs=no; s=yes', 'yes'],
  ['s=', ''],
  ['s=a=b', 'a=b'],
  ['s=one; s=two', null],
])('in %j the cookie is %j', (header, value) => {
  expect(readCookie(header, 's')).toBe(value);
});
