import { RemoteSourceError } from './errors.ts';
import { parseTlsOptions, type TlsMaterial, type TlsOptions } from './tls.ts';

/** Which document, where, and with what credential: what both `RemoteSource` and `followGenerations` need. */
export interface SectionOptions {
  /** Base address of the server, `http:` or `https:`, with the path prefix it is mounted under, if any. */
  url: string | URL;
  /** The first segment of the URL of the section. */
  application: string;
  /** The second segment of the URL of the section. */
  profile: string;
  /** The bearer token. */
  token: string;
  /** Only with an `https:` url. */
  tls?: TlsOptions;
}

export interface SectionAddress {
  /** Base url without credentials, query or trailing slash; safe to print. */
  readonly base: string;
  readonly application: string;
  readonly profile: string;
  readonly token: string;
  readonly tls: TlsMaterial;
}

export const SECTION_OPTION_NAMES = ['url', 'application', 'profile', 'token', 'tls'];

// The server's own shape check; anything else is a 404 there, so say so before a request is made.
const SEGMENT = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
// What may follow "Bearer " in a header: visible ASCII, no whitespace.
const TOKEN = /^[\x21-\x7e]+$/;
const TIMER_MS_MAX = 2 ** 31 - 1;

/** Throws one error that names every fault. No message repeats what was given: the value of a wrong option may be a secret. */
export function parseSectionOptions(options: SectionOptions, faults: string[]): SectionAddress {
  const base = parseBase(options.url, faults);
  for (const name of ['application', 'profile'] as const) {
    if (typeof options[name] !== 'string' || !SEGMENT.test(options[name])) {
      faults.push(`${name} must be 1 to 64 characters of A-Z a-z 0-9 . _ - and start with a letter or digit`);
    }
  }
  if (typeof options.token !== 'string' || !TOKEN.test(options.token)) {
    faults.push('token must be a non-empty string of visible ASCII characters');
  }
  const tls = parseTlsOptions(options.tls, faults);
  if (options.tls !== undefined && base.startsWith('http:')) faults.push('tls is given but url is http:, use an https: url');
  return Object.freeze({ base, application: options.application, profile: options.profile, token: options.token, tls });
}

function parseBase(given: unknown, faults: string[]): string {
  const url = given instanceof URL || typeof given === 'string' ? URL.parse(String(given)) : null;
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    faults.push('url must be an absolute http: or https: address');
    return '';
  }
  if (url.username !== '' || url.password !== '') {
    faults.push('url must not contain credentials, give the token in the token option');
    return '';
  }
  if (url.search !== '' || url.hash !== '') faults.push('url must not contain a query or a fragment');
  return url.origin + url.pathname.replace(/\/+$/, '');
}

export function parseCount(name: string, given: unknown, fallback: number, faults: string[], max = TIMER_MS_MAX): number {
  if (given === undefined) return fallback;
  if (typeof given === 'number' && Number.isInteger(given) && given > 0 && given <= max) return given;
  faults.push(`${name} must be an integer from 1 to ${max}`);
  return fallback;
}

export function refuseUnknown(options: object, known: readonly string[], faults: string[]): void {
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) faults.push(`unknown option ${JSON.stringify(name.slice(0, 40))}, known are ${known.join(', ')}`);
  }
}

export function throwFaults(what: string, faults: readonly string[]): void {
  if (faults.length > 0) throw new RemoteSourceError('option', `${what}: ${faults.join('; ')}`);
}
