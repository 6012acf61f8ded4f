import { hasHiddenCharacters } from '../../../auth/people/hidden-characters.ts';

const USERNAME = /^[a-z0-9][a-z0-9._+-]{0,149}$/;
/** One `@`, no whitespace or characters that are not seen, at most 254: what can be mailed to is decided by mailing to it. */
const EMAIL = /^[^\s@]{1,64}@[^\s@]{1,189}$/u;

/**
 * User names and addresses are kept in lower case, so two users cannot differ by case alone. A user name has no `@`:
 * a login with one is an address and can never be another user's name.
 */
export function normalizeUsername(username: string): string {
  return username.normalize('NFKC').trim().toLowerCase();
}

export function normalizeEmail(email: string): string {
  return email.normalize('NFKC').trim().toLowerCase();
}

export function normalizeLogin(login: string): string {
  return login.normalize('NFKC').trim().toLowerCase();
}

export function isEmailLogin(login: string): boolean {
  return login.includes('@');
}

/** What is wrong with a normalised user name, as one sentence; null when it is fine. */
export function usernameFault(username: string): string | null {
  if (USERNAME.test(username)) return null;
  return 'A user name is 1 to 150 of a-z, 0-9, ".", "_", "+" and "-", starting with a letter or digit.';
}

export function emailFault(email: string): string | null {
  return EMAIL.test(email) && !hasHiddenCharacters(email) ? null : 'An e-mail address is of the form name@domain, at most 254 characters.';
}
