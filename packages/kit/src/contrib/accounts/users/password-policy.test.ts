import { expect, test } from 'vitest';
import { generatePassword, passwordFault } from './password-policy.ts';

const user = { username: 'ada.lovelace', email: 'ada@example.com' };

test.each([
  ['short', 'at least 10 characters'],
  ['x'.repeat(257), 'at most 256'],
  ['abababababab', 'at least 4 different'],
  ['Ada.Lovelace1', 'must not be the username'],
  ['ada@example.com', 'must not be the username'],
])('%j is refused because a password has/is %s', (password, why) => {
  expect(passwordFault(password, user)).toContain(why);
});

test.each(['correct horse battery', 'пароль-длинный-очень', 'hunter2hunter3!'])('%j is accepted', (password) => {
  expect(passwordFault(password, user)).toBeNull();
});

test('a generated password satisfies the policy and never repeats', () => {
  const made = Array.from({ length: 50 }, generatePassword);
  expect(new Set(made).size).toBe(50);
  for (const password of made) expect(passwordFault(password, user)).toBeNull();
});
