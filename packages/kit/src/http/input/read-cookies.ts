import type { FieldError } from '../../errors/kit-error.ts';
import { cookieValues } from '../declare/read-cookie.ts';

/** Browsers store no longer one. */
const COOKIE_LENGTH_MAX = 4096;

/** The declared cookies as text. What cannot be read as one text is a fault, and is passed on as it was sent. */
export function readCookies(
  header: string | readonly string[] | undefined,
  names: Iterable<string>,
  faults: FieldError[],
): Record<string, string> {
  const sent = cookieValues(header);
  const found: Record<string, string> = {};
  for (const name of names) {
    const values = sent.get(name);
    if (values === undefined) continue;
    const read = readOne(values);
    if (typeof read !== 'string') faults.push({ location: ['cookies', name], ...read });
    found[name] = typeof read === 'string' ? read : (values[0] as string);
  }
  return found;
}

function readOne([value = '', ...others]: readonly string[]): string | Omit<FieldError, 'location'> {
  // Another host of the same domain may have set one of them: nobody can say which is meant.
  if (others.length > 0) return { code: 'duplicate', message: 'The cookie was sent more than once.' };
  if (value.length > COOKIE_LENGTH_MAX) return { code: 'too_big', message: `At most ${COOKIE_LENGTH_MAX} characters are allowed.` };
  const text = decoded(/^"(.*)"$/.exec(value)?.[1] ?? value);
  if (text === undefined) return { code: 'invalid', message: 'The value is not valid percent-encoded UTF-8.' };
  // No database can hold it.
  return text.includes('\0') ? { code: 'invalid', message: 'A text cannot contain U+0000.' } : text;
}

function decoded(text: string): string | undefined {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
