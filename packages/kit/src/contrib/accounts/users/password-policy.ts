import { randomInt } from 'node:crypto';

const LENGTH_MIN = 10;
/** Far above any passphrase; bounds what a login request makes us normalise and hash. */
export const PASSWORD_LENGTH_MAX = 256;
const GENERATED_LENGTH = 20;
/** Without characters that are mistaken for one another when read from a screen. */
const ALPHABET = 'abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789';

/** What is wrong with a new password, as one sentence; null when it is fine. Length over composition, as NIST SP 800-63B advises. */
export function passwordFault(password: string, user: { readonly username: string; readonly email: string | null }): string | null {
  if (password.length < LENGTH_MIN) return `A password has at least ${LENGTH_MIN} characters.`;
  if (password.length > PASSWORD_LENGTH_MAX) return `A password has at most ${PASSWORD_LENGTH_MAX} characters.`;
  if (new Set(password).size < 4) return 'A password has at least 4 different characters.';
  const folded = password.toLowerCase();
  const known = [user.username, user.email ?? '', (user.email ?? '').split('@')[0] ?? ''].filter((name) => name.length >= 4);
  if (known.some((name) => folded.replaceAll(name.toLowerCase(), '').length < 6))
    return 'The password must not be the username or the email address.';
  return null;
}

/** About 115 bits, without look-alike characters. */
export function generatePassword(): string {
  return Array.from({ length: GENERATED_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');
}
