// Headers that an endpoint's requests carry besides ours: an API key of the receiver, a routing header.
import type { SecretBox } from '../../../db/sealing/secret-box.ts';
import { isMembers } from '../../../options/value-rule.ts';

export type CustomHeaders = Readonly<Record<string, string>>;

/** What an edit says: a text sets a header, null removes it, and headers that are not named stay. */
export type HeaderEdit = Readonly<Record<string, string | null>>;

export const HEADERS_MAX = 20;
export const HEADER_NAME_LENGTH_MAX = 100;
export const HEADER_VALUE_LENGTH_MAX = 2000;

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Visible characters, with spaces and tabs between them: nothing that could end the header. */
const VALUE = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;
/** What describes the request or the connection, and what receivers trust us to say. */
const RESERVED = new Set([
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'date',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
  'via',
]);
const RESERVED_PREFIXES = ['webhook-', 'proxy-', ':'];

export interface HeaderFault {
  readonly name: string;
  readonly message: string;
}

/** The headers after the edit, names in lower case, or everything that is wrong with it. Values are never part of a message. */
export function editHeaders(current: CustomHeaders, edit: unknown): CustomHeaders | readonly HeaderFault[] {
  if (!isMembers(edit)) return [{ name: '', message: 'Headers are an object of names and values.' }];
  const faults: HeaderFault[] = [];
  const headers = new Map(Object.entries(current));
  const seen = new Set<string>();
  for (const [given, value] of Object.entries(edit)) {
    const name = given.toLowerCase();
    const fault = seen.has(name) ? 'The header is given twice.' : faultOf(name, value);
    seen.add(name);
    if (fault !== null) faults.push({ name: given.slice(0, HEADER_NAME_LENGTH_MAX), message: fault });
    else if (value === null) headers.delete(name);
    else headers.set(name, value as string);
  }
  if (headers.size > HEADERS_MAX) faults.push({ name: '', message: `An endpoint has at most ${HEADERS_MAX} custom headers.` });
  return faults.length > 0 ? faults : Object.fromEntries([...headers].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function faultOf(name: string, value: unknown): string | null {
  if (name.length > HEADER_NAME_LENGTH_MAX || !NAME.test(name))
    return `The name of a header is 1 to ${HEADER_NAME_LENGTH_MAX} letters, digits and characters such as "-" and "_".`;
  if (RESERVED.has(name) || RESERVED_PREFIXES.some((prefix) => name.startsWith(prefix)))
    return 'This header is reserved: it is set for every request.';
  if (value === null) return null;
  if (typeof value !== 'string' || value.length > HEADER_VALUE_LENGTH_MAX || !VALUE.test(value))
    return `The value of a header is a string of 1 to ${HEADER_VALUE_LENGTH_MAX} ASCII characters, without line breaks and spaces around it.`;
  return null;
}

/** The headers of a stored form. Throws `SecretUnavailable` when no configured key decrypts it. */
export function openHeaders(secrets: Pick<SecretBox, 'open'>, stored: string | null): CustomHeaders {
  return stored === null ? {} : (JSON.parse(secrets.open(stored)) as CustomHeaders);
}
