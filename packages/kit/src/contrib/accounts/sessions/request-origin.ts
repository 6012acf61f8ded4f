import { isOrigin } from '../../../http/declare/origin.ts';

type Headers = Readonly<Record<string, string | string[] | undefined>>;

export interface OriginOptions {
  /** Other origins whose pages may send unsafe requests with our cookie, e.g. `https://app.example.com`. */
  readonly trustedOrigins: readonly string[];
  /** With Secure cookies our own pages are https, loopback excepted. */
  readonly secure: boolean;
}

/**
 * Why a request cannot come from one of our own pages; null when it can. Browsers set `Origin` and `Sec-Fetch-Site`
 * themselves and pages cannot forge them. A client that sends neither is no current browser: the token decides alone.
 */
export function originFault(headers: Headers, options: OriginOptions): string | null {
  const origin = single(headers['origin']);
  if (origin !== null) {
    if (options.trustedOrigins.includes(origin)) return null;
    if (!isOwnOrigin(origin, single(headers['host']), options.secure)) return 'the Origin header names another site';
  }
  const site = single(headers['sec-fetch-site']);
  if (site !== null && site !== 'same-origin' && site !== 'none')
    return `the browser marked the request as ${site === 'same-site' ? 'same-site' : 'cross-site'}`;
  return null;
}

/** What is wrong with a configured origin, as one sentence; null when it is fine. */
export function trustedOriginFault(origin: string): string | null {
  if (isOrigin(origin)) return null;
  return `A trusted origin is a scheme and host such as "https://app.example.com", not ${JSON.stringify(origin)}.`;
}

function isOwnOrigin(origin: string, host: string | null, secure: boolean): boolean {
  const parsed = URL.parse(origin);
  if (parsed === null || host === null || parsed.origin === 'null') return false;
  if (secure && parsed.protocol !== 'https:' && !isLoopback(parsed.hostname)) return false;
  // A default port may be written in one and left out of the other.
  return URL.parse(`${parsed.protocol}//${host}`)?.host === parsed.host;
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '127.0.0.1' || hostname === '[::1]';
}

function single(header: string | string[] | undefined): string | null {
  if (header === undefined) return null;
  return typeof header === 'string' ? header : header.join(', ');
}
