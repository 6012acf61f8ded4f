import { expect, test } from 'vitest';
import { emailFault, normalizeUsername, usernameFault } from './login-name.ts';

test.each(['ada', 'ada.lovelace', '7of9', 'a', 'x'.repeat(150)])('%j is a user name', (name) => {
  expect(usernameFault(name)).toBeNull();
});

test.each(['', 'Ada', 'ada@example.com', '-ada', 'a b', 'ada\n', 'x'.repeat(151), 'аdа'])('%j is no user name', (name) => {
  expect(usernameFault(name)).toContain('A user name is');
});

test('user names differ by more than case, width or surrounding space', () => {
  expect(normalizeUsername(' ＡＤＡ ')).toBe('ada');
});

test.each(['ada@example.com', 'ada+tag@example.co.uk', 'zoë@exämple.org'])('%j is an address', (email) => {
  expect(emailFault(email)).toBeNull();
});

test.each([
  '',
  'ada',
  '@example.com',
  'ada@',
  'a@b@c',
  'ada @example.com',
  'ada@example.com\r\nBcc: x@y',
  `${'x'.repeat(65)}@y`,
  'ada\u200b@example.com',
  'a\u202eda@example.com',
  'a\u0000@b',
])('%j is no address', (email) => {
  expect(emailFault(email)).toContain('An e-mail address is');
});
