import { coreErrors } from '../../errors/core-errors.ts';

export type QueryValues = Record<string, string | string[]>;

const none: QueryValues = Object.freeze({});
/** More parameters than any honest client sends; each costs an object member and a check. */
const PARAMETERS_MAX = 1000;
const UNKNOWN_PROTO = { location: ['query', '__proto__'], code: 'unknown_field', message: 'Unknown parameter.' };

/** The query string of a raw URL. A repeated name becomes a list. Undecodable text is refused, not guessed. */
export function readQuery(url: string): QueryValues {
  const mark = url.indexOf('?');
  if (mark === -1 || mark === url.length - 1) return none;
  const end = url.indexOf('#', mark);
  const pairs = url.slice(mark + 1, end === -1 ? undefined : end).split('&');
  if (pairs.length > PARAMETERS_MAX)
    throw coreErrors.uri_too_long({ detail: `The query string has more than ${PARAMETERS_MAX} parameters.` });
  const values: QueryValues = {};
  for (const pair of pairs) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = decode(equals === -1 ? pair : pair.slice(0, equals));
    const value = equals === -1 ? '' : decode(pair.slice(equals + 1));
    // Not a name that an object can have as a member.
    if (name === '__proto__') throw coreErrors.validation_error({ errors: [UNKNOWN_PROTO] });
    const before = Object.hasOwn(values, name) ? values[name] : undefined;
    if (before === undefined) values[name] = value;
    else if (typeof before === 'string') values[name] = [before, value];
    else before.push(value);
  }
  return values;
}

function decode(text: string): string {
  if (!text.includes('%') && !text.includes('+')) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw coreErrors.malformed_url({ detail: 'The query string is not valid percent-encoded UTF-8.' });
  }
}
